package pleach

// A member goes on talking to the seeds that it has joined by. It tells them that there
// is a group, if processes begin it together: one that was started again there may know no
// other address to ask. And it asks them whether it is still a member when it has no
// quorum: the members that it knows may all be gone, and have removed it before.

import (
	"context"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/founding"
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
