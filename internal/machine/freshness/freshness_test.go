package freshness

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// program is what a test has delivered and processed.
type program struct {
	delivered map[Stream]uint64
	total     uint64
	processed uint64
}

func (p *program) Delivered(s Stream) (uint64, bool) {
	position, ok := p.delivered[s]
	return position, ok
}
func (p *program) Mark() map[uint64]uint64             { return map[uint64]uint64{0: p.total} }
func (p *program) Passed(marks map[uint64]uint64) bool { return p.processed >= marks[0] }

func viewOf(number uint64, size int) *membership.View {
	members := make([]membership.Member, size)
	for r := range members {
		members[r] = membership.Member{
			Rank: protocol.Rank(r), Incarnation: 1, Identity: fmt.Sprint(r),
			Address: fmt.Sprint(r),
		}
	}
	return &membership.View{Number: number, Slots: protocol.Rank(size), Members: membership.MembersOf(members...)}
}

func TestAnswersAreEncoded(t *testing.T) {
	a := Answer{View: 7, Changing: true, Positions: map[Stream]uint64{{0, 3}: 9, {5, 1}: 0}}
	if got, err := Decode(a.Encode()); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range a.Encode() {
		if n >= 9 && (n-9)%24 == 0 {
			continue // an answer with fewer streams
		}
		if _, err := Decode(a.Encode()[:n]); err == nil {
			t.Errorf("the first %d bytes are taken for an answer", n)
		}
	}
}

// A round proves its beginning when a quorum of its view has answered that takes part in no change,
// all that the answers name is delivered, and the program has processed it.
func TestRoundProvesItsBeginning(t *testing.T) {
	const mine, theirs = 2, 0
	other := Stream{1, 1}
	calm, arbiter := Answer{View: 3}, "with an arbiter: "
	for _, c := range []struct {
		what    string
		size    int
		answers map[protocol.Rank]Answer
		program program
		proven  bool
	}{
		{"alone", 1, nil, program{}, true},
		{arbiter + "half with the lowest rank", 4, map[protocol.Rank]Answer{1: calm}, program{}, false},
		{arbiter + "alone of two", 2, nil, program{}, false},
		{arbiter + "a majority", 4, map[protocol.Rank]Answer{1: calm, 3: calm}, program{}, true},
		{"a majority", 3, map[protocol.Rank]Answer{1: calm}, program{}, true},
		{"a minority", 5, map[protocol.Rank]Answer{1: calm}, program{}, false},
		{"half with the lowest rank", 4, map[protocol.Rank]Answer{1: calm}, program{}, true},
		{"one that takes part in a change", 3, map[protocol.Rank]Answer{1: {View: 3, Changing: true}}, program{}, false},
		{"one in another view", 3, map[protocol.Rank]Answer{1: {View: 4}}, program{}, false},
		{"one that is no member", 3, map[protocol.Rank]Answer{9: calm}, program{}, false},
		{
			"something is not delivered", 3,
			map[protocol.Rank]Answer{1: {View: 3, Positions: map[Stream]uint64{other: 2}}},
			program{delivered: map[Stream]uint64{other: 1}},
			false,
		},
		{
			"something is lost", 3,
			map[protocol.Rank]Answer{1: {View: 3, Positions: map[Stream]uint64{other: 2}}},
			program{},
			false,
		},
		{
			"something is not processed", 3,
			map[protocol.Rank]Answer{1: {View: 3, Positions: map[Stream]uint64{other: 2}}},
			program{delivered: map[Stream]uint64{other: 2}, total: 5, processed: 4},
			false,
		},
		{
			"all is processed", 3,
			map[protocol.Rank]Answer{1: {View: 3, Positions: map[Stream]uint64{other: 2}}},
			program{delivered: map[Stream]uint64{other: 2}, total: 5, processed: 5},
			true,
		},
	} {
		m := Machine{Arbiter: strings.HasPrefix(c.what, arbiter)}
		number := m.Begin(mine, viewOf(3, c.size), theirs, calm)
		for from, a := range c.answers {
			m.Answer(number, from, a)
		}
		m.Look(3, &c.program)
		if proven := m.Proven() == mine; proven != c.proven {
			t.Errorf("%s: proven %t", c.what, proven)
		}
	}
}

// A round ends with its view.
func TestRoundEndsWithItsView(t *testing.T) {
	var m Machine
	number := m.Begin(1, viewOf(3, 3), 0, Answer{View: 3})
	m.Look(4, &program{})
	m.Answer(number, 1, Answer{View: 3})
	m.Look(3, &program{})
	if m.Proven() != 0 {
		t.Error("an answer in a view that has ended proves something")
	}
}

