// Package record makes a test of an incident: a [Recorder] keeps what came into a member,
// and [Recording.Replay] runs the same machine over it, to the same state.
//
// That is possible because a [member.Machine] is a state machine without I/O: its state
// follows from its config and from its inputs with their times. A Recorder stands between
// a driver and the machine, has the same methods, and writes every input down before it
// passes it on. What the machine does, frames above all, goes into a running checksum. Each
// input is recorded with the checksum before it, so a replay finds the first input after
// which it differs.
package record

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Setup is what a member begins with: the part of its config that steers it.
type Setup struct {
	// Began is when the member began, in nanoseconds since 1970. Only people read it.
	Began int64

	Self        membership.Member
	View        membership.View
	Start       []membership.Position
	Static      bool
	Shape       string
	Stream      stream.Config
	Membership  membership.Config
	Heartbeat   struct{ Interval, Timeout protocol.Time }
	SlowTimeout protocol.Time
	MaxDirect   int  `json:",omitempty"`
	Durable     bool // it saves its vote
}

// newSetup is the setup of a config. It refuses what a file cannot hold.
func newSetup(c *member.Config, began int64) (*Setup, error) {
	s := &Setup{
		Began: began, Self: c.Self, View: c.View, Start: c.Start, Static: c.Static, Shape: c.Stream.Shape.String(), Stream: c.Stream,
		Membership: c.Membership, SlowTimeout: c.SlowTimeout, MaxDirect: c.MaxDirect, Durable: c.Save != nil,
	}
	s.Heartbeat.Interval, s.Heartbeat.Timeout = c.Heartbeat.Interval, c.Heartbeat.Timeout
	shape, err := topology.ParseShape(s.Shape, 0, 0)
	switch {
	case c.Unicast != nil:
		return nil, fmt.Errorf("record: a member with a unicast channel cannot be recorded")
	case err != nil || shape != c.Stream.Shape:
		return nil, fmt.Errorf("record: the tree shape %s cannot be recorded", s.Shape)
	}
	return s, nil
}

// config is the config that a setup was made of.
func (s *Setup) config() (c member.Config, err error) {
	c = member.Config{
		Self: s.Self, View: s.View, Start: s.Start, Static: s.Static, Stream: s.Stream, Membership: s.Membership,
		Heartbeat:   heartbeat.Config{Interval: s.Heartbeat.Interval, Timeout: s.Heartbeat.Timeout},
		SlowTimeout: s.SlowTimeout, MaxDirect: s.MaxDirect,
	}
	c.Membership.Log = nil
	c.Stream.Shape, err = topology.ParseShape(s.Shape, 0, 0)
	return c, err
}

// Recorder is a machine whose inputs are recorded.
type Recorder struct {
	*member.Machine
	first membership.View
	began []byte // the file until the first input

	chunks [][]byte // the inputs: a long recording is never copied
	length int      // of all chunks, in bytes
	limit  int      // of length
	over   *input   // how the recording ends, once it has reached the limit; nothing is recorded then
	now    protocol.Time
	chain  uint32 // the checksum of all that the machine has done
	number []byte // for did
}

// New makes a machine that is recorded, as of a time in nanoseconds since 1970, until its
// inputs take limit bytes.
func New(c member.Config, began int64, limit int) (*Recorder, error) {
	setup, err := newSetup(&c, began)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(setup)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	r := &Recorder{limit: limit, began: binary.AppendUvarint([]byte(magic), uint64(len(b)))}
	r.began = append(r.began, b...)
	return r, r.begin(c)
}

// begin makes the machine, and has it tell what it does.
func (r *Recorder) begin(c member.Config) (err error) {
	if save := c.Save; save != nil {
		c.Save = func(state []byte, sync bool) {
			r.did(numberOf(sync))
			r.didBytes(state)
			save(state, sync)
		}
	}
	installed := c.OnView
	c.OnView = func(v *membership.View) {
		r.did(v.Number, uint64(v.Slots), uint64(v.Members.Len()))
		if installed != nil {
			installed(v)
		}
	}
	r.first = c.View
	r.Machine, err = member.New(c)
	return err
}

