package sequencer

// How a snapshot gets from one member to another: in blocks, several requests at a time. Time does
// not count, only progress does: each block has its own timeout. Blocks that have arrived are kept
// when the member that sends them fails. The next member compares their hashes with those of its own
// snapshot, which may be a later one, and sends only the blocks that differ.

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Limits of transfers.
const (
	defaultBlock         = 64 << 10
	minBlock             = 16
	blocksAsked          = 8    // at a time
	transferWait    Time = 20e9 // for one reply; a member that is gone fails sooner
	captureIdle     Time = 30e9 // after which a snapshot that nobody asks for is dropped
	maxCaptures          = 8    // snapshots that are kept for others
	maxProgram           = 1 << 30
	openingTransfer      = 1<<32 - 1 // instead of the number of a block
)

// transfers are the snapshots that go out, and the one that comes in.
type transfers struct {
	captures []*capture
	transfer *transfer // nil: none is under way
	blocks   [][]byte  // the program's state as far as it has arrived; kept for the next transfer
}

// opening is a request for a snapshot at a mark.
type opening struct {
	from  int
	block int      // size of a block
	have  []uint64 // hashes of the blocks that the member has; 0: it lacks that block
}

// capture is a snapshot that another member gets.
type capture struct {
	id, name uint64   // of the request that has asked for it, and of its mark
	opening  *opening // nil: in one reply
	head     []byte   // the order
	program  []byte   // the program's state; nil: the driver has not taken it yet
	used     Time
}

// transfer is a snapshot that comes in.
type transfer struct {
	name   uint64
	from   int
	head   []byte
	digest [sha256.Size]byte // of the program's state
	wanted []uint32          // blocks to be asked for
	asked  int               // blocks on their way
	size   int
}

// open asks a member for a snapshot at a mark.
func (j *Joining) open(from int, name uint64) {
	body := wire.AppendUint32(wire.AppendUint64(nil, name), openingTransfer)
	body = wire.AppendUint32(body, uint32(j.block()))
	for _, b := range j.blocks {
		body = wire.AppendUint64(body, hashOf(b))
	}
	j.ask(from, TransferRequest, body, func(now Time, r Reply) {
		switch {
		case r.NoPart:
			j.fetchWhole(from, name)
		case r.Err != nil || len(r.Body) == 0 || j.name != name:
			j.fetch(now)
		default:
			j.opened(now, from, name, r.Body)
		}
	})
}

// opened begins a transfer.
func (j *Joining) opened(now Time, from int, name uint64, body []byte) {
	d := wire.NewDecoder(body)
	t := &transfer{name: name, from: from, size: int(min(d.Uint64(), maxProgram+1))}
	for i := range t.digest {
		t.digest[i] = d.Uint8()
	}
	t.head = d.Bytes()
	for d.Left() > 0 && d.Err() == nil {
		t.wanted = append(t.wanted, d.Uint32())
	}
	count := blockCount(t.size, j.block())
	if d.Finish() != nil || t.size > maxProgram ||
		slices.ContainsFunc(t.wanted, func(n uint32) bool { return int(n) >= count }) {
		j.fetch(now)
		return
	}
	j.transfer, j.pause = t, minPause
	j.blocks = append(j.blocks[:min(len(j.blocks), count)], make([][]byte, max(0, count-len(j.blocks)))...)
	j.goOn(now)
}

// goOn asks for the next blocks, and ends the transfer when all are there.
func (j *Joining) goOn(now Time) {
	t := j.transfer
	for ; len(t.wanted) > 0 && t.asked < blocksAsked; t.wanted = t.wanted[1:] {
		n := t.wanted[0]
		t.asked++
		j.ask(t.from, TransferRequest, wire.AppendUint32(wire.AppendUint64(nil, t.name), n), func(now Time, r Reply) {
			t.asked--
			switch {
			case j.transfer != t:
			case r.Err != nil || len(r.Body) != blockLength(t.size, j.block(), int(n)) || j.name != t.name:
				j.fetch(now)
			default:
				j.blocks[n] = r.Body
				j.goOn(now)
			}
		})
	}
	if len(t.wanted) > 0 || t.asked > 0 {
		return
	}
	program := slices.Concat(j.blocks...)
	if len(program) != t.size || sha256.Sum256(program) != t.digest {
		j.blocks = nil // hashes of blocks have collided, or its sender is wrong
		j.fetch(now)
		return
	}
	j.transfer = nil
	j.fetched(now, t.name, append(t.head[:len(t.head):len(t.head)], program...))
}

