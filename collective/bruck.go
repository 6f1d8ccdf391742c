package collective

import (
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Small parts of an Alltoall are sent together (Bruck et al. 1997): in step k, a task sends
// all blocks whose distance to their receiver has bit k set to the task 2^k further on. A
// task sends log n messages instead of n−1. Only the sender knows a part's length, so it
// sends a long part directly, and an empty block marked direct in its place.

// block is a part on its way: its bytes, or a mark that they are sent directly.
type block struct {
	bytes  []byte
	direct bool
}

const directMark = 1 << 63

// swapTogether exchanges parts by Bruck's algorithm.
func (v *invocation[T, In, Out]) swapTogether(t *engine.Task, parts, all [][]T) error {
	blocks, err := v.packBlocks(t, parts)
	if err != nil {
		return err
	}
	for step, bit := 0, 1; bit < t.N; step, bit = step+1, 2*bit {
		if err := t.Send((t.ID+bit)%t.N, step, appendGroup(blocks, bit)); err != nil {
			return err
		}
		b, err := t.Receive((t.ID-bit+t.N)%t.N, step)
		if err != nil {
			return err
		}
		if err := cutGroup(blocks, bit, b); err != nil {
			return err
		}
	}
	for d := 1; d < t.N; d++ {
		from := (t.ID - d + t.N) % t.N
		if blocks[d].direct {
			all[from], err = v.receivePart(t, from)
		} else {
			all[from], err = v.openPart(t, from, engine.Payload{Bytes: blocks[d].bytes})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// packBlocks sends long parts directly, and returns a block for each part, by distance.
func (v *invocation[T, In, Out]) packBlocks(t *engine.Task, parts [][]T) (blocks []block, err error) {
	blocks = make([]block, t.N)
	for d := 1; d < t.N; d++ {
		to := (t.ID + d) % t.N
		p := &blocks[d]
		p.direct = v.bytes(len(parts[to])) > t.Thresholds().BruckPart
		if p.direct {
			err = v.sendElements(t, to, direct, parts[to])
		} else {
			p.bytes, err = v.encode(parts[to])
		}
		if err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// appendGroup encodes the blocks whose distance has a bit: for each its length 8, then the
// bytes, padded to a multiple of eight so that numbers in them are aligned.
func appendGroup(blocks []block, bit int) (b []byte) {
	size := 0
	for d, p := range blocks {
		if d&bit != 0 {
			size += 16 + len(p.bytes)
		}
	}
	b = make([]byte, 0, size)
	for d, p := range blocks {
		switch {
		case d&bit == 0:
		case p.direct:
			b = binary.BigEndian.AppendUint64(b, directMark)
		default:
			b = binary.BigEndian.AppendUint64(b, uint64(len(p.bytes)))
			b = append(b, p.bytes...)
			b = append(b, make([]byte, -len(p.bytes)&7)...)
		}
	}
	return b
}

// cutGroup decodes what appendGroup has encoded.
func cutGroup(blocks []block, bit int, b []byte) error {
	for d := range blocks {
		if d&bit == 0 {
			continue
		}
		if len(b) < 8 {
			return fmt.Errorf("%w: parcels end early", engine.ErrMessage)
		}
		length := binary.BigEndian.Uint64(b)
		b = b[8:]
		if length == directMark {
			blocks[d] = block{direct: true}
			continue
		}
		padded := (length + 7) &^ 7
		if length > uint64(len(b)) || padded > uint64(len(b)) {
			return fmt.Errorf("%w: a parcel of %d bytes", engine.ErrMessage, length)
		}
		blocks[d] = block{bytes: b[:length:length]}
		b = b[padded:]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes behind parcels", engine.ErrMessage, len(b))
	}
	return nil
}
