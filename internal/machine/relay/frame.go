package relay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/base/header"
)

// kind is the first byte of a frame.
type kind byte

const (
	kindData kind = iota + 1 // a message
	kindLost                 // messages of an origin, up to a position, that are lost
	kindBase                 // positions at which a zone that is new begins
	// in a zone: positions of the lead, and what all zones have; from a gateway to a lead: zones that are waited for
	kindWatermark
	kindSync    // from a lead to a gateway: its positions; asks for those of the gateway
	kindReply   // the gateway's positions
	kindAck     // the gateway's positions that are stable in its zone
	kindSummary // what zones tell about themselves
	kindTable   // the reply to a joiner: see repair.go
	kindFetch   // asks for the messages of an origin from a position on
	kindHello   // from a joiner to its zone: see repair.go
	kindHeaded  // a message with a header; in memory a kindData with headed set
)

// MaxName is the longest name of a zone and the longest ID, in bytes.
const MaxName = 255

// minPosition is the least number of bytes of a position in a frame.
const minPosition = 5

// maxItems bounds the entries of a frame.
const maxItems = 1 << 17

// ErrFrame is returned for bytes that are no frame.
var ErrFrame = errors.New("fleet: not a frame")

// position is where a process is in the messages of an origin: it has all up to Seq. In a
// watermark, all zones have those up to Acked.
type position struct {
	Origin Origin
	Seq    uint64
	Acked  uint64
}

// frame is any frame; which fields it has depends on its kind.
type frame struct {
	kind      kind
	headed    bool     // data begins with a header: its length in two bytes, and the header
	zone      string   // the sender's
	zones     []string // those that the sender has a base of
	covers    []string // of these, positions has all origins that the sender knows
	born      uint64   // when the sender's zone was begun
	positions []position
	origin    Origin
	stream    *stream // of the origin, in a frame that was read, if it is known
	seq       uint64
	data      []byte
	raw       []byte // the frame with its length, in a frame that was read
	summaries []Summary
}

// message is a frame of kindData with its length, as it is kept, sent and cast: by its origin
// and by every member that passes it on.
type message struct {
	raw  []byte
	head int // length of what is before the data
}

// content returns the header of a message, or "", and its data.
func (m message) content() (h header.Encoded, data []byte) {
	data = m.raw[m.head:]
	if _, n := binary.Uvarint(m.raw); kind(m.raw[n]) != kindHeaded {
		return "", data
	}
	b, data, _ := cutHeader(data) // it was checked when the frame was read
	return header.Encoded(b), data
}

// appendHeader appends a header and the data behind it.
func appendHeader(b []byte, h header.Encoded, data []byte) []byte {
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(h))), h...)
	return append(b, data...)
}

// cutHeader splits a header off. It reports false if there is no valid one.
func cutHeader(b []byte) (h, data []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return nil, nil, false
	}
	end := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:end], b[end:], header.Valid(b[2:end])
}

// message returns a frame of kindData that was read.
func (f *frame) message() message { return message{f.raw, len(f.raw) - len(f.data)} }

// encode returns a frame with its length, so that frames can be concatenated: a driver sends
// those together that wait for the same member.
func (f *frame) encode() []byte { return appendFrame(nil, f) }

func appendFrame(b []byte, f *frame) []byte {
	const most = binary.MaxVarintLen32
	buffer := make([]byte, most, most+len(f.data)+len(f.origin.Zone)+len(f.origin.ID)+40) // most frames are of kindData
	buffer = f.append(buffer)
	var length [most]byte
	n := binary.PutUvarint(length[:], uint64(len(buffer)-most))
	copy(buffer[most-n:], length[:n])
	if b == nil {
		return buffer[most-n:]
	}
	return append(b, buffer[most-n:]...)
}

