package handoff

import (
	"encoding/binary"
	"errors"
)

// Kind is what a [Message] says of its items.
type Kind uint8

// The kinds.
const (
	// Report has all that the sender holds in the view, what it drains included.
	Report Kind = iota
	// Begun has what the sender has begun to own.
	Begun
	// Released has what the sender owned and does not serve any more.
	Released
	// TermsOf has the terms of the sender, and no items. Builds without terms ignore it.
	TermsOf

	kinds = iota
)

// Item is a partition with the token of its owner.
type Item struct {
	Partition int
	Token     uint64
}

// Message is what a machine tells those of the other members.
type Message struct {
	Kind  Kind
	View  uint64 // the sender's when it made the message
	From  Process
	Items []Item
	Terms Terms // of TermsOf
}

// ErrMalformed is returned by [Decode] for bytes that no [Message] has.
var ErrMalformed = errors.New("handoff: malformed message")

// maxItems bounds what a message makes a receiver allocate. Each item has two bytes or more.
func maxItems(b []byte) uint64 { return uint64(len(b) / 2) }

// Encode returns the bytes of a message. The sender's rank is not in them: the group tells it.
func (m *Message) Encode() []byte {
	b := make([]byte, 0, 24+4*len(m.Items))
	b = append(b, byte(m.Kind))
	b = binary.AppendUvarint(b, m.View)
	b = binary.AppendUvarint(b, m.From.Incarnation)
	if m.Kind == TermsOf {
		return m.Terms.encode(b)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Items)))
	for _, i := range m.Items {
		b = binary.AppendUvarint(b, uint64(i.Partition))
		b = binary.AppendUvarint(b, i.Token)
	}
	return b
}

// Decode reads a message that the member of a rank has sent. Partitions are below partitions.
func Decode(from, partitions int, b []byte) (m Message, err error) {
	if len(b) == 0 || b[0] >= kinds {
		return m, ErrMalformed
	}
	d := decoder{b: b[1:]}
	m = Message{Kind: Kind(b[0]), View: d.uint(), From: Process{from, d.uint()}}
	if m.Kind == TermsOf {
		return m, m.Terms.decode(&d)
	}
	n := d.uint()
	if n > maxItems(d.b) {
		return m, ErrMalformed
	}
	m.Items = make([]Item, n)
	for i := range m.Items {
		p := d.uint()
		if p >= uint64(partitions) {
			return m, ErrMalformed
		}
		m.Items[i] = Item{int(p), d.uint()}
	}
	if d.bad || len(d.b) > 0 {
		return m, ErrMalformed
	}
	return m, nil
}

// decoder reads numbers, and remembers if one was cut short.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}
