package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/kv"
	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/prom"
	"github.com/pleach-go/pleach/replicated"
)

// Keys and locks are state machines that all agents of a group keep, in an order that shares the
// group with the agents' other messages. There are new ones for each membership, which get the
// state from the other agents.

// servicesTopic is the topic of the order.
const servicesTopic = "pleach.order"

// Names of the machines.
const (
	keysMachine  = "keys"
	locksMachine = "locks"
)

// services are the keys and locks of one membership.
type services struct {
	shared  *replicated.Shared
	replica *replicated.Replica
	table   *lease.Table
	locks   *lease.Leases
	keys    kv.Keys
	ready   chan struct{} // closed when the fields above are set

	rollouts rollouts
}

// expectServices makes the services of a membership that is about to begin, in the group's
// config. The services take part when startServices is called.
func (a *Agent) expectServices(c *pleach.Config) error {
	s := &services{table: lease.NewTable(), ready: make(chan struct{})}
	s.keys = kv.Keys{Machine: keysMachine, Store: kv.NewStore()}
	var err error
	s.shared, err = replicated.NewShared(replicated.SharedConfig{
		Topic: servicesTopic, Machines: map[string]replicated.Machine{keysMachine: s.keys.Store, locksMachine: s.table},
		Begin: func(view uint64) {
			s.table.Begin(view, api.DefaultTTL)
			if view > 0 { // otherwise the group has begun with it
				s.keys.Store.Begun(view)
				a.beganEmpty(view)
			}
		},
	})
	if err != nil {
		return err
	}
	err = s.rollouts.expect()
	if err != nil {
		return err
	}
	if c != nil {
		c.Delivery.Echo, c.Delivery.Handlers = true, s.shared.Handlers()
		maps.Copy(c.Delivery.Handlers, s.rollouts.shared.Handlers())
	}
	a.services.Store(s)
	return nil
}

// startServices begins the services in a group, or ends them if there is none. It returns an error
// if the file with the tokens of locks cannot be used, because tokens could fall.
func (a *Agent) startServices(g *pleach.Group) error {
	s := a.services.Load()
	if g == nil && s != nil {
		a.services.Store(nil)
		s.shared.Cancel()
		s.rollouts.shared.Cancel()
	}
	if g == nil {
		return nil
	}
	s.replica = s.shared.Start(g)
	s.keys.Replica = s.replica
	locks, err := lease.New(lease.Config{Replica: s.replica, Machine: locksMachine, Table: s.table, TokenFloor: kv.Floor})
	if err != nil {
		return fmt.Errorf("locks: %w", err)
	}
	s.locks = locks
	if err := s.rollouts.start(a, g); err != nil {
		return fmt.Errorf("rollouts: %w", err)
	}
	close(s.ready)
	return nil
}

// withdraw leaves a group in which services cannot begin, and returns why.
func (a *Agent) withdraw(g *pleach.Group, why error) error {
	a.receiver.set(nil) // the order broadcasts, and its own messages wait for this
	a.endServices()
	return errors.Join(why, a.leave(g))
}

// endServices ends the services of a membership that has ended.
func (a *Agent) endServices() {
	if s := a.services.Swap(nil); s != nil {
		_ = s.replica.Close() // the group tells how it has ended
		s.rollouts.stop()
	}
}

// register adds the metrics of the services, if they have begun.
func (s *services) register(r *prometheus.Registry) {
	select {
	case <-s.ready:
		group := s.replica.Group().Status().Group
		r.MustRegister(prom.NewReplica(s.replica), prom.NewLeases(group, s.locks),
			gauge("pleach_agent_keys", "Keys that the agents keep.",
				func() float64 { n, _ := s.keys.Store.Size(); return float64(n) }),
			gauge("pleach_agent_keys_bytes", "Bytes of the keys that the agents keep, and of their values.",
				func() float64 { _, n := s.keys.Store.Size(); return float64(n) }))
	default:
	}
}

// served calls a function with the services, when they have begun.
func served[T any](ctx context.Context, a *Agent, call func(*services) (T, error)) (result T, err error) {
	s := a.services.Load()
	if s == nil {
		return result, api.ErrNotMember
	}
	select {
	case <-s.ready:
		return call(s)
	case <-ctx.Done():
		return result, api.ErrNotMember
	}
}
