package pleach

// What an operator asks of a group from outside, and how a member answers: see package
// operator.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/driver/job"
	"github.com/pleach-go/pleach/internal/driver/operator"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Inspection is what a member tells a process outside its group.
type Inspection struct {
	// View is the member's current view. Its Err tells whether the quorum is lost.
	View View
	// Progress tells which collective calls the member is in, since when, and for
	// which ranks it waits, in its World and in those derived by Shrink. It is nil
	// for a member that is not in a World.
	Progress []collective.Progress
}

// Inspect asks the member at an address for its view and for the progress of its
// collective calls, without joining the group. A member answers even while its
// program is busy. Of the config, Group, TLS, Secret and Dial apply. Inspect tries
// again until ctx ends, unless that cannot help.
func Inspect(ctx context.Context, c Config, address string) (*Inspection, error) {
	i := &Inspection{}
	v, err := operate(&c, func(o *operator.Client) (control.ViewReply, error) { return o.View(ctx, address) })
	if err == nil {
		i.View = *viewOfReply(&v)
		i.Progress, err = progressOf(ctx, &c, address)
	}
	if err != nil {
		return nil, fmt.Errorf("pleach: Inspect %s: %w", address, err)
	}
	return i, nil
}

// operate asks a group.
func operate(c *Config, ask func(*operator.Client) (control.ViewReply, error)) (control.ViewReply, error) {
	if err := c.check(modeInspect); err != nil {
		return control.ViewReply{}, err
	}
	return ask(&operator.Client{Client: clientOf(c)})
}

// viewOfReply is the view in the reply of a member, as programs see it.
func viewOfReply(r *control.ViewReply) *View {
	view := viewOf(&r.View)
	if r.Lost != nil {
		view.Err = &QuorumError{
			View: view.Number, Members: r.View.Voters(), Reachable: r.Lost.Reachable, Needed: r.Lost.Needed,
			Unreachable: ranksOf(r.Lost.Unreachable),
		}
	}
	return view
}

// progressOf asks a member for the progress of its collective calls.
func progressOf(ctx context.Context, c *Config, address string) (p []collective.Progress, err error) {
	b, _, err := clientOf(c).AskKnown(ctx, address, control.Progress{})
	if err != nil {
		return nil, err
	}
	body, err := control.Open(b)
	if err != nil {
		return nil, nil // it is not in a World
	}
	err = json.Unmarshal(body, &p)
	return p, err
}

// encodeProgress encodes the reply to a request for progress: the calls that this
// process is in, never their contents. It does not wait for the program's
// goroutines, so a process that is busy elsewhere answers too.
func (a *requests) encodeProgress() []byte {
	l, ok := a.machine.Unicast().(*job.Link)
	if !ok {
		return client.Refuse(errors.New("this member is not in a World: it makes no collective calls"))
	}
	b, err := json.Marshal(collective.Comm(l.Engine().Comm()).Progress())
	if err != nil {
		return client.Refuse(err)
	}
	return control.Accept(b)
}

// ForceView lets the surviving members of a group that has lost its quorum continue without
// the others, which leave the view. Members are the IDs of the survivors; without IDs,
// all members that the member at the address reaches. It returns the new view.
//
// ForceView gives up the guarantee that there is one group. The caller must know that the
// members that leave the view are dead, and not only cut off: otherwise they may
// continue as a second group of the same name. It is a last resort for an operator, after
// the loss of more members than a quorum can do without, and it is refused while the
// group has its quorum. Of the config, Group, TLS
// and Secret apply.
func ForceView(ctx context.Context, c Config, address string, members ...string) (View, error) {
	v, err := operate(&c, func(o *operator.Client) (control.ViewReply, error) { return o.Force(ctx, address, members) })
	if errors.Is(err, operator.ErrHasQuorum) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err != nil {
		return View{}, fmt.Errorf("pleach: ForceView at %s: %w", address, err)
	}
	return *viewOfReply(&v), nil
}

// force lets some members decide the next view without a quorum.
func (a *requests) force(number uint64, ranks []protocol.Rank) error {
	err := client.ErrNotAMember
	_ = a.node.Do(func(now protocol.Time) {
		if v := a.machine.View(); v.Number > number {
			err = nil // another member was asked first, and it is done
			return
		}
		err = a.machine.ForceView(now, ranks)
	})
	return err
}

