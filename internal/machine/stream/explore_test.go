package stream_test

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// The explorer takes a small group with flow control through all that can happen to it,
// in any order, within bounds: frames arrive in the order of their connection, programs
// write and receive, connections break and lose what is under way, and the clock of each
// member runs on to its deadline. A program that does not receive is slow, so slowness
// needs no step of its own.
//
// A member's state follows from what it was given, in order. So two paths that have
// given every member the same lead to the same state, and only one of them is gone on
// with (partial order reduction; Godefroid 1996).

// explorerBounds say how much may happen on one path.
type explorerBounds struct {
	members, roots, messages int
	size                     int // of a message, in bytes
	ticks, breaks            int
	states                   int // the search ends when so many were seen
}

// choice is one thing that can happen.
type choice struct {
	what     string // write, receive, tick, deliver or break
	from, to int
}

// exploredGroup is a group in one state.
type exploredGroup struct {
	bounds  explorerBounds
	members []*exploredMember
	links   map[[2]int][][]byte // frames under way
	ticks   int
	breaks  int
	seed    maphash.Seed
	err     error
}

type exploredMember struct {
	*stream.Member
	now       protocol.Time
	written   int
	delivered []int  // by root
	history   uint64 // of everything it was given
}

func newExploredGroup(b explorerBounds, seed maphash.Seed) *exploredGroup {
	g := &exploredGroup{bounds: b, links: map[[2]int][][]byte{}, seed: seed}
	for r := range b.members {
		m, err := stream.New(stream.Config{
			Rank: protocol.Rank(r), Size: protocol.Rank(b.members), Incarnation: 1,
			SegmentSize: 512, InlineSize: 16, KeepBytes: 1024, InboxBytes: 1024, OutboxBytes: 512,
		})
		if err != nil {
			panic(err)
		}
		g.members = append(g.members, &exploredMember{Member: m, now: 1, delivered: make([]int, b.members)})
	}
	return g
}

// choices lists what can happen, in an order that is always the same.
func (g *exploredGroup) choices() (all []choice) {
	for r, m := range g.members {
		if r < g.bounds.roots && m.written < g.bounds.messages {
			all = append(all, choice{"write", r, r})
		}
		if m.Pending() > 0 {
			all = append(all, choice{"receive", r, r})
		}
		if g.ticks < g.bounds.ticks && m.Deadline() != protocol.Never {
			all = append(all, choice{"tick", r, r})
		}
		for peer := range g.members {
			if len(g.links[[2]int{r, peer}]) > 0 {
				all = append(all, choice{"deliver", r, peer})
			}
			if r < peer && g.breaks < g.bounds.breaks {
				all = append(all, choice{"break", r, peer})
			}
		}
	}
	return all
}

// take makes one choice. A write that flow control refuses changes nothing but the
// history: it is not gone on with.
func (g *exploredGroup) take(c choice) {
	m := g.members[c.to]
	switch c.what {
	case "write":
		if m.Write(message(protocol.Rank(c.to), m.written, g.bounds.size), 0) == nil {
			m.written++
			m.note(g.seed, c, nil)
		}
	case "receive":
		g.receive(c.to)
		m.note(g.seed, c, nil)
	case "tick":
		g.ticks++
		m.now = max(m.now, m.Deadline())
		m.note(g.seed, c, nil)
	case "deliver":
		link := [2]int{c.from, c.to}
		frame := g.links[link][0]
		g.links[link] = g.links[link][1:]
		if err := m.Receive(m.now, protocol.Rank(c.from), frame); err != nil {
			g.err = err
		}
		m.note(g.seed, c, frame)
	case "break":
		g.breaks++
		for _, link := range [][2]int{{c.from, c.to}, {c.to, c.from}} {
			delete(g.links, link)
			end := g.members[link[0]]
			end.Down(end.now, protocol.Rank(link[1]))
			end.Up(end.now, protocol.Rank(link[1]))
			end.note(g.seed, choice{c.what, link[0], link[1]}, nil)
			g.pump(link[0])
		}
	}
	g.pump(c.to)
}

// note adds to a member's history.
func (m *exploredMember) note(seed maphash.Seed, c choice, frame []byte) {
	h := maphash.Comparable(seed, c) ^ maphash.Bytes(seed, frame)
	m.history = m.history*0x9e3779b97f4a7c15 + h | 1
}

