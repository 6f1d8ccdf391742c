package sequencer

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// kind is the first byte of a frame.
type kind byte

const (
	kindBegin   kind = iota + 1 // from a leader to all: its view begins
	kindNumber                  // from a leader to all: batches in their order, and what is committed
	kindForward                 // from a member to its leader: a batch to be numbered
	kindAck                     // from a member to its leader: how many messages it has numbered
	kindMark                    // from a leader to all: a place in the order; see mark.go
)

// MaxTopic is the longest name of a topic, in bytes.
const MaxTopic = 255

// ErrFrame is wrapped by the errors of bytes that are no frame.
var ErrFrame = errors.New("ordered: not a frame")

// frame is any frame; which fields it has depends on its kind.
type frame struct {
	kind    kind
	view    uint64   // that the sender leads, or believes the receiver to lead
	members []Member // of the view: kindBegin
	count   uint64   // committed (kindNumber), received (kindAck) or the name of a place (kindMark)
	batches []batch
}

// batch is consecutive messages of one origin. Its raw bytes are what the leader passes on.
type batch struct {
	origin Member
	first  uint64 // sequence number of the first one
	bodies []body
	raw    []byte
}

// body is a message without its place.
type body struct {
	topic string
	data  []byte
}

// bodySize is what a message takes in a frame.
func bodySize(topic string, data []byte) int { return 8 + len(topic) + len(data) }

func (f *frame) encode() []byte {
	size := 32 + 12*len(f.members)
	for i := range f.batches {
		size += 4 + len(f.batches[i].raw)
	}
	b := make([]byte, 0, size)
	b = wire.AppendUint64(append(b, byte(f.kind)), f.view)
	switch f.kind {
	case kindBegin:
		b = appendMembers(b, f.members)
	case kindNumber, kindForward:
		b = wire.AppendUint64(b, f.count)
		for i := range f.batches {
			b = wire.AppendBytes(b, f.batches[i].raw)
		}
	case kindAck, kindMark:
		b = wire.AppendUint64(b, f.count)
	}
	return b
}

// decode reads a frame. The messages of its batches point into its bytes.
func decode(b []byte) (*frame, error) {
	d := wire.NewDecoder(b)
	f := &frame{kind: kind(d.Uint8()), view: d.Uint64()}
	switch f.kind {
	case kindBegin:
		f.members = decodeMembers(&d)
	case kindNumber, kindForward:
		f.count = d.Uint64()
		for d.Left() > 0 && d.Err() == nil {
			one, err := decodeBatch(d.Bytes())
			if err != nil {
				return nil, err
			}
			f.batches = append(f.batches, one)
		}
	case kindAck, kindMark:
		f.count = d.Uint64()
	default:
		return nil, fmt.Errorf("%w: kind %d", ErrFrame, f.kind)
	}
	if err := d.Finish(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return f, nil
}

// appendBatch appends a batch without messages; appendBody adds them.
func appendBatch(b []byte, origin Member, first uint64) []byte {
	return wire.AppendUint64(appendMember(b, origin), first)
}

func appendBody(b []byte, topic string, data []byte) []byte {
	b = append(wire.AppendUint32(b, uint32(len(topic))), topic...)
	return wire.AppendBytes(b, data)
}

func decodeBatch(raw []byte) (batch, error) {
	d := wire.NewDecoder(raw)
	one := batch{origin: decodeMember(&d), first: d.Uint64(), raw: raw}
	for d.Left() > 0 && d.Err() == nil {
		one.bodies = append(one.bodies, decodeBody(&d))
	}
	if err := d.Finish(); err != nil {
		return batch{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return one, nil
}

func decodeBody(d *wire.Decoder) body { return body{string(d.Bytes()), d.Bytes()} }

func appendMember(b []byte, m Member) []byte {
	return wire.AppendUint64(wire.AppendUint32(b, uint32(m.Rank)), m.Incarnation)
}

func decodeMember(d *wire.Decoder) Member { return Member{int(d.Uint32()), d.Uint64()} }

func appendMembers(b []byte, members []Member) []byte {
	b = wire.AppendUint32(b, uint32(len(members)))
	for _, m := range members {
		b = appendMember(b, m)
	}
	return b
}

func decodeMembers(d *wire.Decoder) (members []Member) {
	for n := d.Uint32(); n > 0 && d.Err() == nil; n-- {
		members = append(members, decodeMember(d))
	}
	return members
}