// Evict removes the member with an ID from a group, although it is alive, and returns the
// first known view without it. Its [Group] ends with an [*EvictedError], or joins again with
// Config.Recovery.Rejoin: only a deny list keeps it out (Config.Security.DenyFile). Address is that of any
// member. Evict returns a [*QuorumError] if the members without that one are no quorum, and an
// [ErrGone] if no member has the ID. Of the config, Group, TLS and Secret apply.
func Evict(ctx context.Context, c Config, address, id string) (View, error) {
	v, err := operate(&c, func(o *operator.Client) (control.ViewReply, error) { return o.Evict(ctx, address, id) })
	var gone *operator.GoneError
	var version *operator.VersionError
	switch {
	case errors.As(err, &gone):
		err = fmt.Errorf("%w: %w", ErrGone, err)
	case errors.As(err, &version):
		err = &VersionError{"an eviction", int(version.Group), int(version.Needed), wire.Version}
	}
	if err != nil {
		return View{}, fmt.Errorf("pleach: Evict %q at %s: %w", id, address, err)
	}
	return *viewOfReply(&v), nil
}

// evict has another member removed.
func (a *requests) evict(r control.Evict) error {
	err := client.ErrNotAMember
	_ = a.node.Do(func(now protocol.Time) {
		err = a.machine.Evict(now, r.Rank, r.Incarnation, membership.OperatorEvicted)
	})
	return err
}

// RaiseError means that the protocol version of a group cannot be raised yet.
type RaiseError struct {
	// Version is that of the group. Members speak no higher one, and the others do.
	Version int
	Members []Member
}

func (e *RaiseError) Error() string {
	names := make([]string, len(e.Members))
	for i, m := range e.Members {
		names[i] = fmt.Sprintf("%q (rank %d)", m.ID, m.Rank)
	}
	return fmt.Sprintf("pleach: the group stays at protocol version %d: some members speak no higher one: %s", e.Version,
		strings.Join(names, ", "))
}

// RaiseVersion gives a group the highest protocol version that all members speak, and
// returns the view that has it. An operator calls it when the last process of a group is
// upgraded. Address is that of any member. Processes that do not speak the new version
// cannot join any more, and the version never falls. If only some members speak a higher
// version than the group has, RaiseVersion returns a [*RaiseError]. Of the config, Group,
// TLS and Secret apply.
//
// A group begins with the highest version that its first members have in common. So
// without an upgrade there is nothing to raise, and RaiseVersion returns the present view.
func RaiseVersion(ctx context.Context, c Config, address string) (View, error) {
	v, err := operate(&c, func(o *operator.Client) (control.ViewReply, error) { return o.Raise(ctx, address) })
	if stay := new(operator.StayError); errors.As(err, &stay) {
		e := &RaiseError{Version: int(stay.Version)}
		for _, m := range stay.Members {
			e.Members = append(e.Members, memberOf(m))
		}
		err = e
	}
	if err != nil {
		return View{}, fmt.Errorf("pleach: RaiseVersion at %s: %w", address, err)
	}
	return *viewOfReply(&v), nil
}

// raise raises the version.
func (a *requests) raise(version uint16) error {
	err := client.ErrNotAMember
	_ = a.node.Do(func(now protocol.Time) { err = a.machine.RaiseVersion(now, version) })
	return err
}

// OperatorAction is what an operator has asked of this process, from outside of the group.
type OperatorAction struct {
	// Action is force-view, evict or raise-version, and What the ID of the member that is evicted,
	// the members that stay, or the version.
	Action, What string
	// From is the address of the operator, and Certificate what its certificate is valid for:
	// URIs, DNS names and IP addresses. Certificate is empty without TLS.
	From        string
	Certificate []string
	// Err is why it was refused. If nil, it is carried out.
	Err error
}

// onOperator returns what is called with the actions of operators.
func (c *Config) onOperator() func(client.Action) {
	if c.Security.OnOperator == nil {
		return nil
	}
	return func(a client.Action) {
		c.Security.OnOperator(OperatorAction{a.Name, a.What, a.From, a.Certificate, a.Err})
	}
}

// notSpoken says that this process does not speak the version of a group.
func notSpoken(version uint16) *VersionError {
	return &VersionError{"this process", int(version), wire.MinVersion, int(wire.Newest())}
}

// observersNeed says that a group cannot have observers yet.
func observersNeed(version uint16) *VersionError {
	return &VersionError{"an observer", int(version), membership.ObserverVersion, wire.Version}
}

// speaks returns an error if this process does not speak the version of a group.
func speaks(version uint16) error {
	if !wire.Speaks(version) {
		return notSpoken(version)
	}
	return nil
}

// versionsOf returns the version of the group in a view, and the highest that any member speaks.
func versionsOf(v *membership.View) (version, newest int) {
	for _, m := range v.Members.All() {
		newest = max(newest, int(m.Version))
	}
	return int(v.Version), newest
}