// receive is a program that takes one message, and checks it.
func (g *exploredGroup) receive(rank int) {
	m := g.members[rank]
	d, ok := m.Deliver(m.now)
	switch {
	case !ok:
	case d.Lost > 0:
		g.err = fmt.Errorf("rank %d has lost %d messages of rank %d", rank, d.Lost, d.Root)
	case !bytes.Equal(d.Data, message(d.Root, m.delivered[d.Root], g.bounds.size)):
		g.err = fmt.Errorf("rank %d got another message than number %d of rank %d", rank, m.delivered[d.Root], d.Root)
	default:
		m.delivered[d.Root]++
	}
}

// pump puts the frames that a member sends on their connections.
func (g *exploredGroup) pump(rank int) {
	m := g.members[rank]
	for {
		to, head, body, ok := m.Next(m.now)
		if !ok {
			break
		}
		link := [2]int{rank, int(to)}
		g.links[link] = append(g.links[link], slices.Concat(head, body))
	}
	for root := range g.bounds.roots {
		if ahead := g.members[root].written - m.delivered[root]; root != rank && ahead < 0 {
			g.err = fmt.Errorf("rank %d has more of rank %d than that has written", rank, root)
		}
	}
}

func (g *exploredGroup) key() (k uint64) {
	for _, m := range g.members {
		k = k*0xbf58476d1ce4e5b9 + m.history
	}
	return k
}

// finish lets everything happen fairly from here on. All messages have to arrive.
func (g *exploredGroup) finish() error {
	g.bounds.breaks, g.bounds.ticks = 0, 1<<30
	for range 3000 {
		before := g.key()
		for _, c := range g.choices() {
			if c.what != "tick" {
				g.take(c)
			}
		}
		for _, c := range g.choices() {
			// The clocks run on only when nothing else happens.
			if c.what == "tick" && g.key() == before {
				g.take(c)
				before = g.key()
			}
		}
		if g.err != nil || g.complete() {
			return g.err
		}
	}
	return fmt.Errorf("the group stands still: delivered %v", g.progress())
}

func (g *exploredGroup) progress() (delivered [][]int) {
	for _, m := range g.members {
		delivered = append(delivered, m.delivered)
	}
	return delivered
}

func (g *exploredGroup) complete() bool {
	for r, m := range g.members {
		for root := range g.bounds.roots {
			if root != r && m.delivered[root] < g.bounds.messages {
				return false
			}
		}
	}
	return true
}

// flowExplorer goes through states, along random paths first.
type flowExplorer struct {
	bounds   explorerBounds
	seed     maphash.Seed
	rng      *rand.Rand
	seen     map[uint64]bool
	finished int
}

// replay returns the group after some choices.
func (e *flowExplorer) replay(path []choice) *exploredGroup {
	g := newExploredGroup(e.bounds, e.seed)
	for _, c := range path {
		g.take(c)
	}
	return g
}

// visit goes on from the state after a path. It returns the path to a violation.
func (e *flowExplorer) visit(path []choice) ([]choice, error) {
	g := e.replay(path)
	if g.err != nil {
		return path, g.err
	}
	key := g.key()
	if e.seen[key] || len(e.seen) >= e.bounds.states {
		return nil, nil
	}
	e.seen[key] = true
	all := g.choices()
	e.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if len(e.seen)%16 == 0 || len(all) == 0 {
		e.finished++
		if err := g.finish(); err != nil {
			return path, err
		}
	}
	for _, c := range all {
		if at, err := e.visit(append(slices.Clip(path), c)); err != nil {
			return at, err
		}
	}
	return nil, nil
}

// "A member of a view has everything that was sent in it", in every order in which a
// small group can get there: nothing is lost or comes twice, and from every sixteenth
// state, and every last one, all messages arrive.
func TestExploreFlowControl(t *testing.T) {
	states := 3000
	switch {
	case testutil.Full.On():
		states = 100_000
	case testing.Short() || testutil.RaceEnabled:
		states = 300
	}
	for _, b := range []explorerBounds{
		{members: 2, roots: 2, messages: 5, size: 500, ticks: 4, breaks: 1},
		{members: 3, roots: 1, messages: 8, size: 500, ticks: 4, breaks: 1},
		{members: 3, roots: 3, messages: 5, size: 500, ticks: 3, breaks: 1},
		{members: 4, roots: 2, messages: 5, size: 500, ticks: 2, breaks: 2},
	} {
		t.Run(fmt.Sprintf("members=%d/roots=%d", b.members, b.roots), func(t *testing.T) {
			b.states = states
			e := &flowExplorer{bounds: b, seed: maphash.MakeSeed(), rng: rand.New(rand.NewPCG(1, 1)), seen: map[uint64]bool{}}
			if path, err := e.visit(nil); err != nil {
				t.Fatalf("%v, after %v", err, path)
			}
			t.Logf("%d states, %d taken to their end", len(e.seen), e.finished)
		})
	}
}
