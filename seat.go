package pleach

// A process with a DataDir that is started again was a member, and has its vote. It
// takes its old seat until a view has the new process in its place.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/lifecycle"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// A process that begins a view asks silent members again after alonePause, so many times,
// and waits for each answer for aloneTimeout.
const (
	alonePause   = 50 * time.Millisecond
	aloneTries   = 10
	aloneTimeout = 500 * time.Millisecond
)

// seat drives the seat of a member that was started again.
type seat struct {
	config    *Config
	state     *initialState
	saved     *membership.Seat
	machine   *member.Seat // used only within node.Do
	node      *node.Node
	transport *tcp.Transport
	detector  *detect.Connections
	changed   chan struct{}
}

// holdSeat votes in the place that this process has, until a view has this process as a
// new member there, or the place is over. It reports whether this process is a member.
// Otherwise it returns a place to hold next, if there is one. Enter says that the process
// is new in the view of that place, and should first ask its members to let it in.
func (c *Config) holdSeat(ctx context.Context, s *initialState, place *membership.Seat, listener net.Listener) (next *membership.Seat, enter, member bool, err error) {
	lent := &lentListener{Listener: listener}
	lent.lent.Store(true)
	t, err := c.newSeat(s, place, lent)
	if err != nil {
		return nil, false, false, err
	}
	c.Logger.Info("started again: voting in the old place until the group goes on", "group", c.Group, "rank", place.Self.Rank, "incarnation", place.Self.Incarnation, "view", place.View.Number)
	answer, found, err := t.await(ctx)
	alone := false
	if err == nil && answer != nil {
		self, _ := answer.View.Member(answer.Rank)
		next = membership.NewSeat(self, answer.View, answer.Decisions)
		alone, enter, err = t.alone(ctx, &answer.View)
	}
	t.close()
	lent.giveBack()
	s.seat = t.machine.Machine()
	switch {
	case err != nil:
		return nil, false, false, err
	case alone:
		s.view, s.self = next.View, next.Self
		return nil, false, true, nil
	case answer != nil:
		s.search.hold(next, s.self.Nonce)
		s.knows(&next.View)
		return next, enter, false, nil
	case found.Alone:
		c.Logger.Info("the old place is over: too few of its view can come back", "group", c.Group, "view", place.View.Number)
		s.search.hold(nil, s.self.Nonce)
		return nil, false, false, s.data.save(nil, true)
	}
	s.knows(&place.View)
	return found.Place, false, false, nil
}

// knows adds the addresses of the members of a view to the seeds.
func (s *initialState) knows(v *membership.View) {
	for _, m := range v.Members.All() {
		if address := s.search.address(m); address != s.self.Address && !slices.Contains(s.seeds, address) {
			s.seeds = append(s.seeds, address)
		}
	}
}

// newSeat begins to vote.
func (c *Config) newSeat(s *initialState, saved *membership.Seat, listener net.Listener) (_ *seat, err error) {
	t := &seat{config: c, state: s, saved: saved, changed: make(chan struct{}, 1)}
	if saved.Self.Nonce == s.self.Nonce { // the place that it has asked for
		s.self.Nonce = newNonce()
		s.data.next = s.self.Nonce // saved before the seat says anything
	}
	s.search.hold(saved, s.self.Nonce)
	t.machine, err = member.NewSeat(member.SeatConfig{
		Seat: saved, Candidate: s.self, Heartbeat: c.heartbeatConfig(), OnView: t.setView,
		Save: func(state []byte, sync bool) error { return s.data.save(state, sync) },
	})
	if err != nil {
		return nil, err
	}
	addresses := make([]string, saved.View.Slots)
	for _, m := range saved.View.Members.All() {
		addresses[m.Rank] = s.search.address(m)
	}
	s.current.Store(&saved.View)
	t.transport, err = tcp.New(tcp.Config{
		Group: c.Group, Rank: saved.Self.Rank, Addresses: addresses, Listener: listener, Open: true,
		Incarnation: saved.Self.Incarnation, Nonce: saved.Self.Nonce, TLS: c.TLS, Secret: c.Secret, Dial: c.Dial, SharedBytes: max(0, c.Limits.SharedBytes), Logger: c.Logger,
		Verify: func(claim tcp.Claim) error { return c.verifyClaim(s.current.Load(), claim) },
	})
	if err != nil {
		return nil, err
	}
	t.detector = detect.NewConnections(detect.ConnectionsConfig{Dial: c.Dial})
	t.node = node.New(node.Config{
		Transport: t.transport, Protocol: t.machine, Watcher: &watcher{connections: t.detector, removed: t.removed}, HandleRequest: t.handleRequest,
		AfterStep: func(protocol.Time) { give(t.changed) }, Logger: c.Logger,
	})
	if err := t.detector.Start(t.report); err != nil {
		return nil, err
	}
	t.setView(&saved.View)
	if err := t.node.Start(); err != nil {
		return nil, err
	}
	return t, t.node.Do(t.machine.Start)
}

// setView tells the transport and the detector which processes are members, and where
// they are.
func (t *seat) setView(v *membership.View) {
	var peers []detect.Peer
	for _, m := range v.Members.All() {
		if m.Rank != t.saved.Self.Rank {
			peers = append(peers, detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: t.state.search.address(m)})
		}
	}
	roster := rosterView(v)
	inView := roster.Member
	roster.Member = func(r protocol.Rank) (transport.Member, bool) {
		m, ok := inView(r)
		if ok {
			m.Address = t.state.search.address(&membership.Member{Identity: m.ID, Address: m.Address})
		}
		return m, ok
	}
	t.transport.SetView(roster)
	t.state.current.Store(v)
	t.detector.Watch(detect.PeerList(peers))
}

