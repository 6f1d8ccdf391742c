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
	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// seatInterval is how often a process that has taken its seat asks its seeds whether the
// group has gone on without it.
const seatInterval = 2 * time.Second

// alonePause is how long a process waits before it asks silent members again.
const alonePause = 50 * time.Millisecond

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

// retakeSeat votes in the place of the process before, until a view has this process in
// its place, or the group has gone on without it. It reports whether this process is a
// member, and otherwise adds the last known addresses to the seeds.
func (c *Config) retakeSeat(ctx context.Context, s *initialState, saved *membership.Seat, listener net.Listener) (bool, error) {
	lent := &lentListener{Listener: listener}
	t, err := c.newSeat(s, saved, lent)
	if err != nil {
		return false, err
	}
	c.Logger.Info("started again: voting in the old place until the group goes on", "group", c.Group, "rank", saved.Self.Rank, "view", saved.View.Number)
	answer, err := t.await(ctx)
	alone := false
	if err == nil && answer != nil {
		alone, err = t.alone(ctx, &answer.View)
	}
	t.close()
	lent.giveBack()
	s.seat = t.machine.Machine()
	if err != nil {
		return false, err
	}
	last := &saved.View
	if answer != nil {
		last = &answer.View
	}
	var others []string
	for _, m := range last.Members.All() {
		if m.Address != s.self.Address && !slices.Contains(s.seeds, m.Address) {
			others = append(others, m.Address)
		}
	}
	s.seeds = append(s.seeds, others...)
	if !alone {
		return false, nil // the survivors know where their streams are
	}
	s.view = answer.View
	s.self, _ = s.view.Member(answer.Rank)
	return true, nil
}

// newSeat begins to vote.
func (c *Config) newSeat(s *initialState, saved *membership.Seat, listener net.Listener) (_ *seat, err error) {
	t := &seat{config: c, state: s, saved: saved, changed: make(chan struct{}, 1)}
	t.machine, err = member.NewSeat(member.SeatConfig{
		Seat: saved, Candidate: s.self, Heartbeat: c.heartbeatConfig(), OnView: t.setView,
		Save: func(state []byte, sync bool) error { return s.data.save(c.Group, state, sync) },
	})
	if err != nil {
		return nil, err
	}
	addresses := make([]string, saved.View.Slots)
	for _, m := range saved.View.Members.All() {
		addresses[m.Rank] = m.Address
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

// setView tells the transport and the detector which processes are members.
func (t *seat) setView(v *membership.View) {
	var peers []detect.Peer
	for _, m := range v.Members.All() {
		if m.Rank != t.saved.Self.Rank {
			peers = append(peers, detect.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Address: m.Address})
		}
	}
	t.transport.SetView(rosterView(v))
	t.state.current.Store(v)
	t.detector.Watch(detect.PeerList(peers))
}

// report passes a detector's report on.
func (t *seat) report(r detect.Report) {
	_ = t.node.Do(func(now protocol.Time) {
		t.machine.Report(now, member.Report{Rank: r.Rank, Incarnation: r.Incarnation, Alive: r.Alive, Cause: r.Cause})
	})
}

// await waits until the seat is given up: with an answer, this process is a member.
func (t *seat) await(ctx context.Context) (answer *membership.Answer, err error) {
	look := time.NewTicker(seatInterval)
	defer look.Stop()
	for {
		var over error
		var reachable, needed int
		if err := t.node.Do(func(protocol.Time) {
			answer, over = t.machine.Outcome()
			reachable, needed, _ = t.machine.Quorum()
		}); err != nil {
			return nil, err
		}
		if answer != nil || over != nil {
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %d of %d members of view %d are back, %d needed", ctx.Err(), reachable, t.saved.View.Members.Len(), t.saved.View.Number, needed)
		case <-t.changed:
		case <-look.C:
			if t.replaced(ctx) {
				return nil, nil
			}
		}
	}
}

// alone reports whether no member of the view before has messages, so that this process
// begins the view by itself. Otherwise the process joins it at a member that has them. A
// member that was started again, before the view or since, is a seat, and may wait for
// this process. One whose address refuses connections is dead. One that is silent may
// have messages, so this process waits for it, or for others that go on without it.
func (t *seat) alone(ctx context.Context, v *membership.View) (bool, error) {
	for {
		silent := 0
		for _, m := range v.Members.All() {
			if m.Incarnation == v.Number {
				continue // it has joined with this view
			}
			has, known := t.hasMessages(ctx, m)
			if has {
				return false, nil
			}
			if !known {
				silent++
			}
		}
		if silent == 0 || t.replaced(ctx) {
			return silent == 0, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w: %d members of view %d do not answer", ctx.Err(), silent, v.Number)
		case <-time.After(alonePause):
		}
	}
}

// hasMessages asks a process whether it is a member with its messages.
func (t *seat) hasMessages(ctx context.Context, m *membership.Member) (has, known bool) {
	timed, cancel := context.WithTimeout(ctx, foundingTimeout)
	defer cancel()
	_, err := requestOnce(timed, t.config.client(nil), m.Address, encodeRequest(requestView, &membership.Member{}, false))
	var restarted *restartedError
	switch {
	case err == nil:
		return true, true
	case errors.As(err, &restarted):
		return false, restarted.rank == m.Rank && restarted.incarnation == m.Incarnation
	}
	return false, errors.Is(err, syscall.ECONNREFUSED)
}

// replaced asks the seeds whether they have a later view without this seat.
func (t *seat) replaced(ctx context.Context) bool {
	timed, cancel := context.WithTimeout(ctx, foundingTimeout)
	defer cancel()
	for _, seed := range t.state.seeds {
		v, err := t.config.fetchView(timed, seed)
		if err == nil && v.Number > t.saved.View.Number && !v.Holds(t.saved.Self.Rank, t.saved.Self.Incarnation) {
			return true
		}
	}
	return false
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
func (t *seat) handleRequest(request []byte, answer func([]byte)) {
	if len(request) > 0 && request[0] == requestFounding {
		if r, err := founding.DecodeRequest(request[1:]); err == nil {
			reply := founding.Answer(founding.Candidate{ID: t.state.self.Identity, Address: t.state.self.Address}, nil, &r)
			answer(reply.Encode(nil))
			return
		}
	}
	answer(encodeRestarted(t.saved.Self.Rank, t.saved.Self.Incarnation))
}

// lentListener is a listener that outlives the transport that it is lent to: its Close
// only ends Accept. So the socket never refuses a connection while this process lives.
type lentListener struct {
	net.Listener
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
	l.closed.Store(true)
	return l.setDeadline(time.Unix(1, 0))
}

// giveBack makes the socket usable again.
func (l *lentListener) giveBack() { _ = l.setDeadline(time.Time{}) }

func (l *lentListener) setDeadline(t time.Time) error {
	d, ok := l.Listener.(interface{ SetDeadline(time.Time) error })
	if !ok {
		return errors.New("the listener cannot be lent")
	}
	return d.SetDeadline(t)
}
