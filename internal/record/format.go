package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// A recording is a line of text with the version, the setup in JSON after its length, the
// inputs, the last of which is the end, and a CRC-32C of all that. An input is its kind, the
// time since the one before, a peer, a number, data after its length, and the checksum of
// all that the machine has done before.

const magic = "pleach recording 2\n"

// MaxBytes bounds a recording.
const MaxBytes = 1 << 30

// maxHead is how long an input is at most, without its data.
const maxHead = 1 + 4*binary.MaxVarintLen64 + 4

// ErrMalformed is wrapped by every error about a file that is no recording, or is damaged.
var ErrMalformed = errors.New("the file is no recording, or is damaged")

// kind is what an input is.
type kind uint8

const (
	end kind = iota
	start
	settle
	receive
	receiveBuffer
	bufferFilled
	up
	down
	writable
	next
	sendFailed
	reported
	setImpaired
	join
	leave
	removed
	forceView
	learn
	write
	abandon
	flushBatch
	poll
	deliver
	saved
	sendDirect
	deliverDirect
	flushDirect
	setMeta
	setSynced
	writeTopic
	subscribe
	unsubscribe
	deliverTopic
	trace
	raiseVersion
	received
	pollProcessed
	noteProcessed
	evict
)

var kindNames = []string{
	"end", "start", "settle", "receive", "receive buffer", "buffer filled", "up", "down", "writable", "next", "send failed", "report",
	"set impaired", "join", "leave", "removed", "force view", "learn", "write", "abandon", "flush batch", "poll", "deliver", "saved",
	"send direct", "deliver direct", "flush direct", "set meta", "set synced", "write topic", "subscribe", "unsubscribe", "deliver topic", "trace", "raise version",
	"received", "poll processed", "note processed", "evict",
}

func (k kind) String() string { return kindNames[k] }

// input is one call of a machine.
type input struct {
	kind   kind
	at     protocol.Time
	peer   protocol.Rank
	number uint64
	data   []byte
	chain  uint32
}

// appendTo encodes an input whose data is in pieces.
func (in *input) appendTo(b []byte, before protocol.Time, data ...[]byte) []byte {
	b = append(b, byte(in.kind))
	b = binary.AppendVarint(b, int64(in.at-before)) // frames of one batch may be older than what came between
	b = binary.AppendUvarint(b, uint64(in.peer))
	b = binary.AppendUvarint(b, in.number)
	length := 0
	for _, d := range data {
		length += len(d)
	}
	b = binary.AppendUvarint(b, uint64(length))
	for _, d := range data {
		b = append(b, d...)
	}
	return binary.BigEndian.AppendUint32(b, in.chain)
}

// decoder decodes inputs.
type decoder struct {
	left   []byte
	before protocol.Time
}

// next decodes an input. Its data points into the file.
func (d *decoder) next() (in input, err error) {
	if len(d.left) == 0 {
		return in, io.ErrUnexpectedEOF
	}
	in.kind = kind(d.left[0])
	if int(in.kind) >= len(kindNames) {
		return in, fmt.Errorf("no input is of kind %d", d.left[0])
	}
	delta, n := binary.Varint(d.left[1:])
	if n <= 0 {
		return in, io.ErrUnexpectedEOF
	}
	b := d.left[1+n:]
	var numbers [3]uint64
	for i := range numbers {
		if numbers[i], n = binary.Uvarint(b); n <= 0 {
			return in, io.ErrUnexpectedEOF
		}
		b = b[n:]
	}
	peer, length := numbers[0], numbers[2]
	switch {
	case peer >= membership.MaxSlots:
		return in, fmt.Errorf("%d is no rank", peer)
	case length > uint64(len(b)) || uint64(len(b))-length < 4:
		return in, io.ErrUnexpectedEOF
	}
	in.at = d.before + protocol.Time(delta)
	in.peer, in.number, in.data = protocol.Rank(peer), numbers[1], b[:length:length]
	in.chain = binary.BigEndian.Uint32(b[length:])
	d.left, d.before = b[length+4:], in.at
	return in, in.check()
}

