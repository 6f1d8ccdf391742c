// Package catchup drives a [lifecycle.Member]: it sends the requests of a member to processes
// outside its view, answers theirs, and passes what the member learns to its machine. All decisions
// and times are those of the lifecycle.Member.
package catchup

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	"github.com/pleach-go/pleach/internal/base/access"
	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Config is a member as this package sees it.
type Config struct {
	lifecycle.MemberConfig // its Group is Machine
	Machine                *member.Machine
	Client                 *client.Client
	Logger                 *slog.Logger
	Life                   context.Context // ends with the membership
	Go                     func(func())    // starts a goroutine that the end of the membership waits for
	// Do calls a function with the lock of Machine, and then sends its frames. It returns an error
	// if the machine is not used any more. Look does so without sending.
	Do   func(func(now protocol.Time)) error
	Look func(func())
	// Moved takes where members are, within Do.
	Moved func(*lifecycle.Move)
}

// Driver drives a lifecycle.Member. Its methods are safe for concurrent use.
type Driver struct {
	Config
	member *lifecycle.Member // used within Do or Look
	asked  logsuppress.Causes
	timer  *time.Timer   // nil before Start
	armed  protocol.Time // what the timer is set to
	ended  func(successor *membership.Member)
}

// New returns a driver that only answers requests until it is started.
func New(c Config) *Driver {
	c.Group = c.Machine
	return &Driver{Config: c, member: lifecycle.NewMember(0, c.MemberConfig)}
}

// Start begins to ask the seeds.
func (d *Driver) Start(seeds []string) {
	_ = d.step(func(now protocol.Time) {
		d.armed = protocol.Never
		d.timer = time.AfterFunc(time.Hour, d.wake)
		d.member.SetSeeds(seeds)
	})
}

// SetSeeds replaces the seeds. The member's own address is not one of them.
func (d *Driver) SetSeeds(seeds []string) { d.Look(func() { d.member.SetSeeds(seeds) }) }

// Seeds returns the seeds and the addresses of the other members.
func (d *Driver) Seeds() (seeds []string) {
	d.Look(func() { seeds = d.member.Seeds() })
	return seeds
}

// Early asks a member to catch up that does not know the view that has admitted this process.
func (d *Driver) Early(peer protocol.Rank) {
	_ = d.step(func(now protocol.Time) { d.member.Early(now, peer) })
}

// Installed takes a new view, within Do.
func (d *Driver) Installed(v *membership.View) { d.member.Installed(v) }

// Requested answers a request.
func (d *Driver) Requested(r control.Request) (reply []byte) {
	if c, ok := r.(control.CatchUp); ok && !client.Dialable(c.Address) {
		return client.Refuse(errors.New("members cannot dial the address of the request"))
	}
	ok := false
	err := d.step(func(now protocol.Time) { reply, ok = d.member.Requested(now, r) })
	if err != nil || !ok {
		return client.Refuse(client.ErrNotAMember)
	}
	return reply
}

// Evicted looks for the process that has the ID of this one after a view has removed it, and calls
// ended with it, or with nil.
func (d *Driver) Evicted(view uint64, ended func(successor *membership.Member)) {
	err := d.step(func(now protocol.Time) {
		d.ended = ended
		d.member.Evicted(now, view)
	})
	if err != nil {
		ended(nil)
	}
}

// wake is called by the timer.
func (d *Driver) wake() {
	_ = d.step(func(protocol.Time) { d.armed = protocol.Never })
}

// step passes an input to the machine, and carries out its actions.
func (d *Driver) step(input func(now protocol.Time)) error {
	return d.Do(func(now protocol.Time) {
		input(now)
		for a := d.member.Next(now); a != nil; a = d.member.Next(now) {
			d.act(now, a)
		}
		if due := d.member.Deadline(); d.timer != nil && due < d.armed {
			d.armed = due
			d.timer.Reset(time.Duration(due - now))
		}
	})
}

// act carries out an action, within Do.
func (d *Driver) act(now protocol.Time, action lifecycle.Action) {
	switch a := action.(type) {
	case lifecycle.Ask:
		d.Go(func() { d.ask(&a) })
	case lifecycle.Learn:
		err := d.Machine.Learn(now, a.Decisions)
		if err != nil {
			d.Logger.Info("cannot catch up", "with", a.From, "cause", err)
		}
		d.member.Learned(now, a.From, err)
	case lifecycle.Remove:
		v := d.Machine.View()
		d.Logger.Warn("the group has continued without this member", "view", v.Number, "seed", a.From, "itsView", a.View)
		d.Machine.Removed(now, a.View, a.Holder)
	case lifecycle.Move:
		d.Moved(&a)
	case lifecycle.Ended:
		d.ended(a.Successor)
	}
}

// ask sends a request.
func (d *Driver) ask(a *lifecycle.Ask) {
	ctx, cancel := context.WithTimeout(d.Life, time.Duration(a.Timeout))
	defer cancel()
	var r lifecycle.Reply
	var from []*x509.Certificate
	r.Body, from, r.Err = d.Client.AskKnown(ctx, a.Address, a.Request)
	if _, ok := a.Request.(control.Founding); r.Err == nil && !ok {
		r.Body, r.Err = d.Client.Open(r.Body)
	}
	if r.Err == nil {
		r.Err = d.believe(from, a.Request, r.Body)
	}
	d.log(a, r.Err)
	_ = d.step(func(now protocol.Time) { d.member.Replied(now, a.Token, r) })
}

// believe returns an error if the process that replies has no right to do so. Decisions are believed
// of a process that this member knows, or that the decisions themselves have added.
func (d *Driver) believe(from []*x509.Certificate, request control.Request, reply []byte) error {
	switch request.(type) {
	case control.Introduce:
		return d.Client.Believe(from, request, reply)
	case control.Decisions:
		decisions, err := membership.DecodeDecisions(reply)
		if err != nil {
			return err
		}
		var v membership.View
		d.Look(func() { v = d.Machine.View() })
		return d.Client.Authorizer(&v, decisions).Check(from, access.Decide, access.Claim{})
	}
	return nil
}

// errCatchesUp is the answer of a member that catches up.
var errCatchesUp = errors.New("it requests the decisions")

// log logs the result of a request about decisions.
func (d *Driver) log(a *lifecycle.Ask, err error) {
	switch r := a.Request.(type) {
	case control.CatchUp:
		answer := cmp.Or(err, errCatchesUp)
		if _, changed := d.asked.Changed(a.Address, answer); changed {
			d.Logger.Info("member is asked to catch up", "address", a.Address, "view", r.View, "answer", answer)
		}
	case control.Decisions:
		if err != nil {
			d.Logger.Info("cannot catch up", "with", a.Address, "cause", err)
		}
	}
}