// TransferAsked takes a member's request for a snapshot at a mark, or for a block of one. The reply
// is empty if this member does not know the order.
func (j *Joining) TransferAsked(now Time, id uint64, from int, body []byte) {
	d := wire.NewDecoder(body)
	name, block := d.Uint64(), d.Uint32()
	o := &opening{from: from}
	if block == openingTransfer {
		o.block = int(d.Uint32())
	}
	for block == openingTransfer && d.Left() > 0 && d.Err() == nil {
		o.have = append(o.have, d.Uint64())
	}
	answer := Answer{ID: id}
	switch {
	case d.Finish() != nil || block == openingTransfer && o.block < minBlock:
		answer.Err = errMalformed
	case block != openingTransfer:
		answer.Body, answer.Err = j.blockOf(now, name, int(block))
	case !j.makeRoom(from):
		answer.Err = errTooMany
	default:
		j.takeFor(now, asked{id: id, name: name, opening: o})
		return
	}
	j.out = append(j.out, answer)
}

// makeRoom drops the snapshot that a member has asked for before, and reports whether there is room
// for another one.
func (j *Joining) makeRoom(from int) bool {
	j.captures = slices.DeleteFunc(j.captures, func(c *capture) bool { return c.program != nil && c.opening.from == from })
	return len(j.captures) < maxCaptures
}

// blockOf returns a block of a snapshot. A member has its snapshot when the last one was asked for:
// if it cannot use it, it asks for another one.
func (j *Joining) blockOf(now Time, name uint64, block int) ([]byte, error) {
	i := slices.IndexFunc(j.captures, func(c *capture) bool { return c.name == name && c.program != nil })
	if i < 0 || block >= j.captures[i].blocks() {
		return nil, errNoSnapshot
	}
	c := j.captures[i]
	c.used = now
	return c.block(block), nil
}

// capture has the driver take a snapshot.
func (j *Joining) capture(a *asked) {
	j.captures = append(j.captures, &capture{id: a.id, name: a.name, opening: a.opening, head: AppendState(nil, j.order)})
	j.out = append(j.out, Capture{a.id})
}

// Captured takes the program's state that a [Capture] has asked for.
func (j *Joining) Captured(now Time, id uint64, program []byte, err error) {
	i := slices.IndexFunc(j.captures, func(c *capture) bool { return c.id == id && c.program == nil })
	if i < 0 {
		return
	}
	c := j.captures[i]
	answer := Answer{ID: id, Err: err}
	switch {
	case err != nil:
	case c.opening == nil:
		answer.Body = append(c.head, program...)
	default:
		c.program, c.used = program, now
		if program == nil {
			c.program = []byte{}
		}
		answer.Body = c.opened()
	}
	if len(c.program) == 0 {
		j.captures = slices.Delete(j.captures, i, i+1)
	}
	j.out = append(j.out, answer)
}

// opened is the reply to the request for a snapshot: how long the program's state is, its digest,
// the order, and the blocks that the member lacks.
func (c *capture) opened() []byte {
	digest := sha256.Sum256(c.program)
	b := append(wire.AppendUint64(nil, uint64(len(c.program))), digest[:]...)
	b = wire.AppendBytes(b, c.head)
	for n := range c.blocks() {
		if n >= len(c.opening.have) || c.opening.have[n] != hashOf(c.block(n)) {
			b = wire.AppendUint32(b, uint32(n))
		}
	}
	return b
}

func (c *capture) blocks() int { return blockCount(len(c.program), c.opening.block) }

func (c *capture) block(n int) []byte {
	return c.program[n*c.opening.block:][:blockLength(len(c.program), c.opening.block, n)]
}

// expire drops snapshots that nobody has asked for in a while.
func (j *Joining) expire(now Time) {
	j.captures = slices.DeleteFunc(j.captures, func(c *capture) bool {
		return c.program != nil &&
			now >= c.used+captureIdle
	})
}

// expiry is when a snapshot is dropped.
func (j *Joining) expiry() Time {
	due := protocol.Never
	for _, c := range j.captures {
		if c.program != nil {
			due = min(due, c.used+captureIdle)
		}
	}
	return due
}

// block is how long the blocks are that this member asks for.
func (j *Joining) block() int { return cmp.Or(j.order.config.Block, defaultBlock) }

func blockCount(size, block int) int { return (size + block - 1) / block }

func blockLength(size, block, n int) int { return min(block, size-n*block) }

// hashOf is the hash of a block, and 0 of one that is not there.
func hashOf(block []byte) uint64 {
	if block == nil {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(block)
	return max(1, binary.BigEndian.Uint64(h.Sum(nil)))
}
