package pleach

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

// Reasons why a membership ended or a call failed. [Group.Err] returns those that end a
// membership.
var (
	// ErrClosed is returned after Close or Abort.
	ErrClosed = errors.New("pleach: group closed")
	// ErrLeft is returned after Leave.
	ErrLeft = errors.New("pleach: left the group")
	// ErrEvicted is returned when the other members have installed a view without
	// this process: they could not reach it, an operator has evicted it ([Evict]), or its
	// certificate is revoked. The error is an [*EvictedError]. Config.Recovery.Rejoin, or
	// [Group.Rejoin], makes this process a member again.
	ErrEvicted = errors.New("pleach: removed from the group")
	// ErrReplaced is returned when another process has taken this one's place in the
	// group: it has joined with the same ID. The error is a [*ReplacedError]. It is
	// final: [Group.Rejoin] returns it as well.
	ErrReplaced = errors.New("pleach: replaced by another process with the same ID")
	// ErrIdentityInUse is returned by Join when a live member has the ID of this
	// process. The error is an [*IdentityInUseError].
	ErrIdentityInUse = errors.New("pleach: ID in use by a live member")
	// ErrTooSlow is returned when this process has left the group because its program
	// received no message for Limits.SlowTimeout while others had to wait for it, or
	// because the process itself was starved of CPU. Config.Recovery.Rejoin, or [Group.Rejoin],
	// makes this process a member again.
	ErrTooSlow = errors.New("pleach: left the group because this process, or its program, is too slow")
	// ErrNoQuorum is returned by Broadcast while too few members are reachable. The
	// error is a [*QuorumError], also in [View.Err]. The process stays a member: Err is
	// nil, and Messages and Views continue. It passes when enough members are back, or ends with
	// ErrEvicted if the others have continued.
	ErrNoQuorum = errors.New("pleach: no quorum")
	// ErrLastVoter is returned by [Group.SetObserver] if no voter would be left.
	ErrLastVoter = errors.New("pleach: the last voter cannot be an observer")
	// ErrGone is returned by Send and Request when the receiver is not in the view, and by
	// Request when it has left it. The error is a [*GoneError].
	ErrGone = errors.New("pleach: not a member")
	// ErrNoHandler is wrapped in the [*RequestError] of a request that the receiver has no
	// handler for.
	ErrNoHandler = errors.New("pleach: no handler of that name")
	// ErrOverloaded is wrapped in the [*RequestError] of a request that the receiver has
	// not served, because it has too many (Config.Limits.Requests).
	ErrOverloaded = errors.New("pleach: too many requests")
	// ErrStatic is returned in a static group (Config.Static) by calls that need views.
	ErrStatic = errors.New("pleach: the membership of this group is static")
	// ErrRefused is returned when a member refuses a request to join or inspect its
	// group.
	ErrRefused = client.ErrRefused
	// ErrUnreachable is returned when a member could not reach this process at the
	// address that it advertises, so that it cannot join.
	ErrUnreachable = client.ErrUnreachable
)

// EvictedError is an [ErrEvicted] that names the views.
type EvictedError struct {
	// Rank was this process's. View is the last view it was in, and By the first
	// one known without it.
	Rank     int
	View, By uint64
	// Cause is [CauseEvicted] or [CauseRevoked] if the others have told so. Otherwise it is
	// empty.
	Cause Cause
}

func (e *EvictedError) Error() string {
	why := map[Cause]string{CauseEvicted: " by an operator", CauseRevoked: " because its certificate is revoked"}[e.Cause]
	return fmt.Sprintf("%v%s: rank %d of view %d is not in view %d; rejoin to become a member again", ErrEvicted, why,
		e.Rank, e.View, e.By)
}

// Unwrap returns [ErrEvicted].
func (e *EvictedError) Unwrap() error { return ErrEvicted }

// ReplacedError is an [ErrReplaced] that names the process that has replaced this one.
type ReplacedError struct {
	// Rank was this process's. View is the last view it was in, and By the one in
	// which the other process has its place.
	Rank     int
	View, By uint64
	// ID is that of both processes. Address and Incarnation are the other one's.
	ID, Address string
	Incarnation uint64
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("%v: rank %d of view %d is replaced by %q at %s, incarnation %d, in view %d",
		ErrReplaced, e.Rank, e.View, e.ID, e.Address, e.Incarnation, e.By)
}

// Unwrap returns [ErrReplaced].
func (e *ReplacedError) Unwrap() error { return ErrReplaced }

