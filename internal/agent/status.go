package agent

import (
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/agent/api"
)

// maxViews is how many views an agent remembers.
const maxViews = 64

// seen is what the agent has seen of views, and when.
type seen struct {
	mu      sync.Mutex
	members map[int]firstSeen // by rank
	views   []api.View
}

type firstSeen struct {
	incarnation uint64
	at          time.Time
}

// update takes in a view. The first one of a membership has no Joined and Left.
func (s *seen) update(v pleach.View, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.views); n > 0 && s.views[n-1].Number == v.Number {
		return // only its quorum has changed
	}
	members := make(map[int]firstSeen, v.Size())
	for _, m := range v.Members() {
		first := s.members[m.Rank]
		if first.incarnation != m.Incarnation {
			first = firstSeen{m.Incarnation, now}
		}
		members[m.Rank] = first
	}
	s.members = members
	s.views = append(s.views, api.View{Number: v.Number, Members: v.Size(), Joined: refsOf(v.Joined), Left: refsOf(v.Left), Time: now})
	s.views = s.views[max(0, len(s.views)-maxViews):]
}

func refsOf(members []pleach.Member) []api.MemberRef {
	refs := make([]api.MemberRef, len(members))
	for i, m := range members {
		refs[i] = api.MemberRef{Rank: m.Rank, ID: m.ID}
	}
	return refs
}

// Members implements [api.Agent].
func (a *Agent) Members() (*api.Members, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	members := a.members(g, g.Status())
	return &members, nil
}

// members lists the members of the view, and which are suspected.
func (a *Agent) members(g *pleach.Group, s pleach.Status) api.Members {
	view := g.View()
	suspects := make(map[int]pleach.Suspect, len(s.Suspects))
	for _, suspect := range s.Suspects {
		suspects[suspect.Rank] = suspect
	}
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	list := make([]api.Member, view.Size())
	for i, m := range view.Members() {
		list[i] = api.Member{
			MemberRef: api.MemberRef{Rank: m.Rank, ID: m.ID}, Address: m.Address, FailureDomain: m.FailureDomain,
			Incarnation: m.Incarnation, Meta: m.Meta, State: api.Alive, Since: a.seen.members[m.Rank].at,
		}
		if suspect, ok := suspects[m.Rank]; ok && suspect.ID == m.ID {
			list[i].State, list[i].SuspectedSince, list[i].Cause = api.Suspected, &suspect.Since, suspect.Cause.Error()
		}
	}
	return api.Members{View: view.Number, Slots: view.Slots, Self: g.Rank(), List: list}
}

// Status implements [api.Agent].
func (a *Agent) Status() (*api.Status, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	s := g.Status()
	status := &api.Status{
		Group: a.config.Load().Group, Version: a.options.Version, Members: a.members(g, s),
		Quorum: api.Quorum{OK: s.Quorum.OK, Reachable: s.Quorum.Reachable, Needed: s.Quorum.Needed},
	}
	status.Retained, status.RetainedBytes = a.messages.Retained()
	return status, nil
}

// Views implements [api.Agent].
func (a *Agent) Views() (*api.Views, error) {
	if _, err := a.current(); err != nil {
		return nil, err
	}
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	return &api.Views{Views: append([]api.View{}, a.seen.views...)}, nil
}
