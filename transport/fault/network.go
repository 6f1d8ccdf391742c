// Package fault makes a network bad on purpose. It wraps any transport, and
// drops, duplicates, reorders and delays its frames, cuts and partitions it, and
// freezes, resets and kills its members, by a script or by hand:
//
//	n := fault.New(seed, fault.Config{})
//	t := n.Wrap(rank, inner) // one for each member, used in place of inner
//	script, err := fault.Parse("drop 5%\nat 100ms cut 3 7")
//	err = n.Run(ctx, script)
//	n.Do(fault.Heal{})
//
// Frames meet their fate on the sender's side, where each direction of each pair
// has a random stream of its own, made from the seed. What happens to the tenth
// frame from 3 to 7 thus does not depend on what others do meanwhile.
package fault

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Config is how a network is made. Its zero value is good, and does no harm
// until told to.
type Config struct {
	// Held bounds the frames of one direction of a pair that are delayed or
	// held at one time. Frames beyond it are dropped. 0 means 1024.
	Held int
	// OnKill is called for each rank killed, after it has been cut off, by
	// whoever kills it. It is where a process is ended for good. May be nil.
	OnKill func(protocol.Rank)
	// Clock tells the time. Nil means that of the system, or of the
	// testing/synctest bubble.
	Clock Clock
}

// Clock is where delays come from.
type Clock interface {
	Now() time.Time
	// AfterFunc calls a function in a goroutine of its own after a time. The
	// function it returns stops that, if it has not happened yet.
	AfterFunc(time.Duration, func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// ErrReset is the cause that handlers are given for a connection that [Reset] broke.
var ErrReset = errors.New("fault: connection reset on purpose")

// Network does harm to the members it has wrapped. Its methods may be called
// from several goroutines, and from handlers.
type Network struct {
	seed   uint64
	config Config

	// mu guards all that follows, and all of every member and link. The inner
	// Send is called under it, which keeps the order of frames: Send never waits.
	mu      sync.Mutex
	stats   Stats
	members map[protocol.Rank]*member
	links   map[direction]*link
	frozen  map[protocol.Rank]bool

	// What befalls frames.
	drop      setting[float64]
	duplicate setting[float64]
	reorder   setting[Reorder]
	delay     setting[Delay]
	cut       setting[bool]
	partition Partition
}

// New makes a network that does no harm yet. Networks with the same seed decide alike.
func New(seed uint64, config Config) *Network {
	if config.Held <= 0 {
		config.Held = 1024
	}
	if config.Clock == nil {
		config.Clock = systemClock{}
	}
	return &Network{
		seed: seed, config: config,
		members: make(map[protocol.Rank]*member),
		links:   make(map[direction]*link),
		frozen:  make(map[protocol.Rank]bool),
	}
}

// Wrap returns a transport that is inner with this network's faults. To bring a
// killed rank back, wrap its new transport: the old one stays dead.
func (n *Network) Wrap(rank protocol.Rank, inner transport.Transport) transport.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.members[rank]; old != nil {
		old.end()
	}
	m := newMember(n, rank, inner)
	n.members[rank] = m
	return m
}

// Do applies faults, one after the other, now.
func (n *Network) Do(faults ...Fault) {
	for _, f := range faults {
		f.apply(n)
	}
}

// Stats returns what was done so far.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// severed reports whether frames in a direction get lost in a cut or partition.
func (n *Network) severed(d direction) bool {
	return n.cut.of(d) || n.partition.group(d.from) != n.partition.group(d.to)
}

// link returns the link of a direction.
func (n *Network) link(d direction) *link {
	l := n.links[d]
	if l == nil {
		l = newLink(n, d)
		n.links[d] = l
	}
	return l
}

// linksOf returns the links from a rank, and those to it if asked for, in a
// fixed order: a run shall not depend on that of a map.
func (n *Network) linksOf(rank protocol.Rank, toToo bool) []*link {
	var found []*link
	for d, l := range n.links {
		if d.from == rank || toToo && d.to == rank {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b *link) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	return found
}
