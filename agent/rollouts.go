package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/gate"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/fleet"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/rollout"
)

// Rollouts are a state machine of an order of its own: agents of earlier versions, which do not have
// it, keep their keys and locks with those that do.

// rolloutsTopic is the topic of the order. Agents of earlier versions ignore it.
const rolloutsTopic = config.ReservedTopics + "rollouts"

// rolloutsMachine is the name of the machine.
const rolloutsMachine = "rollouts"

// rollouts are those of one membership.
type rollouts struct {
	shared  *replicated.Shared
	replica *replicated.Replica
	table   *rollout.Table
	part    *rollout.Rollouts // nil: it has not begun
}

// expect makes the rollouts of a membership that is about to begin.
func (r *rollouts) expect() (err error) {
	r.table = rollout.NewTable()
	r.shared, err = replicated.NewShared(replicated.SharedConfig{
		Topic: rolloutsTopic, Machines: map[string]replicated.Machine{rolloutsMachine: r.table},
	})
	return err
}

// start begins the rollouts in a group.
func (r *rollouts) start(a *Agent, g *pleach.Group) (err error) {
	r.replica = r.shared.Start(g)
	r.part, err = rollout.New(rollout.Config{
		Replica: r.replica, Machine: rolloutsMachine, Table: r.table, Takes: isAgent,
		Apply:  func(_ context.Context, r rollout.Release) error { return a.release(g, &r, (*transfer.Local).Install) },
		Revert: func(_ context.Context, r rollout.Release) error { return a.release(g, &r, restore) },
		Gate:   a.gate,
	})
	return err
}

// stop ends the rollouts of a membership that has ended.
func (r *rollouts) stop() {
	if r.replica != nil {
		_ = r.replica.Close()
	}
	if r.part != nil {
		r.part.Close()
	}
}

// isAgent reports whether a member is an agent. Others do not take part in rollouts.
func isAgent(m pleach.Member) bool {
	return config.Tags(fleet.ProgramMeta(m.Meta))[config.VersionTag] != ""
}

// released is the payload of a rollout: a message for the subscribers and handlers of an agent, or a file.
type released struct {
	Topic string           `json:"topic,omitempty"`
	File  *api.RolloutFile `json:"file,omitempty"`
	Data  []byte           `json:"data,omitempty"`
}

// local returns the file of a rollout in this agent's directories.
func (m *released) local(a *Agent, id string) *transfer.Local {
	return &transfer.Local{
		Dirs: a.config.Load().FileDirs, Dir: m.File.Dir, Name: m.File.Name, Mode: fs.FileMode(m.File.Mode), ID: id,
	}
}

func restore(l *transfer.Local, _ []byte) error { return l.Restore() }

// rolloutHeader is the key of a message's header with the ID of the rollout.
const rolloutHeader = "rollout"

// release gives a message of a rollout to the subscribers and handlers of this agent, or does something
// with a file. The message has no place among the broadcasts of a view: other agents do not get it from
// this one's log.
func (a *Agent) release(g *pleach.Group, r *rollout.Release, do func(*transfer.Local, []byte) error) error {
	var m released
	if err := json.Unmarshal(r.Data, &m); err != nil {
		return err
	}
	if m.File != nil {
		return do(m.local(a, r.ID), m.Data)
	}
	a.store.push(arrival{message: retention.Message{
		Topic: m.Topic, From: g.Rank(), View: g.View().Number, Time: time.Now(),
		Header: pleach.Header{rolloutHeader: r.ID}, Data: m.Data,
	}})
	return nil
}

// Gates that every agent has.
const (
	noGate    = ""
	readyGate = "ready"
)

// gate evaluates a threshold, or asks the command that this agent's own file has for a gate: that of
// a query.
func (a *Agent) gate(ctx context.Context, r rollout.Release) error {
	switch r.Gate {
	case noGate:
		return nil
	case readyGate:
		return a.Ready()
	}
	if gate.IsThreshold(r.Gate) {
		return a.meets(r.Gate)
	}
	handlers := a.config.Load().Handlers
	i := slices.IndexFunc(handlers, func(h config.Handler) bool { return h.Query == r.Gate })
	if i < 0 {
		return fmt.Errorf("it has no handler for the query %q", r.Gate)
	}
	var m released
	if err := json.Unmarshal(r.Data, &m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, handlers[i].Timeout)
	defer cancel()
	variables := append(a.variables(), "PLEACH_QUERY="+r.Gate, "PLEACH_ROLLOUT="+r.ID, "PLEACH_TOPIC="+m.Topic)
	if m.File != nil {
		variables = append(variables, "PLEACH_FILE="+m.local(a, r.ID).Path())
	}
	_, err := handlers[i].Run.Run(ctx, m.Data, variables...)
	return err
}

