package pleach

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/driver/arbitration"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Arbiter decides which half of a group's voters continues when exactly half of them is left: one of
// two members, or either side of an even partition. It is outside of the group, for example a
// Kubernetes Lease, etcd, or a file on shared storage.
//
// An arbiter stores the highest view that it has granted to a group, and the side that it has granted
// it to. It grants a claim to a higher view, and one to the same view by the same side. It must never
// forget a grant, or two sides may continue. One arbiter may serve any number of groups, which have
// different names. Its methods may be called concurrently.
type Arbiter interface {
	// Grant grants a view of a group to a side, which are half of the voters of the view before. It
	// returns true if the view is granted to this side, now or by an earlier call, and false if it, or
	// a later view, has been granted to another one. An error means that it is unknown: the caller
	// asks again. It returns when ctx ends.
	Grant(ctx context.Context, claim ArbiterClaim) (bool, error)
}

// ArbiterClaim is what a side asks an [Arbiter] for.
type ArbiterClaim struct {
	Group string   // name of the group
	View  uint64   // the number of the view that the side wants to install
	Side  []Member // the voters that are left, by rank: half of those of the view before
}

// Reasons in [QuorumError].Arbiter.
var (
	// ErrArbiterRefused: the arbiter has granted the next view, or a later one, to another side.
	ErrArbiterRefused = errors.New("the arbiter lets another side continue")
	// ErrArbiterUnavailable: the arbiter has not answered, and is asked again.
	ErrArbiterUnavailable = errors.New("the arbiter does not answer")
)

// ArbiterState says what a group's arbiter has answered.
type ArbiterState string

// The states of an arbiter.
const (
	ArbiterNone        ArbiterState = "none"      // the group has no arbiter
	ArbiterNotAsked    ArbiterState = "not-asked" // this process has not asked it since it became a member
	ArbiterGranted     ArbiterState = "granted"
	ArbiterRefused     ArbiterState = "refused"     // see ErrArbiterRefused
	ArbiterUnavailable ArbiterState = "unavailable" // see ErrArbiterUnavailable
)

// ArbiterStatus is the last answer of a group's arbiter to this process. Of the members of a half, only the
// one that coordinates asks.
type ArbiterStatus struct {
	State ArbiterState `json:"state"`
	// View is the number of the view that this process has asked for. It is zero if it has not asked.
	View uint64 `json:"view,omitempty"`
	// Since is when the first of the calls for that view ended that had this result, and LastCall when
	// the last one did.
	Since    time.Time `json:"since,omitzero"`
	LastCall time.Time `json:"last_call,omitzero"`
	// Cause is the error of the last call, if the arbiter is unavailable.
	Cause string `json:"cause,omitempty"`
}

// grantOf returns how to ask the arbiter of a group, or nil if it has none.
func grantOf(c *Config) arbitration.Grant {
	if c.Arbiter == nil {
		return nil
	}
	return func(ctx context.Context, claim membership.Claim) (bool, error) {
		side := make([]Member, len(claim.Side))
		for i := range claim.Side {
			side[i] = memberOf(&claim.Side[i])
		}
		return c.Arbiter.Grant(ctx, ArbiterClaim{Group: c.Group, View: claim.View, Side: side})
	}
}

// arbitrated asks the arbiter of the group, if it has one.
type arbitrated struct {
	*core
	cause error                         // why the arbiter has not answered last; used within node.Do
	last  atomic.Pointer[ArbiterStatus] // the last answer; nil: none yet
}

// asker returns what asks the arbiter for this membership, or nil.
func (a *arbitrated) asker(run func(func())) func(membership.Claim) {
	grant := grantOf(&a.config)
	if grant == nil {
		return nil
	}
	return arbitration.New(arbitration.Config{
		Grant: grant, Suspicion: heartbeatTimes(&a.config).Timeout, Life: a.life, Go: run, Judge: a.judge, Logger: a.log,
	}).Ask
}

// judge passes the answer of the arbiter to the member.
func (a *arbitrated) judge(c membership.Claim, v membership.Verdict, cause error) {
	_ = a.node.Do(func(now protocol.Time) {
		a.cause = cause
		a.note(c.View, v, cause)
		a.machine.Judge(now, c, v)
	})
}

// note records an answer, within node.Do.
func (a *arbitrated) note(view uint64, v membership.Verdict, cause error) {
	now := time.Now()
	s := &ArbiterStatus{State: ArbiterUnavailable, View: view, Since: now, LastCall: now}
	switch v {
	case membership.Granted:
		s.State = ArbiterGranted
	case membership.Refused:
		s.State = ArbiterRefused
	default:
		s.Cause = fmt.Sprint(cause)
	}
	if last := a.last.Load(); last != nil && last.State == s.State && last.View == view {
		s.Since = last.Since
	}
	a.last.Store(s)
}

// status returns the last answer.
func (a *arbitrated) status() ArbiterStatus {
	if a.config.Arbiter == nil {
		return ArbiterStatus{State: ArbiterNone}
	}
	if last := a.last.Load(); last != nil {
		return *last
	}
	return ArbiterStatus{State: ArbiterNotAsked}
}

// said returns what the arbiter has said about those that can be reached, or nil. It is called
// within node.Do.
func (a *arbitrated) said() error {
	var lost *membership.QuorumError
	if _, err := a.machine.State(); !errors.As(err, &lost) {
		return nil
	}
	switch lost.Arbiter {
	case membership.Refused:
		return ErrArbiterRefused
	case membership.Unanswered:
		return fmt.Errorf("%w: %w", ErrArbiterUnavailable, a.cause)
	}
	return nil
}