// world is a group in which random members send, receive, process, promise and install views.
type world struct {
	rng     *rand.Rand
	now     protocol.Time
	view    uint64           // the latest that is decided
	members []*worldMember   // in the view 1, of which all are
	sent    []sentMessage    // in order of time
	asked   map[uint64]asked // questions that are under way, by an ID
	next    uint64
}

type worldMember struct {
	rank      protocol.Rank
	view      uint64
	promised  bool
	positions map[Stream]uint64
	program   program
	machine   Machine
}

type sentMessage struct {
	at     protocol.Time
	stream Stream
	number uint64
	view   uint64
}

type asked struct {
	by, to protocol.Rank
	number uint64
	answer *Answer
}

// step does one thing at random.
func (w *world) step(t *testing.T, size int) {
	w.now++
	m := w.members[w.rng.IntN(size)]
	switch kind := w.rng.IntN(12); {
	case kind < 2: // it sends, unless it takes part in a change
		if !m.promised {
			s := Stream{m.rank, 1}
			m.positions[s]++
			m.program.delivered[s]++
			w.sent = append(w.sent, sentMessage{w.now, s, m.positions[s], m.view})
		}
	case kind < 5: // it receives what another one has
		if o := w.members[w.rng.IntN(size)]; o.view == m.view && !m.promised {
			for s, position := range o.positions {
				if m.positions[s] < position {
					m.positions[s]++
					m.program.delivered[s]++
					m.program.total++
					break
				}
			}
		}
	case kind < 7:
		m.program.processed = min(m.program.processed+1, m.program.total)
	case kind < 8:
		if number := m.machine.Begin(w.now, viewOf(m.view, size), m.rank, m.answer()); number > 0 {
			for _, o := range w.members {
				if o != m {
					w.next++
					w.asked[w.next] = asked{by: m.rank, to: o.rank, number: number}
				}
			}
		}
	case kind < 10: // a question or an answer arrives, or is lost
		for _, id := range slices.Sorted(maps.Keys(w.asked)) {
			q := w.asked[id]
			switch {
			case w.rng.IntN(4) == 0:
				delete(w.asked, id)
			case q.answer == nil:
				a := w.members[q.to].answer()
				q.answer = &a
				w.asked[id] = q
			default:
				w.members[q.by].machine.Answer(q.number, q.to, *q.answer)
				delete(w.asked, id)
			}
			if w.rng.IntN(2) == 0 {
				break
			}
		}
	case kind < 11:
		if m.view == w.view && w.rng.IntN(4) == 0 {
			m.promised = true // it freezes for the next view
		}
		promised := 0
		for _, o := range w.members {
			if o.promised && o.view == w.view {
				promised++
			}
		}
		if 2*promised > size {
			w.view++ // a quorum has promised: the view is decided, and some install it
		}
	default:
		if m.promised && m.view < w.view || m.view+1 < w.view {
			m.view, m.promised = w.view, false
		}
	}
	m.machine.Look(m.view, &m.program)
	w.check(t, m)
}

func (m *worldMember) answer() Answer {
	return Answer{View: m.view, Changing: m.promised, Positions: maps.Clone(m.positions)}
}

// check compares a proof with what was: no view was decided before it that the member does not
// have, so that whatever was sent before was sent in its views.
func (w *world) check(t *testing.T, m *worldMember) {
	t.Helper()
	proven := m.machine.Proven()
	for _, s := range w.sent {
		if s.at >= proven {
			return
		}
		if s.view > m.view {
			t.Fatalf("at %d, member %d in view %d has a proof for %d, and a message was sent in view %d at %d", w.now, m.rank,
				m.view, proven, s.view, s.at)
		}
	}
}

// Under random orders of sending, receiving, losing, promising and installing views, a proof never
// covers a moment at which a later view had sent something.
func TestProofsUnderSeeds(t *testing.T) {
	proofs := 0
	for seed := range uint64(testutil.Rounds.Or(300)) {
		size := 3 + int(seed%4)
		w := &world{rng: rand.New(rand.NewPCG(seed, 1)), view: 1, asked: make(map[uint64]asked)}
		for r := range size {
			w.members = append(w.members, &worldMember{
				rank: protocol.Rank(r), view: 1, positions: make(map[Stream]uint64),
				program: program{delivered: make(map[Stream]uint64)},
			})
		}
		for range 400 {
			w.step(t, size)
		}
		for _, m := range w.members {
			if m.machine.Proven() > 0 {
				proofs++
			}
		}
	}
	if proofs == 0 {
		t.Error("no proof at all")
	}
	t.Logf("%d members with proofs", proofs)
}
