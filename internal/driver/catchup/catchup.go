// Package catchup keeps a member in touch with processes outside its view.
//
// A member goes on talking to the seeds that it has joined by. It tells them that there
// is a group, if processes begin it together: one that was started again there may know no
// other address to ask. And it asks them whether it is still a member when it has no
// quorum: the members that it knows may all be gone, and have removed it before.
//
// A process may be the only live one that knows the view that has admitted it: the member
// that let it in has died. A member that does not know that view yet does not let the
// process connect. So the process asks the member to catch up, and the member requests
// the decisions that it lacks at the address of the process.
//
// Only a member that cannot go on by itself does so. One that has its quorum gets the
// decision from the others, and without TLS or a secret any process may ask.
package catchup

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/base/access"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// seedInterval is how often a member turns to a seed, and seedTimeout bounds a request.
const (
	seedInterval = 2 * time.Second
	seedTimeout  = 2 * time.Second
)

// Config is a member as this package sees it.
type Config struct {
	Client *client.Client
	Self   membership.Member
	Logger *slog.Logger
	Life   context.Context // ends with the membership
	Go     func(func())    // starts a goroutine that the end of the membership waits for
	// Tell says that processes begin the group together, so that seeds are told of it.
	Tell bool
	View func() *membership.View // the current one
	Lost func() bool             // reports whether the quorum is lost
	// Meet takes where a process says that it is, within Do.
	Meet func(control.Contact)
	// Do calls a function with the member's machine.
	Do func(func(now protocol.Time, m *member.Machine)) error
}

// Member keeps a member in touch.
type Member struct {
	Config
	seeds      atomic.Pointer[[]string] // without the member's own address
	asked      logsuppress.Causes       // the members that were asked to catch up
	catchingUp atomic.Bool
}

// New returns a member that has no seeds yet.
func New(c Config) *Member { return &Member{Config: c} }

// SetSeeds sets the seeds. The member's own address is none.
func (g *Member) SetSeeds(seeds []string) { g.seeds.Store(&seeds) }

// Seeds returns the seeds, and the addresses of the other members.
func (g *Member) Seeds() (seeds []string) {
	if given := g.seeds.Load(); given != nil {
		seeds = slices.Clone(*given)
	}
	for _, address := range g.others() {
		if !slices.Contains(seeds, address) {
			seeds = append(seeds, address)
		}
	}
	return seeds
}

// Run turns to one seed after the other while this process is a member.
func (g *Member) Run() {
	for turn := 0; ; turn++ {
		select {
		case <-g.Life.Done():
			return
		case <-time.After(seedInterval):
		}
		seeds := slices.Clone(*g.seeds.Load())
		lost := g.Lost()
		if lost {
			seeds = append(seeds, g.others()...)
		}
		if len(seeds) == 0 {
			continue
		}
		seed := seeds[turn%len(seeds)]
		switch {
		case lost:
			g.askSeed(seed)
		case g.Tell && !g.hasMemberAt(seed):
			g.tellSeed(seed)
		}
	}
}

// others returns the addresses of the other members of the view.
func (g *Member) others() (addresses []string) {
	for _, m := range g.View().Members.All() {
		if m.Rank != g.Self.Rank {
			addresses = append(addresses, m.Address)
		}
	}
	return addresses
}

// hasMemberAt reports whether a member of the view has an address.
func (g *Member) hasMemberAt(address string) bool {
	for _, m := range g.View().Members.All() {
		if m.Address == address {
			return true
		}
	}
	return false
}

// tellSeed tells a seed that there is a group. It is told again.
func (g *Member) tellSeed(seed string) {
	ctx, cancel := context.WithTimeout(g.Life, seedTimeout)
	defer cancel()
	self := founding.Candidate{ID: g.Self.Identity, Nonce: g.Self.Nonce, Address: g.Self.Address}
	r := control.Founding{Request: founding.Request{From: self, Group: g.Self.Address}}
	_, _, _ = g.Client.AskKnown(ctx, seed, r)
}

// askSeed asks a process for the latest view that it knows. If that is later, this member
// learns it, or ends because the group has gone on without it. A process that does not
// answer is asked again.
func (g *Member) askSeed(seed string) {
	ctx, cancel := context.WithTimeout(g.Life, seedTimeout)
	defer cancel()
	i, err := g.Client.Introduction(ctx, seed, &control.Question{From: control.Contact{ID: g.Self.Identity, Address: g.Self.Address}})
	if err != nil {
		return
	}
	_ = g.Do(func(now protocol.Time, m *member.Machine) {
		for _, c := range append(i.Others, i.Contact) {
			g.Meet(c)
		}
		if i.View == nil {
			return
		}
		switch behind, removed := m.Behind(i.View); {
		case removed && i.Role == control.Candidate: // what it was in may be another group of this name
		case removed:
			g.Logger.Warn("the group has gone on without this member", "view", m.View().Number, "seed", seed, "itsView", i.View.Number)
			m.Removed(now, i.View.Number, i.View.Successor(&g.Self))
		case behind:
			_ = m.Learn(now, i.Decisions)
		}
	})
}

