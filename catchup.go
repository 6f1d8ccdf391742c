package pleach

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
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/door"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

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
