package pleach

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

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/door"
	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// seedInterval is how often a member turns to a seed, and seedTimeout bounds a request.
const (
	seedInterval = 2 * time.Second
	seedTimeout  = 2 * time.Second
)

// SetSeeds replaces the seeds that this process has joined by. A member asks them whether
// the group has gone on without it when it has no quorum, so a program whose seeds have moved
// to other addresses meanwhile calls it then.
func (g *Group) SetSeeds(seeds ...string) {
	s := g.session()
	others := slices.DeleteFunc(slices.Clone(seeds), func(seed string) bool { return seed == s.Self().Address })
	s.seeds.Store(&others)
}

// keepSeeds turns to one seed after the other while this process is a member.
func (g *session) keepSeeds() {
	for turn := 0; ; turn++ {
		select {
		case <-g.life.Done():
			return
		case <-time.After(seedInterval):
		}
		seeds := slices.Clone(*g.seeds.Load())
		lost := g.quorumErr.Load() != nil
		if lost {
			seeds = append(seeds, g.otherAddresses()...)
		}
		if len(seeds) == 0 {
			continue
		}
		seed := seeds[turn%len(seeds)]
		switch {
		case lost:
			g.askSeed(seed)
		case g.config.Expect > 0 && !g.hasMemberAt(seed):
			g.tellSeed(seed)
		}
	}
}

// otherAddresses are those of the other members of the view.
func (g *session) otherAddresses() (addresses []string) {
	for _, m := range g.view.Load().Members.All() {
		if m.Rank != g.self.Rank {
			addresses = append(addresses, m.Address)
		}
	}
	return addresses
}

// hasMemberAt reports whether a member of the view has an address.
func (g *session) hasMemberAt(address string) bool {
	for _, m := range g.view.Load().Members.All() {
		if m.Address == address {
			return true
		}
	}
	return false
}

// tellSeed tells a seed that there is a group. It is told again.
func (g *session) tellSeed(seed string) {
	ctx, cancel := context.WithTimeout(g.life, seedTimeout)
	defer cancel()
	self := founding.Candidate{ID: g.self.Identity, Nonce: g.self.Nonce, Address: g.self.Address}
	r := control.Founding{Request: founding.Request{From: self, Group: g.self.Address}}
	_, _ = tcp.Request(ctx, clientOf(&g.config, nil), seed, control.Encode(r))
}

// askSeed asks a process for the latest view that it knows. If that is later, this member
// learns it, or ends because the group has gone on without it. A process that does not
// answer is asked again.
func (g *session) askSeed(seed string) {
	ctx, cancel := context.WithTimeout(g.life, seedTimeout)
	defer cancel()
	i, err := askIntroduction(ctx, clientOf(&g.config, nil), seed, &control.Question{From: control.Contact{ID: g.self.Identity, Address: g.self.Address}})
	if err != nil || i.View == nil {
		return
	}
	_ = g.node.Do(func(now protocol.Time) {
		switch behind, removed := g.machine.Behind(i.View); {
		case removed && i.Role == control.Candidate: // what it was in may be another group of this name
		case removed:
			g.log.Warn("the group has gone on without this member", "view", g.machine.View().Number, "seed", seed, "itsView", i.View.Number)
			g.inputs.Removed(now, i.View.Number, i.View.Successor(&g.self))
		case behind:
			_ = g.inputs.Learn(now, i.Decisions)
		}
	})
}

// fetchView requests the view of a member.
func fetchView(c *Config, ctx context.Context, address string) (membership.View, error) {
	b, err := requestOnce(ctx, clientOf(c, nil), address, control.View{})
	if err != nil {
		return membership.View{}, err
	}
	r, err := control.DecodeView(b)
	return r.View, err
}

// answerFounding answers a candidate that looks for a group: here it is. A candidate
// that is in the first view enters it as long as that is the current one.
func (g *session) answerFounding(r *founding.Request) []byte {
	began := g.began
	if g.view.Load().Number > 1 {
		began = nil
	}
	reply := founding.Answer(founding.Candidate{ID: g.self.Identity, Address: g.self.Address}, began, r)
	return reply.Encode(nil)
}