// catchUpInterval is how often a member that is behind requests decisions of a process,
// catchUpTries how many times, and catchUpTimeout bounds each request.
const (
	catchUpInterval = 2 * time.Second
	catchUpTries    = 5
	catchUpTimeout  = 2 * time.Second
)

// Early tells a member that is behind where it gets the decisions that it lacks.
func (g *Member) Early(peer protocol.Rank) {
	m, ok := g.View().Member(peer)
	if !ok {
		return
	}
	request := control.CatchUp{View: g.Self.Incarnation, Address: g.Self.Address}
	g.Go(func() {
		ctx, cancel := context.WithTimeout(g.Life, catchUpTimeout)
		defer cancel()
		_, err := g.Client.Ask(ctx, m.Address, request)
		if _, changed := g.asked.Changed(m.Address, cmp.Or(err, errCatchesUp)); changed {
			g.Logger.Info("member is asked to catch up", "peer", peer, "view", g.Self.Incarnation, "answer", cmp.Or(err, errCatchesUp))
		}
	})
}

// errCatchesUp is the answer of a member that catches up.
var errCatchesUp = errors.New("it requests the decisions")

// Begin begins to catch up with a process that has joined in a later view, unless
// this member does so already.
func (g *Member) Begin(view uint64, address string) error {
	stuck := false
	_ = g.Do(func(_ protocol.Time, m *member.Machine) { stuck = m.Stuck() })
	if !stuck {
		return &control.Refusal{Status: control.Retry, Text: member.ErrGoesOn.Error()}
	}
	if client.Dialable(address) && g.catchingUp.CompareAndSwap(false, true) {
		g.Go(func() {
			defer g.catchingUp.Store(false)
			g.With(view, address)
		})
	}
	return nil
}

// With requests decisions of a process until this member has installed a view or has
// ended, or the process does not answer. It gives up after some requests: another process
// may know more.
func (g *Member) With(view uint64, address string) {
	for tries := 0; tries < catchUpTries && g.Life.Err() == nil && g.View().Number < view; tries++ {
		d, err := g.Decisions(address)
		if err == nil {
			_ = g.Do(func(now protocol.Time, m *member.Machine) { err = m.Learn(now, d) })
		}
		if errors.Is(err, member.ErrGoesOn) {
			return
		}
		if err != nil {
			g.Logger.Info("cannot catch up", "with", address, "view", view, "cause", err)
			return
		}
		select {
		case <-g.Life.Done():
		case <-time.After(catchUpInterval):
		}
	}
}

// Decisions requests the last decisions of a member. Only one that this member knows,
// or that the decisions themselves have added, is believed.
func (g *Member) Decisions(address string) (membership.Decisions, error) {
	ctx, cancel := context.WithTimeout(g.Life, catchUpTimeout)
	defer cancel()
	b, from, err := g.Client.AskKnown(ctx, address, control.Decisions{})
	if err == nil {
		b, err = g.Client.Open(b)
	}
	var d membership.Decisions
	if err == nil {
		d, err = membership.DecodeDecisions(b)
	}
	if err == nil {
		err = g.Client.Door(g.View(), d).Check(from, access.Decide, access.Claim{})
	}
	return d, err
}

// successorTimeout bounds how long a process that was removed asks whether another one
// has its ID, and askedMembers how many members it asks.
const (
	successorTimeout = 500 * time.Millisecond
	askedMembers     = 3
)

// Successor asks other members for their views, and returns the member that has this
// process's ID, or nil if none has or no member answers. Views before one are too old.
func (g *Member) Successor(since uint64) *membership.Member {
	members := g.others()
	members = members[:min(len(members), askedMembers)]
	ctx, cancel := context.WithTimeout(g.Life, successorTimeout)
	defer cancel()
	views := make(chan membership.View, len(members))
	for _, address := range members {
		g.Go(func() {
			v, _ := g.Client.View(ctx, address)
			views <- v
		})
	}
	for range members {
		v := <-views
		if v.Number < since {
			continue // it is behind, or has not answered
		}
		return v.Successor(&g.Self)
	}
	return nil
}
