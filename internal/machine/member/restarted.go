package member

import (
	"errors"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// RestartedVoterConfig configures a RestartedVoter.
type RestartedVoterConfig struct {
	// Saved is the member as it was saved, and Candidate the process that runs now.
	Saved     *membership.SavedVote
	Candidate membership.Member
	// The other fields have the same meaning as in Config.
	Membership membership.Config
	Heartbeat  heartbeat.Config
	Save       func(state []byte, sync bool)
	Ask        func(membership.Claim)
	OnView     func(v *membership.View)
}

// RestartedVoter is the part of a member that survives a restart: its vote. It has lost its
// messages, so it has no streams, and it acknowledges none. It votes until a view has
// its process as a new member in its place. A driver drives it as a [Machine].
type RestartedVoter struct {
	config RestartedVoterConfig
	views  *membership.Machine
	heart  *heartbeat.Machine
	now    protocol.Time
	answer *membership.Answer
	saver  saver
	buffer []byte

	cut      []membership.Position // cut of the latest proposal that was accepted, or of the last decision
	declined []declined            // queue of answers to requests for lost messages
}

// declined is an answer to a member that asks for messages that this one has lost.
type declined struct {
	to    protocol.Rank
	frame []byte
}

// maxDeclined bounds the queue of answers. Members repeat unanswered requests.
const maxDeclined = 64

// NewRestartedVoter restores the voter from its saved vote.
func NewRestartedVoter(c RestartedVoterConfig) (*RestartedVoter, error) {
	s := &RestartedVoter{config: c, cut: c.Saved.Decisions().Cut()}
	v := c.Membership
	v.Log, v.Durable, v.Arbiter = s, true, c.Ask != nil
	var err error
	s.views, err = membership.Restore(v, c.Saved)
	if err != nil {
		return nil, err
	}
	s.saver = saver{views: s.views, save: c.Save}
	h := c.Heartbeat
	h.Timeout = 0 // broken connections are enough to find the dead
	s.heart = heartbeat.New(h)
	return s, nil
}

// Start asks for a view that admits the new process in the place of the old one.
func (s *RestartedVoter) Start(now protocol.Time) {
	s.now = now
	s.watch(&s.config.Saved.View)
	s.views.Join(now, 1, s.config.Candidate, true)
}

// watch sends heartbeats to the neighbors.
func (s *RestartedVoter) watch(v *membership.View) {
	if self, ok := v.Members.Index(s.config.Saved.Self.Rank); ok {
		s.heart.Watch(s.now, ringNeighbors(v, self))
	}
}

// Outcome returns the view that admits the process as a new member, or the reason why the old
// one is no longer in a view. Both are nil as long as the process votes.
func (s *RestartedVoter) Outcome() (*membership.Answer, error) {
	for s.answer == nil {
		a, ok := s.views.Answers()
		if !ok {
			break
		}
		if a.Err == nil {
			s.answer = &a
		} else if state, _ := s.views.State(); state != membership.Evicted {
			// It has taken too long, or the process cannot be an observer: then its vote counts on.
			if membership.RefusesObserver(a.Err) {
				s.config.Candidate.Observer = false
			}
			s.views.Join(s.now, 1, s.config.Candidate, true)
			break
		}
	}
	if state, err := s.views.State(); s.answer == nil && state == membership.Evicted {
		return nil, err
	}
	return s.answer, nil
}

// Quorum returns how many members are reachable, and how many have to be.
func (s *RestartedVoter) Quorum() (reachable, needed int, ok bool) { return s.views.Quorum() }

// Refused reports whether the arbiter has let other voters decide the next view.
func (s *RestartedVoter) Refused() bool {
	var lost *membership.QuorumError
	_, err := s.views.State()
	return errors.As(err, &lost) && lost.Arbiter == membership.Refused
}

// ForceView lets some members decide the next view without a quorum; see
// [membership.Machine.ForceView].
func (s *RestartedVoter) ForceView(now protocol.Time, ranks []protocol.Rank) error {
	s.now = now
	return s.views.ForceView(now, ranks)
}

// Judge takes the answer of the arbiter; see [membership.Machine.Judge].
func (s *RestartedVoter) Judge(now protocol.Time, c membership.Claim, v membership.Verdict) {
	s.now = now
	s.views.Judge(now, c, v)
}

// Machine returns the membership machine, with which the new member continues.
func (s *RestartedVoter) Machine() *membership.Machine { return s.views }

// View returns the current view.
func (s *RestartedVoter) View() membership.View { return s.views.View() }

// Report takes a report of a detector.
func (s *RestartedVoter) Report(now protocol.Time, r Report) {
	s.now = now
	if r.Alive {
		s.views.Trust(now, r.Rank, r.Incarnation)
	} else {
		s.views.Suspect(now, r.Rank, r.Incarnation)
	}
}

// Receive takes a frame.
func (s *RestartedVoter) Receive(now protocol.Time, from protocol.Rank, frame []byte) error {
	s.now = now
	if len(frame) > 0 && frame[0] == viewFrame {
		return s.views.Receive(now, from, frame[1:])
	}
	s.decline(from, frame)
	return nil // messages need no answer: this process cannot deliver them
}

// decline answers a request for a message before the cut: this process has lost it. Without the
// answer, the member could wait for ever: a value that restarted voters have accepted is proposed
// again even if the member that had its messages is dead.
func (s *RestartedVoter) decline(from protocol.Rank, frame []byte) {
	answer, ok := stream.Decline(frame, func(root protocol.Rank, incarnation uint64) uint64 {
		i := slices.IndexFunc(s.cut, func(p membership.Position) bool {
			return p.Root == root &&
				p.Incarnation == incarnation
		})
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
func (s *RestartedVoter) Up(now protocol.Time, peer protocol.Rank) {
	s.now = now
	s.views.Up(now, peer)
}

// Down does nothing: frames that are not acknowledged are sent again.
func (s *RestartedVoter) Down(protocol.Time, protocol.Rank) {}

// Writable does nothing: frames that are not acknowledged are sent again.
func (s *RestartedVoter) Writable(protocol.Time, protocol.Rank) {}

// SendFailed does nothing: frames that are not acknowledged are sent again.
func (s *RestartedVoter) SendFailed(protocol.Time, bool) {}

// Next returns a frame to send.
func (s *RestartedVoter) Next(now protocol.Time) (to protocol.Rank, head, body []byte, ok bool) {
	s.now = now
	to, head, ok = s.saver.next(now)
	if ok {
		s.buffer = append(append(s.buffer[:0], viewFrame), head...)
		return to, s.buffer, nil, true
	}
	if c, asks := s.views.NextClaim(); asks {
		s.config.Ask(c)
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

// Saved reports that the last state passed to Save is saved, or the error.
func (s *RestartedVoter) Saved(now protocol.Time, err error) {
	s.now = now
	s.saver.saved(now, err)
}

// Deadline returns when Next must be called again at the latest.
func (s *RestartedVoter) Deadline() protocol.Time { return min(s.saver.deadline(), s.heart.Deadline()) }

// RestartedVoter implements [membership.Log] for a member that has lost its messages.

// Freeze implements [membership.Log].
func (s *RestartedVoter) Freeze() []membership.Position { return nil }

// Thaw implements [membership.Log].
func (s *RestartedVoter) Thaw() { s.cut = s.views.Decisions().Cut() }

// Flush implements [membership.Log].
func (s *RestartedVoter) Flush(cut []membership.Position) { s.cut = slices.Clone(cut) }

// Flushed implements [membership.Log].
func (s *RestartedVoter) Flushed() bool { return true }

// Install implements [membership.Log].
func (s *RestartedVoter) Install(v *membership.View) {
	s.watch(v)
	s.config.OnView(v)
}
