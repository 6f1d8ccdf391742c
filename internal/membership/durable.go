package membership

// An acceptor that forgets its promises can be part of two majorities that decide
// different views. So a process that is started again is another member, without a
// vote, and a group that has lost a majority stands still. A member with a disk need not
// forget: it saves its acceptor before it tells others of a promise or an acceptance, as
// Paxos requires (Lamport 1998), and so its seat can vote again after a restart.

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/wire"
)

const (
	// stateVersion is the first byte of a saved state.
	stateVersion = 3
	// savedCommits is how many of the last decisions are saved with it, and sent to a
	// joiner: members may be some views apart, and must get what they have missed from
	// each other.
	savedCommits = 8
)

// durable is what a member has to save.
type durable struct {
	changed bool // there is something to save
	sync    bool // before the next frame, it must be on the disk
}

// promised makes the acceptor's state due to be saved before the next frame.
func (m *Machine) promised() { m.durable = durable{changed: true, sync: true} }

// Unsaved returns the state to save before the frame that Next has returned, and those
// after it, are sent. It returns false if the state has not changed since the last call.
// When it is saved, the driver calls LogFlushed. Sync says that frames depend
// on it. If it is false, the state only follows the view, and a member that is restored
// from the one before is as good.
func (m *Machine) Unsaved() (state []byte, sync, ok bool) {
	if !m.durable.changed || m.done != nil {
		return nil, false, false
	}
	sync = m.durable.sync
	m.durable = durable{}
	return m.encodeState(), sync, true
}

func (m *Machine) encodeState() []byte {
	r := &m.acceptor
	self := m.config.Self
	if now, ok := m.view.Member(self.Rank); ok && now.Incarnation == self.Incarnation {
		self = now // its meta may have changed
	}
	s := Seat{self, m.view, r.promised, r.accepted, r.proposed, r.value, m.Decisions().values}
	return s.Encode()
}

// Seat is a member as it was saved.
type Seat struct {
	Self                         Member
	View                         View
	promised, accepted, proposed Ballot
	value                        *value
	history                      []*value
}

// Encode encodes the place for [DecodeSeat].
func (s *Seat) Encode() []byte {
	b := appendMember([]byte{stateVersion}, &s.Self)
	b = wire.AppendBytes(b, s.View.Encode(nil))
	b = appendBool(appendBallots(b, s.promised, s.accepted, s.proposed), s.value != nil)
	if s.value != nil {
		b = appendValue(b, s.value)
	}
	b = wire.AppendUint32(b, uint32(len(s.history)))
	for _, v := range s.history {
		b = appendValue(b, v)
	}
	return b
}

// NewSeat returns the place of a member in a view in which it has not voted. Decisions
// has led to the view.
func NewSeat(self Member, v View, d Decisions) *Seat {
	return &Seat{Self: self, View: v, history: d.historyUpTo(v.Number)}
}

// Decisions returns the last decisions that have led to the view of the seat.
func (s *Seat) Decisions() Decisions { return Decisions{s.history} }

// DecodeSeat decodes the state that Unsaved returned.
func DecodeSeat(b []byte) (*Seat, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	if v := d.Uint8(); v != stateVersion {
		return nil, fmt.Errorf("%w: saved state of version %d, want %d", ErrView, v, stateVersion)
	}
	s := &Seat{Self: d.member()}
	view := d.Bytes()
	s.promised, s.accepted, s.proposed = d.ballot(), d.ballot(), d.ballot()
	if d.bool() {
		s.value = d.value()
	}
	for n := d.count(1); n > 0; n-- {
		s.history = append(s.history, d.value())
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("%w: saved state: %w", ErrView, err)
	}
	var err error
	s.View, err = DecodeView(view)
	for i, v := range s.history {
		if v.number != s.View.Number-uint64(len(s.history)-1-i) {
			return nil, fmt.Errorf("%w: saved state: view %d is out of place", ErrView, v.number)
		}
	}
	if err == nil && s.value != nil {
		_, err = s.value.apply(&s.View, s.View.named)
	}
	return s, err
}

// Restore returns the machine of a member that was started again, with the acceptor
// that it saved. It has lost its messages, so it is not to go on: it takes part in the
// change to the next view, and its process joins that view as a new member, by
// [Machine.Join] of this machine. Of the config, Self and View are ignored. Its Log has
// no messages, and is always flushed.
func Restore(c Config, s *Seat) (*Machine, error) {
	c.Self, c.View = s.Self, s.View
	m, err := New(c)
	if err != nil {
		return nil, err
	}
	r := &m.acceptor
	r.promised, r.accepted, r.proposed, r.value = s.promised, s.accepted, s.proposed, s.value
	if r.promised != (Ballot{}) {
		// It has forgotten who takes part in the ballot that was under way. A higher
		// promise, which is always safe, makes its owner begin another.
		r.promised = Ballot{r.promised.Round + 1, s.Self.Rank}
	}
	m.history = s.history
	return m, nil
}