func (f *frame) append(b []byte) []byte {
	if f.headed {
		b = append(b, byte(kindHeaded))
	} else {
		b = append(b, byte(f.kind))
	}
	switch f.kind {
	case kindData, kindLost, kindFetch, kindHello:
		b = appendOrigin(b, f.origin)
		b = binary.AppendUvarint(b, f.seq)
		return append(b, f.data...)
	case kindSummary:
		b = binary.AppendUvarint(b, uint64(len(f.summaries)))
		for _, s := range f.summaries {
			b = s.append(b)
		}
		return b
	}
	b = appendString(b, f.zone)
	b = appendStrings(appendStrings(b, f.zones), f.covers)
	b = binary.AppendUvarint(b, f.born)
	b = binary.AppendUvarint(b, uint64(len(f.positions)))
	for _, p := range f.positions {
		b = appendOrigin(b, p.Origin)
		b = binary.AppendUvarint(b, p.Seq)
		b = binary.AppendUvarint(b, p.Acked)
	}
	return append(b, f.data...)
}

// decode reads a frame.
func decode(b []byte) (*frame, error) {
	f := new(frame)
	return f, f.decode(b, nil)
}

// decode reads a frame, whose data are then part of b. known has streams by the bytes of
// their origins, so that the names of each are made once, and a message need not be looked up
// again.
func (f *frame) decode(b []byte, known map[string]*stream) error {
	if len(b) == 0 {
		return ErrFrame
	}
	d := decoder{b: b[1:], known: known}
	f.kind = kind(b[0])
	if f.kind == kindHeaded {
		f.kind, f.headed = kindData, true
	}
	switch f.kind {
	case kindData, kindLost, kindFetch, kindHello:
		f.origin, f.stream = d.originAndStream()
		f.seq = d.number()
	case kindSummary:
		for range d.count() {
			f.summaries = append(f.summaries, d.summary())
		}
	case kindBase, kindWatermark, kindSync, kindReply, kindAck, kindTable:
		f.zone = d.text()
		f.zones, f.covers, f.born = d.texts(), d.texts(), d.number()
		n := d.count()
		f.positions = make([]position, 0, min(n, len(d.b)/minPosition))
		for range n {
			f.positions = append(f.positions, position{d.origin(), d.number(), d.number()})
		}
	default:
		return fmt.Errorf("%w: kind %d", ErrFrame, f.kind)
	}
	f.data = d.b
	if _, _, ok := cutHeader(f.data); f.headed && !ok {
		return fmt.Errorf("%w: no header", ErrFrame)
	}
	return d.err
}

// next reads the first of concatenated frames, whose data are then part of b, and returns the
// others.
func (f *frame) next(b []byte, known map[string]*stream) (rest []byte, err error) {
	d := decoder{b: b}
	one := d.bytes(len(b))
	if d.err != nil {
		return nil, d.err
	}
	*f = frame{raw: slices.Clip(b[:len(b)-len(d.b)])}
	return d.b, f.decode(one, known)
}

// splitFrames reads concatenated frames.
func splitFrames(b []byte) (frames []*frame, err error) {
	for len(b) > 0 {
		f := new(frame)
		b, err = f.next(b, nil)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	return frames, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendOrigin(b []byte, o Origin) []byte {
	b = appendString(appendString(b, o.Zone), o.ID)
	return binary.AppendUvarint(b, o.Incarnation)
}

// decoder reads a frame. After an error, it returns zero values.
type decoder struct {
	b     []byte
	known map[string]*stream
	err   error
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if d.err != nil || size <= 0 {
		d.err, d.b = ErrFrame, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

// count reads how many entries follow, which have at least a byte each.
func (d *decoder) count() int {
	n := d.number()
	if n > maxItems || n > uint64(len(d.b)) {
		d.err, d.b = ErrFrame, nil
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(most int) []byte {
	n := d.number()
	if d.err != nil || n > uint64(most) || n > uint64(len(d.b)) {
		d.err, d.b = ErrFrame, nil
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) text() string { return string(d.bytes(MaxName)) }

func (d *decoder) texts() (list []string) {
	for range d.count() {
		list = append(list, d.text())
	}
	return list
}

func (d *decoder) origin() Origin {
	o, _ := d.originAndStream()
	return o
}

// originAndStream reads an origin. It also returns the stream of it, if that is known.
func (d *decoder) originAndStream() (Origin, *stream) {
	b := d.b
	zone, id, incarnation := d.bytes(MaxName), d.bytes(MaxName), d.number()
	if s := d.known[string(b[:len(b)-len(d.b)])]; s != nil {
		return s.origin, s
	}
	return Origin{string(zone), string(id), incarnation}, nil
}
