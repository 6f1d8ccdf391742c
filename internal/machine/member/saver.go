package member

import (
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A disk may take seconds, and a member that waited for it would neither deliver nor send
// heartbeats, and the others would remove it. So saving runs concurrently with the member, and
// only its votes wait for it. A member that does not vote holds up a change for as long as one
// that does not answer ([membership.Config.AckTimeout]).

// The pause before a state is saved again that could not be saved. It doubles each time.
const (
	firstSavePause protocol.Time = 100e6
	maxSavePause   protocol.Time = 5e9
)

// saver has the driver save the state of the membership protocol, one at a time.
type saver struct {
	views *membership.Machine
	save  func(state []byte, sync bool) // nil: nothing is saved

	saving bool          // a state is not saved yet
	state  []byte        // the state that is being saved
	sync   bool          // votes depend on it
	again  protocol.Time // when it is saved again; Never: the driver saves it now
	pause  protocol.Time // before it is saved again, if it fails
}

// next returns the next frame of a view change, and has saved what others wait for.
func (s *saver) next(now protocol.Time) (to protocol.Rank, frame []byte, ok bool) {
	to, frame, ok = s.views.Next(now)
	s.begin()
	if s.saving && s.again <= now {
		s.again = protocol.Never
		s.save(s.state, s.sync)
	}
	return to, frame, ok
}

// begin saves the state if it has to.
func (s *saver) begin() {
	if s.save == nil || s.saving {
		return
	}
	s.state, s.sync, s.saving = s.views.Unsaved()
	if s.saving {
		s.again, s.pause = protocol.Never, firstSavePause
		s.save(s.state, s.sync)
	}
}

// saved says that the state is saved, or could not be.
func (s *saver) saved(now protocol.Time, err error) {
	if err != nil {
		s.again, s.pause = now+s.pause, min(2*s.pause, maxSavePause)
		return
	}
	s.saving, s.state = false, nil
	s.views.Saved(now)
}

// deadline returns when next must be called again at the latest.
func (s *saver) deadline() protocol.Time {
	if s.saving {
		return min(s.again, s.views.Deadline())
	}
	return s.views.Deadline()
}