// note records an input before the machine gets it. A recording that has reached its limit
// ends before an input, so that a replay comes to the state of that moment.
func (r *Recorder) note(k kind, now protocol.Time, peer protocol.Rank, number uint64, data ...[]byte) {
	before := r.now
	r.now = now
	if r.over != nil {
		return
	}
	length := maxHead
	for _, d := range data {
		length += len(d)
	}
	if r.length+length > r.limit {
		r.now = before
		r.over = r.end(true)
		r.now = now
		return
	}
	in := input{kind: k, at: now, peer: peer, number: number, chain: r.chain}
	chunk := r.room(length)
	length = len(*chunk)
	*chunk = in.appendTo(*chunk, before, data...)
	r.length += len(*chunk) - length
}

// chunkSize is how much memory a recorder takes at a time.
const chunkSize = 256 << 10

// room returns the last chunk, with room for so many bytes.
func (r *Recorder) room(length int) *[]byte {
	if n := len(r.chunks); n == 0 || cap(r.chunks[n-1])-len(r.chunks[n-1]) < length {
		r.chunks = append(r.chunks, make([]byte, 0, max(length, chunkSize)))
	}
	return &r.chunks[len(r.chunks)-1]
}

// end is the end of a recording at this moment.
func (r *Recorder) end(cut bool) *input {
	return &input{kind: end, at: r.now, number: numberOf(cut), chain: r.Hash()}
}

// Snapshot is a recording as it is at one moment. The machine may go on meanwhile.
type Snapshot struct{ pieces [][]byte }

// Snapshot returns the recording until now.
func (r *Recorder) Snapshot() *Snapshot {
	last := r.over
	if last == nil {
		last = r.end(false)
	}
	pieces := append([][]byte{r.began}, r.chunks...) // what is appended to a chunk is not seen
	return &Snapshot{append(pieces, last.appendTo(nil, last.at))}
}

// WriteTo writes the file.
func (s *Snapshot) WriteTo(w io.Writer) (written int64, err error) {
	var sum uint32
	for _, b := range s.pieces {
		sum = crc32.Update(sum, castagnoli, b)
	}
	for _, b := range append(s.pieces[:len(s.pieces):len(s.pieces)], binary.BigEndian.AppendUint32(nil, sum)) {
		n, err := w.Write(b)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	return written, nil
}

// castagnoli is the polynomial of CRC-32C, which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// did adds numbers to what the machine has done.
func (r *Recorder) did(numbers ...uint64) {
	r.number = r.number[:0]
	for _, n := range numbers {
		r.number = binary.BigEndian.AppendUint64(r.number, n)
	}
	r.chain = crc32.Update(r.chain, castagnoli, r.number)
}

// didBytes adds bytes to what the machine has done.
func (r *Recorder) didBytes(b []byte) { r.chain = crc32.Update(r.chain, castagnoli, b) }

// State is what a member is at one moment.
type State struct {
	View        membership.View
	State       string          // as "active"
	Unreachable []protocol.Rank `json:",omitempty"`
	Stats       stream.Stats
	Deadline    protocol.Time
}

// State returns the present state.
func (r *Recorder) State() State {
	s := State{View: r.first, State: membership.Active.String(), Stats: r.Stream().Stats(), Deadline: r.Deadline()}
	if !r.Static() {
		state, _ := r.Machine.State()
		s.View, s.State, s.Unreachable = r.View(), state.String(), r.Unreachable()
	}
	return s
}

// Hash is the checksum of the present state and of all that the member has done.
func (r *Recorder) Hash() uint32 {
	b, _ := json.Marshal(r.State()) // it has numbers and texts only
	return crc32.Update(r.chain, castagnoli, b)
}

func numberOf(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