// report passes a detector's report on.
func (t *seat) report(r detect.Report) {
	_ = t.node.Do(func(now protocol.Time) {
		t.machine.Report(now, member.Report{Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Cause: r.Cause})
	})
}

// await waits until the seat is given up. With an answer, this process is a member of a
// view. Otherwise the seat is over, and the process may have found another place.
func (t *seat) await(ctx context.Context) (answer *membership.Answer, found lifecycle.Finding, err error) {
	for {
		var over error
		var reachable, needed int
		if err := t.node.Do(func(protocol.Time) {
			answer, over = t.machine.Outcome()
			reachable, needed, _ = t.machine.Quorum()
		}); err != nil {
			return nil, found, err
		}
		if answer != nil || over != nil {
			return answer, found, nil
		}
		select {
		case <-ctx.Done():
			return nil, found, fmt.Errorf("%w: %d of %d members of view %d are back, %d needed", ctx.Err(), reachable, t.saved.View.Members.Len(), t.saved.View.Number, needed)
		case <-t.changed:
		case <-t.state.search.moved:
			t.setView(t.state.current.Load())
		case found := <-t.state.search.found:
			return nil, found, nil
		}
	}
}

// alone reports whether no member of the view before has messages, so that this process
// begins the view by itself. Otherwise the process enters it at a member that has them, if
// one has. A member that was started again, before the view or since, is a seat, and may
// wait for this process. One whose address refuses connections is dead. One that is silent
// may have messages, so this process waits for it for a while. Then it has to hold its
// place in the view, for the others to go on without the silent one.
func (t *seat) alone(ctx context.Context, v *membership.View) (alone, enter bool, err error) {
	for tries := 0; ; tries++ {
		silent := 0
		for _, m := range v.Members.All() {
			if m.Incarnation == v.Number {
				continue // it has joined with this view
			}
			has, known := t.hasMessages(ctx, m)
			if has {
				return false, true, nil
			}
			if !known {
				silent++
			}
		}
		if silent == 0 || tries == aloneTries {
			return silent == 0, false, nil
		}
		select {
		case <-ctx.Done():
			return false, false, fmt.Errorf("%w: %d members of view %d do not answer", ctx.Err(), silent, v.Number)
		case <-time.After(alonePause):
		}
	}
}

// hasMessages asks a process whether it is a member with its messages.
func (t *seat) hasMessages(ctx context.Context, m *membership.Member) (has, known bool) {
	timed, cancel := context.WithTimeout(ctx, aloneTimeout)
	defer cancel()
	_, err := requestOnce(timed, t.config.client(nil), t.state.search.address(m), control.View{})
	var restarted *control.Restarted
	switch {
	case err == nil:
		return true, true
	case errors.As(err, &restarted):
		return false, restarted.Rank == m.Rank && restarted.Incarnation == m.Incarnation
	}
	return false, errors.Is(err, syscall.ECONNREFUSED)
}

// close ends the seat. Its socket goes on listening.
func (t *seat) close() {
	_ = t.detector.Close()
	_ = t.node.Close()
}

// removed says that a member of a later view does not let this process connect.
func (t *seat) removed(view uint64, holder *membership.Member) {
	_ = t.node.Do(func(now protocol.Time) { t.machine.Removed(now, view, holder) })
}

// handleRequest answers requests: this process is in a group, but not a member yet.
func (t *seat) handleRequest(b []byte, answer func([]byte)) {
	request, err := control.Decode(b)
	if err != nil {
		answer(refuse(err))
		return
	}
	switch r := request.(type) {
	case control.Introduce:
		answer(t.state.search.answer(&r.Question))
	case control.Force:
		answer(accepted(t.force(r.View, r.Ranks)))
	case control.Founding:
		reply := founding.Answer(founding.Candidate{ID: t.state.self.Identity, Address: t.state.self.Address}, nil, &r.Request)
		answer(reply.Encode(nil))
	default:
		answer(refuse(&control.Restarted{Rank: t.saved.Self.Rank, Incarnation: t.saved.Self.Incarnation}))
	}
}

// force lets some members go on without a quorum.
func (t *seat) force(number uint64, ranks []protocol.Rank) error {
	err := errNotAMember
	_ = t.node.Do(func(now protocol.Time) {
		answer, over := t.machine.Outcome()
		if v := t.machine.View(); v.Number > number || answer != nil || over != nil {
			err = nil // another member was asked first, and it is done
			return
		}
		err = t.machine.ForceView(now, ranks)
	})
	return err
}

// lentListener is a listener that outlives the transport that it is lent to: its Close
// only ends Accept. So the socket never refuses a connection while this process lives.
type lentListener struct {
	net.Listener
	lent   atomic.Bool // otherwise Close closes the socket
	closed atomic.Bool
}

// Accept implements [net.Listener].
func (l *lentListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && l.closed.Load() {
		err = net.ErrClosed
	}
	return conn, err
}

// Close implements [net.Listener].
func (l *lentListener) Close() error {
	if !l.lent.Load() {
		return l.Listener.Close()
	}
	l.closed.Store(true)
	return l.SetDeadline(time.Unix(1, 0))
}

// giveBack makes the socket usable again.
func (l *lentListener) giveBack() { _ = l.SetDeadline(time.Time{}) }

// SetDeadline bounds Accept.
func (l *lentListener) SetDeadline(t time.Time) error {
	d, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return errors.New("the listener cannot be lent")
	}
	return d.SetDeadline(t)
}
