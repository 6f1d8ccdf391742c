package replicated

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/session"
	"github.com/pleach-go/pleach/ordered"
)

// Machine is a state machine: a table, a queue, a count. All members of the group have the same
// ones, and apply the same commands to them in the same order. One goroutine calls its methods.
//
// If processes begin a group together, all of them Restore the machines of one of them: of the
// process whose machines offer the highest numbers in sum ([pleach.StateOffer]), and of equal ones
// or without offers, of the lowest rank. So machines may be loaded from a file before Join.
type Machine interface {
	// Apply applies a command and returns the result, which Propose returns in the process
	// that has proposed it. It depends on the command and on earlier ones only: not on
	// clocks, random numbers or the order of a map. It must not change command, or keep it.
	Apply(command []byte) (result []byte)
	// Snapshot writes the state.
	Snapshot(w io.Writer) error
	// Restore replaces the state by one that another member has written.
	Restore(r io.Reader) error
}

// Config configures [Join].
type Config struct {
	// Group is the config of the group, as that of [ordered.Config]. Its State must be nil:
	// the machines are the state. With Rejoin, a process that was removed rejoins
	// automatically: waiting calls return when it is back.
	Group pleach.Config
	// Machines are the state machines, by names of 1 to 255 bytes. All members have the same.
	Machines map[string]Machine
}

// Replica is this process's membership in a group that keeps state machines. Its methods are
// safe for concurrent use.
type Replica struct {
	order    *ordered.Order
	life     context.Context // ends with this membership; its cause is Err
	end      context.CancelCauseFunc
	running  sync.WaitGroup
	unsent   chan struct{}   // there may be a proposal to send
	room     notify.Notifier // notifies when fewer proposals wait
	machines map[string]Machine
	state    session.Replicas // of the goroutine that receives

	mu        sync.Mutex // guards the rest
	client    session.Client[*proposal]
	proposals Stats
}

// Stats counts what a replica has done.
type Stats struct {
	// Proposed counts commands and reads of this process, and Pending those that wait for
	// their results.
	Proposed uint64 `json:"proposed"`
	Pending  int    `json:"pending"`
	// Applied counts the commands that this process has applied, and Repeated those that came
	// again and were not.
	Applied  uint64 `json:"applied"`
	Repeated uint64 `json:"repeated"`
	// Order is that of the messages which carry commands.
	Order ordered.Stats `json:"order"`
}

// Join makes this process a member, as [ordered.Join] does: without seeds and Group.Expect it
// begins the group. ctx bounds the call, not the membership.
func Join(ctx context.Context, c Config, seeds ...string) (*Replica, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := newReplica(c.Machines)
	c.Group.State = &r.state
	c.Group.Agree = maps.Clone(c.Group.Agree)
	if c.Group.Agree == nil {
		c.Group.Agree = make(map[string]string)
	}
	c.Group.Agree["replicated.Machines"] = machineNames(c.Machines)
	var err error
	r.order, err = ordered.Join(ctx, ordered.Config{Group: c.Group, Safe: true}, seeds...)
	if err != nil {
		r.end(err)
		return nil, err
	}
	r.running.Go(r.receive)
	r.running.Go(r.send)
	return r, nil
}

// machineNames lists the machines, for members to compare: by a digest if the list is long.
func machineNames(machines map[string]Machine) string {
	names := strings.Join(slices.Sorted(maps.Keys(machines)), ",")
	if len(names) > 256 {
		return fmt.Sprintf("%d machines with digest %.8x", len(machines), sha256.Sum256([]byte(names)))
	}
	return names
}

func newReplica(machines map[string]Machine) *Replica {
	of := make(map[string]session.Machine, len(machines))
	for name, m := range machines {
		of[name] = m
	}
	r := &Replica{
		unsent: make(chan struct{}, 1), machines: machines, state: session.NewReplicas(of),
		client: session.NewClient[*proposal](newClientID()),
	}
	r.life, r.end = context.WithCancelCause(context.Background())
	return r
}

func newClientID() (id session.ClientID) {
	_, _ = rand.Read(id[:])
	return id
}

func (c *Config) check() error {
	if c.Group.State != nil {
		return &pleach.ConfigError{Field: "Group.State", Reason: "must be nil: the machines are the state"}
	}
	return checkMachines(c.Machines)
}

func checkMachines(machines map[string]Machine) error {
	for name := range machines {
		if len(name) == 0 || len(name) > 255 {
			return &pleach.ConfigError{Field: "Machines", Reason: "has a name that is empty or longer than 255 bytes"}
		}
	}
	return nil
}

// receive applies what the group has ordered, until this process is no longer a member.
func (r *Replica) receive() {
	for m, err := range r.order.Messages(r.life) {
		if err != nil { // this process has joined again: what it knows no result of goes again
			r.mu.Lock()
			r.client.Again()
			r.mu.Unlock()
			notify.Signal(r.unsent)
			continue
		}
		r.deliver(m)
	}
	if err := r.order.Err(); err != nil {
		r.end(err)
	}
}

// deliver applies a command, and tells the caller that has proposed it here.
func (r *Replica) deliver(m ordered.Message) {
	client, o, ok := r.state.Apply(m.Number, m.Topic, m.Data)
	r.mu.Lock()
	r.proposals.Applied, r.proposals.Repeated = r.state.Applied, r.state.Repeated
	var done []*proposal
	if ok && client == r.client.ID() {
		done = r.client.Complete(&o, newClientID)
	}
	r.mu.Unlock()
	for _, p := range done {
		p.finish(o)
		r.room.Notify()
	}
}

// Machine returns the machine of a name, or nil if Config.Machines does not have it.
func (r *Replica) Machine(name string) Machine { return r.machines[name] }

// Group returns the group, for its views, requests and topics.
func (r *Replica) Group() *pleach.Group { return r.order.Group() }

// Stats returns counters of this process.
func (r *Replica) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.proposals
	s.Pending, s.Order = r.client.Pending(), r.order.Stats()
	return s
}

// Err returns why this process is no longer a member, as [ordered.Order.Err] does.
func (r *Replica) Err() error {
	if r.life.Err() != nil {
		return context.Cause(r.life)
	}
	return r.order.Err()
}

// Done returns a channel that is closed when this process is no longer a member, and Err says why.
func (r *Replica) Done() <-chan struct{} { return r.life.Done() }

// Close leaves the group and releases its resources.
func (r *Replica) Close() error { return r.stop(r.order.Close) }

// Abort stops immediately without notifying the group; the other members see a crash.
func (r *Replica) Abort() error { return r.stop(r.order.Abort) }

func (r *Replica) stop(stop func() error) error {
	r.end(pleach.ErrClosed)
	err := stop()
	r.running.Wait()
	return err
}