// IdentityInUseError is an [ErrIdentityInUse] that names the member that has the ID. It
// is also an [ErrRefused].
type IdentityInUseError struct {
	// ID is what both processes are called. Rank, Address and Incarnation are the
	// member's, in View.
	ID          string
	Rank        int
	Address     string
	Incarnation uint64
	View        uint64
	// Since is when the member that was asked has seen the other one join. It is zero
	// if that was before its own time; then Incarnation, the number of the view that
	// has admitted the other one, is all that is known.
	Since time.Time
}

func (e *IdentityInUseError) Error() string {
	since := fmt.Sprintf("since view %d", e.Incarnation)
	if !e.Since.IsZero() {
		since += e.Since.Format(" at " + time.RFC3339)
	}
	return fmt.Sprintf("%v: %q is rank %d at %s, %s, in view %d; choose another ID, or Config.Recovery.Replace to take its place",
		ErrIdentityInUse, e.ID, e.Rank, e.Address, since, e.View)
}

// Unwrap returns [ErrIdentityInUse] and [ErrRefused].
func (e *IdentityInUseError) Unwrap() []error { return []error{ErrIdentityInUse, ErrRefused} }

// QuorumError is an [ErrNoQuorum] that counts members.
type QuorumError struct {
	// Of the Members of View that vote, Reachable are not suspected and Needed would be enough.
	// Observers do not count.
	View                       uint64
	Reachable, Members, Needed int
	// Unreachable are the ranks of the others.
	Unreachable []int
	// Arbiter, in a group with Config.Arbiter, says why half of the voters does not continue: it wraps
	// [ErrArbiterRefused], or [ErrArbiterUnavailable] and the error of the last call. It is nil if there
	// is another reason, or no answer yet. Replies to operators do not have it.
	Arbiter error
}

func (e *QuorumError) Error() string {
	arbiter := ""
	if e.Arbiter != nil {
		arbiter = fmt.Sprintf(": %v", e.Arbiter)
	}
	return fmt.Sprintf("%v in view %d: %d of %d reachable, %d needed%s; it passes when enough members are back",
		ErrNoQuorum, e.View, e.Reachable, e.Members, e.Needed, arbiter)
}

// Unwrap returns [ErrNoQuorum], and Arbiter if there is one.
func (e *QuorumError) Unwrap() []error {
	if e.Arbiter != nil {
		return []error{ErrNoQuorum, e.Arbiter}
	}
	return []error{ErrNoQuorum}
}

// JoinError is returned when Join has not made this process a member.
type JoinError struct {
	Group string
	Seeds []string
	// Permanent means that Join would fail again with the same settings: a member has
	// refused this process for good ([ErrRefused]), or is of another group, version,
	// secret or certificate authority. Otherwise ctx has ended first.
	Permanent bool
	// Err is the error of the last attempt. It wraps that of ctx if ctx has ended.
	Err error
}

func (e *JoinError) Error() string { return fmt.Sprintf("group %q at %v: %v", e.Group, e.Seeds, e.Err) }

// Unwrap returns the cause.
func (e *JoinError) Unwrap() error { return e.Err }

// Err returns why this process is no longer a member. It returns nil while the
// process is a member and, with Config.Recovery.Rejoin, while it joins again.
func (g *Group) Err() error {
	if g.config.Recovery.Rejoin {
		return context.Cause(g.life)
	}
	return g.session().Err()
}

// Done returns a channel that is closed when this process is no longer a member, and [Group.Err]
// returns the reason. With Config.Recovery.Rejoin, the channel stays open while the process joins
// again. Without it, the channel is that of the present membership: call Done again after
// [Group.Rejoin].
func (g *Group) Done() <-chan struct{} {
	if g.config.Recovery.Rejoin {
		return g.life.Done()
	}
	return g.session().life.Done()
}

// Err returns why a membership has ended, or nil.
func (c *core) Err() error { return context.Cause(c.life) }

// updateState takes in the state of this membership, within node.Do.
func (g *session) updateState() {
	g.faults.updateSuspects()
	state, err := g.machine.State()
	switch state {
	case membership.Active:
		if g.quorumErr.Swap(nil) != nil {
			g.log.Info("quorum regained", "view", g.view.Load().Number)
			g.changed.Notify()
		}
	case membership.NoQuorum:
		lost := g.lostQuorum()
		before := g.quorumErr.Swap(lost)
		if before == nil || (before.Arbiter == nil) != (lost.Arbiter == nil) {
			g.changed.Notify()
		}
		if before == nil {
			g.log.Warn(fmt.Sprintf("no quorum: %d of %d, %d needed", lost.Reachable, lost.Members, lost.Needed),
				"view", lost.View)
		}
		g.direct.channel.FailUnreachable(g.machine.Unreachable(), lost)
		g.direct.room.Notify()
	case membership.Evicted:
		g.forgetVote()
		g.endEvicted(err)
	case membership.Left:
		g.forgetVote()
		if g.machine.TooSlow() {
			g.end(ErrTooSlow)
		}
		g.end(ErrLeft)
	}
}

