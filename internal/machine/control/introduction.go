package control

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

// Role is what a process is in its group.
type Role uint8

// The roles of processes.
const (
	// Candidate: the process asks to join.
	Candidate Role = iota
	// RestartedVoter: the process was a member, and votes without its messages.
	RestartedVoter
	// Member: the process is a member.
	Member
)

// Contact is a process and its address.
type Contact struct{ ID, Address string }

// Question asks a process to introduce itself.
type Question struct {
	From Contact
	// View is the latest view that the asking process knows; 0: none.
	View uint64
}

// Introduction is the answer to a Question.
type Introduction struct {
	Contact
	Role Role
	// Marks are those of the nonces that the process, or its disk, has.
	Marks []uint64
	// View is the latest view that the process knows, if the asking process knows another
	// one, and Decisions has led there. It is nil if there is none.
	View      *membership.View
	Decisions membership.Decisions
	// Others are processes worth asking.
	Others []Contact
}

// Mark returns a number that shows the nonce of a member to processes that know it, and
// does not tell it to others.
func Mark(id string, nonce uint64) uint64 {
	sum := sha256.Sum256(wire.AppendBytes(wire.AppendUint64(nil, nonce), []byte(id)))
	return binary.BigEndian.Uint64(sum[:])
}

// Encode appends the question to b.
func (q *Question) Encode(b []byte) []byte {
	return wire.AppendUint64(appendContact(b, &q.From), q.View)
}

// DecodeQuestion decodes a question.
func DecodeQuestion(b []byte) (Question, error) {
	d := wire.NewDecoder(b)
	q := Question{From: decodeContact(&d), View: d.Uint64()}
	return q, d.Finish()
}

// Encode appends the introduction to b.
func (i *Introduction) Encode(b []byte) []byte {
	b = wire.AppendUint8(appendContact(b, &i.Contact), uint8(i.Role))
	b = wire.AppendUint32(b, uint32(len(i.Marks)))
	for _, mark := range i.Marks {
		b = wire.AppendUint64(b, mark)
	}
	b = wire.AppendUint32(b, uint32(len(i.Others)))
	for k := range i.Others {
		b = appendContact(b, &i.Others[k])
	}
	if i.View != nil {
		b = wire.AppendBytes(wire.AppendBytes(b, i.View.Encode(nil)), i.Decisions.Encode(nil))
	}
	return b
}

// DecodeIntroduction decodes an introduction.
func DecodeIntroduction(b []byte) (*Introduction, error) {
	d := wire.NewDecoder(b)
	i := &Introduction{Contact: decodeContact(&d), Role: Role(d.Uint8())}
	for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
		i.Marks = append(i.Marks, d.Uint64())
	}
	for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
		i.Others = append(i.Others, decodeContact(&d))
	}
	if d.Err() != nil || d.Left() == 0 {
		return i, d.Finish()
	}
	view, decisions := d.Bytes(), d.Bytes()
	if err := d.Finish(); err != nil {
		return nil, err
	}
	v, err := membership.DecodeView(view)
	i.View = &v
	var err2 error
	i.Decisions, err2 = membership.DecodeDecisions(decisions)
	return i, errors.Join(err, err2)
}

func appendContact(b []byte, c *Contact) []byte {
	return wire.AppendBytes(wire.AppendBytes(b, []byte(c.ID)), []byte(c.Address))
}

func decodeContact(d *wire.Decoder) Contact {
	return Contact{ID: string(d.Bytes()), Address: string(d.Bytes())}
}
