package agent

import (
	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
)

// Status implements [api.Agent].
func (a *Agent) Status() (*api.Status, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	s := &api.Status{Status: g.Status(), Agent: api.AgentStatus{
		Zone: a.config.Load().Zone, Version: a.options.Version,
		Began: a.began,
	}}
	s.Agent.Retained, s.Agent.RetainedBytes = a.store.log.Retained()
	if err := a.store.saveError(); err != nil {
		s.Agent.LogError = err.Error()
	}
	s.Agent.Warnings = a.groupWarnings(g)
	err = a.Ready()
	s.Agent.Ready = err == nil
	if err != nil {
		s.Agent.NotReady = err.Error()
	}
	if now := a.services.Load(); now != nil {
		s.Agent.KeysBegun = now.keys.Store.BegunIn()
	}
	return s, nil
}

// Views implements [api.Agent].
func (a *Agent) Views() (*api.Views, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	return &api.Views{Views: g.Status().History}, nil
}

// Members implements [api.Agent].
func (a *Agent) Members() (*api.Members, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	return membersOf(g.View(), g.Status()), nil
}

// membersOf lists the members of a view, with what the status has of them.
func membersOf(view pleach.View, s pleach.Status) *api.Members {
	members := &api.Members{
		View: view.Number, Slots: view.Slots, Self: s.Rank, Leader: view.Leader().Rank,
		Members: make([]api.Member, view.Size()),
	}
	suspects, peers := make(map[int]*pleach.Suspect, len(s.Suspects)), make(map[int]*pleach.PeerStatus, len(s.Peers))
	for i := range s.Suspects {
		suspects[s.Suspects[i].Rank] = &s.Suspects[i]
	}
	for i := range s.Peers {
		peers[s.Peers[i].Rank] = &s.Peers[i]
	}
	for i, m := range view.Members() {
		member := &members.Members[i]
		*member = api.Member{
			MemberRef: api.MemberRef{Rank: m.Rank, ID: m.ID}, Address: m.Address, FailureDomain: m.FailureDomain,
			Incarnation: m.Incarnation, Meta: m.Meta, Observer: m.Observer, State: api.Alive,
		}
		if m.Rank == s.Rank && len(s.History) > 0 {
			member.Since = s.History[0].Time
		}
		if p := peers[m.Rank]; p != nil && p.ID == m.ID {
			member.Since = p.Since
		}
		if suspect := suspects[m.Rank]; suspect != nil && suspect.ID == m.ID {
			member.State, member.SuspectedSince, member.Cause = api.Suspected, suspect.Since, suspect.Cause
		}
	}
	return members
}