// lostQuorum returns which members cannot be reached if they are too many, or nil. It is
// called within node.Do.
func (g *session) lostQuorum() *QuorumError {
	reachable, needed, ok := g.machine.Quorum()
	if ok {
		return nil
	}
	v := g.machine.View()
	lost := &QuorumError{View: v.Number, Reachable: reachable, Members: v.Voters(), Needed: needed}
	lost.Arbiter = g.faults.arbiter.said()
	for _, rank := range g.machine.Unreachable() {
		lost.Unreachable = append(lost.Unreachable, int(rank))
	}
	return lost
}

// clientOf is a process that has no rank.
func clientOf(c *Config) *client.Client {
	s := &c.Security
	p := &client.Client{
		Group: c.Group, TLS: s.TLS, HostCertificates: s.HostCertificates,
		Secrets: func() [][]byte { return secretsOf(c) }, Deny: s.followed.Deny,
		Dial: c.Network.Dial, Logger: c.Logger, Explain: explain, OnOperator: c.onOperator(),
	}
	if s.TLS != nil {
		p.Verify = func(claim tcp.Claim) error { return verifyUnknown(c, claim) }
	}
	return p
}

// explain translates the error of a reply.
func explain(err error) error {
	var inUse *control.InUse
	var version *control.Version
	var lost *control.NoQuorum
	var tooOld *control.TooOld
	switch {
	case errors.As(err, &tooOld):
		return observersNeed(tooOld.Version)
	case errors.As(err, &inUse):
		return &IdentityInUseError{
			ID: inUse.ID, Rank: int(inUse.Rank), Address: inUse.Address, Incarnation: inUse.Incarnation, View: inUse.View,
			Since: inUse.Since,
		}
	case errors.As(err, &version):
		return notSpoken(version.Version)
	case errors.As(err, &lost):
		return &QuorumError{View: lost.View, Reachable: lost.Reachable, Members: lost.Members, Needed: lost.Needed}
	}
	return err
}

// publicError translates an error of the membership protocol.
func publicError(err error) error {
	var evicted *membership.EvictedError
	var tooOld *membership.ObserverVersionError
	switch {
	case errors.Is(err, membership.ErrLastVoter):
		return ErrLastVoter
	case errors.As(err, &tooOld):
		return observersNeed(tooOld.Version)
	case errors.As(err, &evicted) && evicted.Successor != nil:
		s := evicted.Successor
		return &ReplacedError{
			Rank: int(evicted.Rank), View: evicted.View, By: evicted.By,
			ID: s.Identity, Address: s.Address, Incarnation: s.Incarnation,
		}
	case errors.As(err, &evicted):
		e := &EvictedError{Rank: int(evicted.Rank), View: evicted.View, By: evicted.By}
		if evicted.Cause != membership.Suspected {
			e.Cause = causeOf(evicted.Cause)
		}
		return e
	}
	return err
}

// sendErr returns why this member must not broadcast now.
func (c *core) sendErr() error {
	if err := c.Err(); err != nil {
		return err
	}
	if err := c.removal.Load(); err != nil {
		return *err
	}
	if lost := quorumLost(c); lost != nil {
		return lost
	}
	return nil
}

// quorumLost returns that the present view has lost its quorum, or nil. A new view is seen before
// the error of the one before is taken back.
func quorumLost(c *core) *QuorumError {
	if lost := c.quorumErr.Load(); lost != nil && lost.View == c.view.Load().Number {
		return lost
	}
	return nil
}

// wrap names the call and this member in an error.
func (c *core) wrap(call string, err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("pleach: %s of rank %d in view %d: %w", call, c.Rank(), c.view.Load().Number, err)
}

// VersionError means that a process, or a call, does not go with the protocol version of
// the group. It wraps [tcp.ErrVersion], and [ErrRefused].
type VersionError struct {
	// What is the process or the call.
	What string
	// Group is the version of the group. What needs one from Min to Max.
	Group, Min, Max int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("pleach: %s needs protocol version %d to %d, and the group has %d", e.What, e.Min, e.Max, e.Group)
}

// Unwrap returns [tcp.ErrVersion] and [ErrRefused].
func (e *VersionError) Unwrap() []error { return []error{tcp.ErrVersion, ErrRefused} }
