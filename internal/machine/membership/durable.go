package membership

// An acceptor that forgets its promises can be part of two majorities that decide
// different views. So a process that is started again is another member, without a
// vote, and a group that has lost a majority stands still. A member with a disk need not
// forget: it saves its acceptor before it tells others of a promise or an acceptance, as
// Paxos requires (Lamport 1998), and so its restarted voter can vote again after a restart.

import (
	"fmt"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
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
	saving  bool // frames depend on what is being saved

	// reserved is a ballot that counts as promised in what is saved. A member that
	// coordinates reserves its next ballot and begins it when that is saved, because
	// from then on its messages wait.
	reserved Ballot
}

// voted makes the acceptor's state due to be saved before the next frame.
func (m *Machine) voted() { m.durable.changed, m.durable.sync = true, true }

// reserve reports whether a ballot of this member can begin. If not, it can once the state
// is saved.
func (m *Machine) reserve(b Ballot) bool {
	if m.durable.reserved != b {
		m.durable.reserved = b
		m.voted()
	}
	return !m.unsaved()
}

// unsaved reports whether the vote of this member is not saved yet.
func (m *Machine) unsaved() bool { return m.config.Durable && (m.durable.sync || m.durable.saving) }

// waits reports whether a frame has to wait until the vote is saved: it contains the vote,
// or asks for answers that this member could not use after a restart.
func (m *Machine) waits(k Kind) bool {
	switch k {
	case Prepare, Promise, Refuse, Cancel, Propose, Accept, Ping, Pong:
		return m.unsaved()
	case Commit:
		return m.unsaved() && m.acceptor.own
	}
	return false
}

// Unsaved returns the state to save. It returns false if the state has not changed since the
// last call, or what that has returned is not saved yet. When it is saved, the driver calls
// Saved. Sync says that frames depend on it, which Next returns only then. If it is false, the
// state only follows the view, and a member that is restored from the one before is as good: those
// of its view are a majority of the one before, and can decide it again.
func (m *Machine) Unsaved() (state []byte, sync, ok bool) {
	if !m.durable.changed || m.durable.saving || m.done != nil && !m.durable.sync {
		return nil, false, false
	}
	sync = m.durable.sync
	m.durable = durable{saving: sync, reserved: m.durable.reserved}
	return m.encodeState(), sync, true
}

// Saved says that what Unsaved has returned last is saved.
func (m *Machine) Saved(now protocol.Time) {
	m.durable.saving = false
	m.LogFlushed(now)
}

func (m *Machine) encodeState() []byte {
	r := &m.acceptor
	self := *m.view.Members.At(m.self) // its meta may have changed
	promised := r.promised
	if promised.less(m.durable.reserved) {
		promised = m.durable.reserved
	}
	s := SavedVote{self, m.view, promised, r.accepted, r.proposed, r.value, m.Decisions().values}
	return s.Encode()
}

// SavedVote is a member as it was saved.
type SavedVote struct {
	Self                         Member
	View                         View
	promised, accepted, proposed Ballot
	value                        *value
	history                      []*value
}

// Encode encodes the place for [DecodeSavedVote].
func (s *SavedVote) Encode() []byte {
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

// NewSavedVote returns the place of a member in a view in which it has not voted. Decisions
// has led to the view.
func NewSavedVote(self Member, v View, d Decisions) *SavedVote {
	return &SavedVote{Self: self, View: v, history: d.historyUpTo(v.Number)}
}

// Decisions returns the last decisions that have led to the view of the restarted voter.
func (s *SavedVote) Decisions() Decisions { return Decisions{s.history} }

// DecodeSavedVote decodes the state that Unsaved returned.
func DecodeSavedVote(b []byte) (*SavedVote, error) {
	d := decoder{Decoder: wire.NewDecoder(b)}
	if v := d.Uint8(); v != stateVersion {
		return nil, fmt.Errorf("%w: saved state of version %d, want %d", ErrView, v, stateVersion)
	}
	s := &SavedVote{Self: d.member()}
	view := d.Bytes()
	s.promised, s.accepted, s.proposed = d.ballot(), d.ballot(), d.ballot()
	if d.bool() {
		s.value = d.value()
	}
	for n := d.count(valueBytes); n > 0; n-- {
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
// that it saved. It has lost its messages, so it does not become a member again: it takes part in the
// change to the next view, and its process joins that view as a new member, by
// [Machine.Join] of this machine. Of the config, Self and View are ignored. Its Log has
// no messages, and is always flushed.
func Restore(c Config, s *SavedVote) (*Machine, error) {
	c.Self, c.View = s.Self, s.View
	m, err := New(c)
	if err != nil {
		return nil, err
	}
	r := &m.acceptor
	r.promised, r.accepted, r.proposed, r.value = s.promised, s.accepted, s.proposed, s.value
	if r.promised != (Ballot{}) {
		// It has forgotten who takes part in the ballot that was under way. A higher
		// promise, which is always safe, makes its owner begin another. The promise is
		// below the next round, so that this member does not refuse the next ballot.
		r.promised = aboveAll(r.promised.Round, &m.view)
	}
	m.history, m.restored = s.history, true
	return m, nil
}