// check refuses inputs that no driver would make.
func (in *input) check() (err error) {
	switch in.kind {
	case receiveBuffer:
		if len(in.data) == 0 || in.number < uint64(len(in.data)) || in.number > MaxBytes {
			err = fmt.Errorf("a buffer of %d bytes, %d of which are there", in.number, len(in.data))
		}
	case bufferFilled:
		if in.number == 0 || in.number > uint64(len(in.data)) {
			err = fmt.Errorf("%d bytes of %d are the head", in.number, len(in.data))
		}
	case sendDirect:
		if in.number > uint64(len(in.data)) {
			err = fmt.Errorf("%d bytes of %d are the head", in.number, len(in.data))
		}
	case write:
		if in.number > MaxBytes<<2 {
			err = fmt.Errorf("%d bytes of a message follow", in.number)
		}
	case writeTopic:
		if in.number > MaxBytes<<2 || len(in.data) == 0 || len(in.data) <= int(in.data[0]) {
			err = fmt.Errorf("a message of %d bytes, and %d that follow, has no topic", len(in.data), in.number)
		}
	case reported:
		err = json.Unmarshal(in.data, new(recordedReport))
	case join:
		err = json.Unmarshal(in.data, new(membership.Member))
	case removed:
		err = json.Unmarshal(in.data, new(*membership.Member))
	case forceView:
		err = json.Unmarshal(in.data, new([]protocol.Rank))
	case evict:
		if len(in.data) != 1 {
			err = fmt.Errorf("an eviction with %d causes", len(in.data))
		}
	case learn:
		_, err = membership.DecodeDecisions(in.data)
	}
	return err
}

// Recording is what came into a member.
type Recording struct {
	Setup Setup
	// Cut says that the recording reached its limit, and ends before the member did.
	Cut bool
	// End is the time of the end, since the member began, and Hash the checksum of its
	// state then.
	End  protocol.Time
	Hash uint32
	// Inputs counts them.
	Inputs int

	inputs []byte
}

// Decode decodes a file and checks all of it.
func Decode(file []byte) (*Recording, error) {
	r, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return r, nil
}

func decode(file []byte) (*Recording, error) {
	rest, ok := bytes.CutPrefix(file, []byte(magic))
	if !ok || len(rest) < 4 {
		return nil, fmt.Errorf("it does not begin with %q", magic[:len(magic)-1])
	}
	sum := len(file) - 4
	if crc32.Checksum(file[:sum], castagnoli) != binary.BigEndian.Uint32(file[sum:]) {
		return nil, errors.New("its checksum is wrong: it was changed or cut off")
	}
	rest = rest[:len(rest)-4]
	length, n := binary.Uvarint(rest)
	if n <= 0 || length > uint64(len(rest)-n) {
		return nil, io.ErrUnexpectedEOF
	}
	r := &Recording{inputs: rest[n+int(length):]}
	if err := json.Unmarshal(rest[n:n+int(length)], &r.Setup); err != nil {
		return nil, err
	}
	if slots := r.Setup.View.Slots; slots < 1 || slots > membership.MaxSlots || r.Setup.View.Members.Len() > int(slots) {
		return nil, fmt.Errorf("a view of %d ranks", slots)
	}
	return r, r.scan()
}

// scan looks at every input, up to the end.
func (r *Recording) scan() error {
	for d := (decoder{left: r.inputs}); ; r.Inputs++ {
		in, err := d.next()
		switch {
		case err != nil:
			return fmt.Errorf("input %d: %w", r.Inputs, err)
		case in.kind == end && len(d.left) > 0:
			return fmt.Errorf("%d bytes after the end", len(d.left))
		case in.kind == end:
			r.End, r.Cut, r.Hash = in.at, in.number != 0, in.chain
			return nil
		}
	}
}
