package member

import (
	"slices"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// SeatConfig describes a member that was started again.
type SeatConfig struct {
	// Seat is the member as it was saved, and Candidate the process that runs now.
	Seat      *membership.Seat
	Candidate membership.Member
	// As in Config.
	Membership membership.Config
	Heartbeat  heartbeat.Config
	Save       func(state []byte, sync bool)
	OnView     func(v *membership.View)
}

// Seat is the part of a member that survives a restart: its vote. It has lost its
// messages, so it has no streams, and it acknowledges none. It votes until a view has
// its process as a new member in its place. A driver drives it as a [Machine].
type Seat struct {
	config SeatConfig
	views  *membership.Machine
	heart  *heartbeat.Machine
	now    protocol.Time
	answer *membership.Answer
	saver  saver
	buffer []byte

	cut      []membership.Position // of the proposal that the seat knows, or of decisions
	declined []declined            // answers to be sent
}

// declined is an answer to a member that wants messages.
type declined struct {
	to    protocol.Rank
	frame []byte
}

// maxDeclined bounds the answers to be sent. Members ask again.
const maxDeclined = 64

// NewSeat restores a seat.
func NewSeat(c SeatConfig) (*Seat, error) {
	s := &Seat{config: c, cut: c.Seat.Decisions().Cut()}
	v := c.Membership
	v.Log, v.Durable = s, true
	var err error
	s.views, err = membership.Restore(v, c.Seat)
	if err != nil {
		return nil, err
	}
	s.saver = saver{views: s.views, save: c.Save}
	h := c.Heartbeat
	h.Timeout = 0 // broken connections are enough to find the dead
	s.heart = heartbeat.New(h)
	return s, nil
}

// Start asks for the view in which the new process has the place of the old one.
func (s *Seat) Start(now protocol.Time) {
	s.now = now
	s.watch(&s.config.Seat.View)
	s.views.Join(now, 1, s.config.Candidate, true)
}

// watch sends heartbeats to the neighbors.
func (s *Seat) watch(v *membership.View) {
	if self, ok := v.Members.Index(s.config.Seat.Self.Rank); ok {
		s.heart.Watch(s.now, ringNeighbors(v, self))
	}
}

// Outcome returns the view in which the process is a member, or why the seat is no
// longer in a view. Both are nil as long as it votes.
func (s *Seat) Outcome() (*membership.Answer, error) {
	for s.answer == nil {
		a, ok := s.views.Answers()
		if !ok {
			break
		}
		if a.Err == nil {
			s.answer = &a
		} else if state, _ := s.views.State(); state != membership.Evicted {
			s.views.Join(s.now, 1, s.config.Candidate, true) // it has taken too long
			break
		}
	}
	if state, err := s.views.State(); s.answer == nil && state == membership.Evicted {
		return nil, err
	}
	return s.answer, nil
}

// Quorum returns how many members are reachable, and how many have to be.
func (s *Seat) Quorum() (reachable, needed int, ok bool) { return s.views.Quorum() }

// ForceView lets some members decide the next view without a quorum; see
// [membership.Machine.ForceView].
func (s *Seat) ForceView(now protocol.Time, ranks []protocol.Rank) error {
	s.now = now
	return s.views.ForceView(now, ranks)
}

// Machine returns the machine for the member that takes the place of the seat.
func (s *Seat) Machine() *membership.Machine { return s.views }

// View returns the current view.
func (s *Seat) View() membership.View { return s.views.View() }

// Report takes a report of a detector.
func (s *Seat) Report(now protocol.Time, r Report) {
	s.now = now
	if r.Alive {
		s.views.Trust(now, r.Rank, r.Incarnation)
	} else {
		s.views.Suspect(now, r.Rank, r.Incarnation)
	}
}

// Receive takes a frame.
func (s *Seat) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	s.now = now
	if len(frame) > 0 && frame[0] == viewFrame {
		return s.views.Receive(now, from, frame[1:])
	}
	s.decline(from, frame)
	return nil // messages are for the members that have those before
}

// decline tells a member that wants a message before a cut that the seat does not have it. The member may wait for it for ever otherwise: a value that seats have
// accepted is proposed again although the one that had its messages is dead.
func (s *Seat) decline(from protocol.Rank, frame []byte) {
	answer, ok := stream.Decline(frame, func(root protocol.Rank, incarnation uint64) uint64 {
		i := slices.IndexFunc(s.cut, func(p membership.Position) bool { return p.Root == root && p.Incarnation == incarnation })
		if i < 0 {
			return 0
		}
		return s.cut[i].Next
	})
	if ok && len(s.declined) < maxDeclined {
		s.declined = append(s.declined, declined{from, answer})
	}
}

// Up reports that a peer is connected.
func (s *Seat) Up(now protocol.Time, peer protocol.Rank) {
	s.now = now
	s.views.Up(now, peer)
}

// Down, Writable and SendFailed need nothing: what is not acknowledged is sent again.
func (s *Seat) Down(protocol.Time, protocol.Rank) {}

// Writable does nothing.
func (s *Seat) Writable(protocol.Time, protocol.Rank) {}

// SendFailed does nothing.
func (s *Seat) SendFailed(protocol.Time, bool) {}

// Next returns a frame to send.
func (s *Seat) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	s.now = now
	to, head, ok = s.saver.next(now)
	if ok {
		s.buffer = append(append(s.buffer[:0], viewFrame), head...)
		return to, s.buffer, nil, true
	}
	to, ok = s.heart.Next(now)
	if ok {
		s.buffer = append(s.buffer[:0], heartbeatFrame)
		return to, s.buffer, nil, true
	}
	if len(s.declined) > 0 {
		d := s.declined[0]
		s.declined = s.declined[1:]
		return d.to, d.frame, nil, true
	}
	return protocol.NoRank, nil, nil, false
}

// Saved says that the state that Save was called with last is saved, or why it is not.
func (s *Seat) Saved(now protocol.Time, err error) {
	s.now = now
	s.saver.saved(now, err)
}

// Deadline returns when Next must be called again at the latest.
func (s *Seat) Deadline() protocol.Time { return min(s.saver.deadline(), s.heart.Deadline()) }

// A seat is the log of a member that has lost its messages.

// Freeze implements [membership.Log].
func (s *Seat) Freeze() []membership.Position { return nil }

// Thaw implements [membership.Log].
func (s *Seat) Thaw() { s.cut = s.views.Decisions().Cut() }

// Flush implements [membership.Log].
func (s *Seat) Flush(cut []membership.Position) { s.cut = slices.Clone(cut) }

// Flushed implements [membership.Log].
func (s *Seat) Flushed() bool { return true }

// Install implements [membership.Log].
func (s *Seat) Install(v *membership.View) {
	s.watch(v)
	s.config.OnView(v)
}
