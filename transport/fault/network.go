// Package fault injects faults into any transport. It drops, duplicates, reorders and
// delays frames, cuts and partitions the network, and freezes, resets and kills
// members, by a script or by calls:
//
//	n := fault.New(seed, fault.Config{})
//	t := n.Wrap(rank, inner) // one for each member, used in place of inner
//	script, err := fault.Parse("drop 5%\nat 100ms cut 3 7")
//	err = n.Run(ctx, script)
//	n.Do(fault.Heal{})
//
// Faults apply on the sender's side, where each direction of each pair has a random
// stream of its own, derived from the seed. So the outcome of the tenth frame from 3
// to 7 does not depend on the frames of others.
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

// Config configures a [Network]. The zero value is valid.
type Config struct {
	// Held bounds the frames of one direction of a pair that are held at a time.
	// Frames beyond it are dropped. If zero, 1024.
	Held int
	// OnKill, if not nil, is called for each killed rank after it is cut off, by the
	// goroutine that kills it. The program ends the process of the rank there.
	OnKill func(protocol.Rank)
	// Clock is the source of time. If nil, package time, which in a testing/synctest
	// bubble is that of the bubble.
	Clock Clock
}

// Clock is a source of time.
type Clock interface {
	Now() time.Time
	// AfterFunc calls a function in a goroutine of its own after a time. The function
	// it returns prevents the call, and reports whether it did.
	AfterFunc(time.Duration, func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// ErrReset is the cause of a Down that [Reset] causes.
var ErrReset = errors.New("fault: connection reset on purpose")

// Network injects faults into the transports that it wraps. Its methods are safe for
// concurrent use, also from handlers.
type Network struct {
	seed   uint64
	config Config

	// mu guards the rest, and all fields of every member and link. The inner Send is
	// called under it, which keeps the order of frames: Send does not block.
	mu      sync.Mutex
	stats   Stats
	members map[protocol.Rank]*member
	links   map[direction]*link
	frozen  map[protocol.Rank]bool

	// The present faults of frames.
	drop      setting[float64]
	duplicate setting[float64]
	reorder   setting[Reorder]
	delay     setting[Delay]
	cut       setting[bool]
	partition Partition
}

// New makes a network without faults. Networks with the same seed decide alike.
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

// Wrap returns a transport that is inner with the faults of this network. To restart
// a killed rank, wrap its new transport; the old one stays dead.
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

// Do applies faults now, one after the other.
func (n *Network) Do(faults ...Fault) {
	for _, f := range faults {
		f.apply(n)
	}
}

// Stats returns the present counts.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// severed reports whether a cut or partition drops the frames of a direction.
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

// linksOf returns the links from a rank, and those to it if toToo is set. Their order
// is fixed, so that a run does not depend on that of a map.
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