// meets evaluates a threshold by this agent's metrics. One that cannot be evaluated is not met.
func (a *Agent) meets(condition string) error {
	threshold, err := gate.Parse(condition)
	if err != nil {
		return err
	}
	families, err := a.gatherers(a.registry()).Gather()
	if err != nil {
		return err
	}
	return threshold.Check(families)
}

// Rollouts implements [api.Rollouts].
func (a *Agent) Rollouts(ctx context.Context) (*api.RolloutList, error) {
	return served(ctx, a, func(s *services) (*api.RolloutList, error) {
		all, err := s.rollouts.part.List(ctx)
		list := &api.RolloutList{Rollouts: make([]api.Rollout, len(all))}
		for i := range all {
			list.Rollouts[i] = *rolloutOf(&all[i])
		}
		return list, err
	})
}

// Rollout implements [api.Rollouts].
func (a *Agent) Rollout(ctx context.Context, id string) (*api.Rollout, error) {
	return served(ctx, a, func(s *services) (*api.Rollout, error) {
		status, err := s.rollouts.part.Status(ctx, id)
		return rolloutOf(&status), err
	})
}

// StartRollout implements [api.Rollouts].
func (a *Agent) StartRollout(ctx context.Context, o *api.RolloutSpec) (*api.Rollout, error) {
	spec, err := rolloutSpec(o)
	if err != nil {
		return nil, api.BadRequest(err)
	}
	if err := checkTopic(o.Topic); err != nil {
		return nil, err
	}
	return served(ctx, a, func(s *services) (*api.Rollout, error) {
		id, err := s.rollouts.part.Start(ctx, spec)
		if err != nil {
			return nil, err
		}
		status, err := s.rollouts.part.Status(ctx, id)
		return rolloutOf(&status), err
	})
}

// ChangeRollout implements [api.Rollouts].
func (a *Agent) ChangeRollout(ctx context.Context, id string, change api.RolloutChange) (*api.Rollout, error) {
	return served(ctx, a, func(s *services) (*api.Rollout, error) {
		p := s.rollouts.part
		f := map[api.RolloutChange]func(context.Context, string) error{
			api.PauseRollout: p.Pause, api.ResumeRollout: p.Resume, api.StopRollout: p.Stop, api.RevertRollout: p.Revert,
		}[change]
		if err := f(ctx, id); err != nil {
			return nil, err
		}
		status, err := p.Status(ctx, id)
		return rolloutOf(&status), err
	})
}

// rolloutSpec returns what a client asks for.
func rolloutSpec(o *api.RolloutSpec) (rollout.Spec, error) {
	s := rollout.Spec{
		Name: o.Label(), Gate: o.Gate, Waves: o.Waves, ByDomain: o.ByDomain,
		Hold: api.Duration(o.Hold), Timeout: api.Duration(o.Timeout), StopOnDeath: o.StopOnDeath,
		PauseOnFailure: o.PauseOnFailure,
	}
	if gate.IsThreshold(o.Gate) {
		if _, err := gate.Parse(o.Gate); err != nil {
			return s, err
		}
	}
	data, err := o.Bytes()
	if err != nil {
		return s, err
	}
	s.Payload, err = json.Marshal(released{o.Topic, o.File, data})
	switch {
	case err != nil || o.Revert == nil && o.File == nil:
		return s, err
	case o.File != nil && (o.Revert != nil || o.Topic != ""):
		return s, errors.New("a file has no topic, and is reverted to what each member had before: write no revert")
	case o.File != nil:
		data, err = nil, transfer.CheckFile(o.File.Name, o.File.Dir, int64(len(data)))
	default:
		data, err = o.Revert.Bytes()
	}
	if err != nil {
		return s, err
	}
	s.Revert, err = json.Marshal(released{o.Topic, o.File, data})
	return s, err
}

func rolloutOf(s *rollout.Status) *api.Rollout {
	r := &api.Rollout{
		ID: s.ID, Name: s.Name, Gate: s.Gate, Phase: string(s.Phase), Paused: s.Paused, Ended: s.Phase.Ended(),
		Wave: s.Wave, Waves: s.Waves, Reason: s.Reason, Hold: s.Hold.Seconds(),
		Members: make([]api.RolloutMember, len(s.Members)),
	}
	for i, m := range s.Members {
		r.Members[i] = api.RolloutMember{
			ID: m.ID, FailureDomain: m.FailureDomain, Wave: m.Wave, State: m.State, Has: m.Has, Reason: m.Reason,
		}
	}
	return r
}