// askIntroduction asks the process at an address to introduce itself.
func askIntroduction(ctx context.Context, c tcp.Config, address string, q *control.Question) (*control.Introduction, error) {
	b, err := requestOnce(ctx, c, address, control.Introduce{Question: *q})
	if err != nil {
		return nil, err
	}
	return control.DecodeIntroduction(b)
}

// catchUpInterval is how often a member that is behind requests decisions of a process,
// catchUpTries how many times, and catchUpTimeout bounds each request.
const (
	catchUpInterval = 2 * time.Second
	catchUpTries    = 5
	catchUpTimeout  = 2 * time.Second
)

// askToCatchUp tells a member that is behind where it gets the decisions that it lacks.
func (g *session) askToCatchUp(peer protocol.Rank) {
	m, ok := g.view.Load().Member(peer)
	if !ok || g.config.Transport != nil {
		return
	}
	request := control.CatchUp{View: g.self.Incarnation, Address: g.self.Address}
	g.asking.Go(func() {
		ctx, cancel := context.WithTimeout(g.life, catchUpTimeout)
		defer cancel()
		_, err := requestOnce(ctx, clientOf(&g.config, nil), m.Address, request)
		if _, changed := g.behind.Changed(m.Address, cmp.Or(err, errCatchesUp)); changed {
			g.log.Info("member is asked to catch up", "peer", peer, "view", g.self.Incarnation, "answer", cmp.Or(err, errCatchesUp))
		}
	})
}

// errCatchesUp is the answer of a member that catches up.
var errCatchesUp = errors.New("it requests the decisions")

// catchUpWith begins to catch up with a process that has joined in a later view, unless
// this member does so already.
func (g *session) catchUpWith(view uint64, address string) error {
	stuck := false
	_ = g.node.Do(func(protocol.Time) { stuck = g.machine.Stuck() })
	if !stuck {
		return &control.Refusal{Status: control.Retry, Text: member.ErrGoesOn.Error()}
	}
	if dialable(address) {
		g.beginToCatchUp(view, address)
	}
	return nil
}

// beginToCatchUp catches up with a process, unless this member catches up already.
func (g *session) beginToCatchUp(view uint64, address string) {
	if g.catchingUp.CompareAndSwap(false, true) {
		g.asking.Go(func() {
			defer g.catchingUp.Store(false)
			g.catchUp(view, address)
		})
	}
}

// catchUp requests decisions of a process until this member has installed a view or has
// ended, or the process does not answer. It gives up after some requests: another process
// may know more.
func (g *session) catchUp(view uint64, address string) {
	for tries := 0; tries < catchUpTries && g.life.Err() == nil && g.view.Load().Number < view; tries++ {
		d, err := g.fetchDecisions(address)
		if err == nil {
			_ = g.node.Do(func(now protocol.Time) { err = g.inputs.Learn(now, d) })
		}
		if errors.Is(err, member.ErrGoesOn) {
			return
		}
		if err != nil {
			g.log.Info("cannot catch up", "with", address, "view", view, "cause", err)
			return
		}
		select {
		case <-g.life.Done():
		case <-time.After(catchUpInterval):
		}
	}
}

// fetchDecisions requests the last decisions of a member. Only one that this member knows,
// or that the decisions themselves have added, is believed.
func (g *session) fetchDecisions(address string) (membership.Decisions, error) {
	ctx, cancel := context.WithTimeout(g.life, catchUpTimeout)
	defer cancel()
	b, from, err := requestKnown(ctx, &g.config, address, control.Decisions{})
	if err == nil {
		b, err = openReply(b)
	}
	var d membership.Decisions
	if err == nil {
		d, err = membership.DecodeDecisions(b)
	}
	if err == nil {
		err = doorOf(&g.config, g.view.Load(), d).Check(from, door.Decide, door.Claim{})
	}
	return d, err
}
