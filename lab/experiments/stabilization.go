package experiments

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Stabilization is one change of view after members have died, under the LogP
// clock: the machines of package membership, driven by the same simulator as
// broadcasts are. Nothing is lost and the detector is perfect, so what shows is
// the protocol and its ports, not its timers.
type Stabilization struct {
	// Size is P. L and O are the LogP parameters.
	Size protocol.Rank
	L, O protocol.Time
	// Dead is how many random members other than the coordinator die at time 0.
	Dead int
	// Watchers is how many members report each death, at time 0: the nearest
	// living ones at the distances 1, 2, 4, … to both sides of the ring in turn,
	// to which a member is connected. With 0 an outside feed tells the
	// coordinator, and no other member.
	Watchers int
	// Flat is up to how many members there is no tree; with 0 there always is.
	Flat int
	// Seed chooses the members that die.
	Seed uint64
}

// StabilizationResult is what one change took.
type StabilizationResult struct {
	Stabilization
	// Time is Ts: from the reports, at time 0, until the last survivor has
	// installed a view without the dead.
	Time protocol.Time
	// Messages counts frames by kind, Total all of them.
	Messages [membership.Kinds]uint64
	Total    uint64
	// Views counts the views until then, Ballots the attempts, Canceled those abandoned.
	Views, Ballots, Canceled uint64
}

// Times of the machine, in steps. Everything is over by far when what was not
// answered would be sent again; what is only due then is not waited for.
const (
	stabilizationResend protocol.Time = 1 << 26
	stabilizationBound                = 4 * stabilizationResend
)

// ErrUnstable is the error of a change that does not come to an end without
// anything sent again.
var ErrUnstable = errors.New("experiments: the view does not stabilize")

// Run simulates the change.
func (s *Stabilization) Run() (*StabilizationResult, error) {
	if s.Size < 2 || s.Size > membership.MaxSlots || s.Dead < 1 || 2*s.Dead >= int(s.Size) || s.Watchers < 0 {
		return nil, fmt.Errorf(
			"experiments: %d of %d members dead, %d watchers: choose 2 to %d members, fewer than half of them dead",
			s.Dead, s.Size, s.Watchers, membership.MaxSlots)
	}
	dead := logp.RandomDead(s.Size, 0, s.Dead, s.Seed)
	members, err := newMembers(s.Size, len(dead), s.Flat)
	if err != nil {
		return nil, err
	}
	s.report(members, dead)
	sim, err := logp.NewSimulator[[]byte](logp.Params{L: s.L, O: s.O})
	if err != nil {
		return nil, err
	}
	machines := make([]protocol.Machine[[]byte], len(members))
	for i := range members {
		machines[i] = &members[i]
	}
	run, err := sim.Run(machines, logp.Faults{Dead: dead})
	if err != nil {
		return nil, err
	}
	return s.sum(members, &run)
}

// report has every death reported.
func (s *Stabilization) report(members []simulatedMember, dead []protocol.Rank) {
	gone := make([]bool, s.Size)
	for _, d := range dead {
		gone[d] = true
	}
	for _, d := range dead {
		if s.Watchers == 0 {
			members[0].Suspect(0, d, 1)
		}
		for i := range s.Watchers {
			step := 1 - 2*protocol.Rank(i%2)
			w := ((d+step<<(i/2))%s.Size + s.Size) % s.Size
			for gone[w] {
				w = (w + step + s.Size) % s.Size
			}
			members[w].Suspect(0, d, 1)
		}
	}
}

// sum adds up what the members have counted.
func (s *Stabilization) sum(members []simulatedMember, run *logp.Result) (*StabilizationResult, error) {
	r := &StabilizationResult{Stabilization: *s, Time: run.Coloring}
	for i := range members {
		if err := members[i].err; err != nil {
			return nil, err
		}
		stats := members[i].Stats()
		for kind, n := range stats.Sent {
			r.Messages[kind] += n
			r.Total += n
		}
		r.Views = max(r.Views, stats.Changes)
		r.Ballots += stats.Ballots
		r.Canceled += stats.Canceled
	}
	if run.Unreached > 0 {
		return nil, fmt.Errorf("%w: %d of %d survivors have no view without the dead (%+v)", ErrUnstable, run.Unreached,
			run.Live, *s)
	}
	return r, nil
}

// simulatedMember is one member as the simulator drives it. Frames are the bodies of
// messages.
type simulatedMember struct {
	*membership.Machine
	*network
	err error
}

// network is what the members share.
type network struct {
	survivors int
	sent      [membership.Kinds][]byte // the last frame of each kind
}

// newMembers makes a group, of which all but the dead will be left.
func newMembers(size protocol.Rank, dead, flat int) ([]simulatedMember, error) {
	listed := make([]membership.Member, size)
	for r := range listed {
		listed[r] = membership.Member{Rank: protocol.Rank(r), Identity: fmt.Sprint(r), Incarnation: 1}
	}
	view := membership.View{Number: 1, Slots: size, Members: membership.MembersOf(listed...)}
	first, err := membership.New(membership.Config{
		Self: listed[0], View: view, Log: silence{},
		FlatThreshold: cmp.Or(flat, -1),
		BatchWindow:   stabilizationBound, AttemptTimeout: stabilizationBound, RetryInterval: stabilizationResend,
		StatusInterval: stabilizationBound, JoinTimeout: stabilizationBound,
	})
	if err != nil {
		return nil, err
	}
	shared := &network{survivors: int(size) - dead}
	members := make([]simulatedMember, size)
	for r := range members {
		members[r] = simulatedMember{Machine: first, network: shared}
		if r > 0 {
			members[r].Machine, err = first.Sibling(protocol.Rank(r), silence{})
			if err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// Receive implements [protocol.Machine].
func (s *simulatedMember) Receive(now protocol.Time, m *protocol.Message[[]byte]) {
	if err := s.Machine.Receive(now, m.From, m.Body); err != nil && s.err == nil {
		s.err = err
	}
}

// Next implements [protocol.Machine].
func (s *simulatedMember) Next(now protocol.Time, a *protocol.Action[[]byte]) {
	to, frame, ok := s.Machine.Next(now)
	switch due := s.Deadline(); {
	case ok:
		a.Send(protocol.Dissemination, to, s.keep(frame))
	case due < stabilizationResend:
		a.WaitUntil(due)
	default:
		a.Wait()
	}
}

// keep returns a frame to be kept. Most frames of a kind are alike; of those
// there need be only one.
func (h *network) keep(frame []byte) []byte {
	last := &h.sent[frame[0]]
	if !bytes.Equal(*last, frame) {
		*last = bytes.Clone(frame)
	}
	return *last
}

// Complete implements [protocol.Machine].
func (s *simulatedMember) Complete() bool { return s.View().Members.Len() == s.survivors }

// silence is the log of a group in which no member sends.
type silence struct{}

func (silence) Freeze() []membership.Position { return nil }
func (silence) Thaw()                         {}
func (silence) Flush([]membership.Position)   {}
func (silence) Flushed() bool                 { return true }
func (silence) Install(*membership.View)      {}
