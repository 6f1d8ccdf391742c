package collective

import (
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// Small parts of an Alltoall travel together (Bruck et al. 1997): a part for the task
// at distance d goes as many places on, in step k, as the k-th bit of d says, with
// all others for which it does. That makes log n messages of a task instead of n−1.
// Parts' lengths are known to their senders only; so a part that is too long for it
// goes directly, and in its place travels word of that.

// parcel is a part on its way: its bytes, or word that they are sent directly.
type block struct {
	bytes  []byte
	direct bool
}

const directMark = 1 << 63

// swapTogether exchanges parts.
func (j *invocation[T, In, Out]) swapTogether(t *engine.Task, parts, all [][]T) error {
	blocks, err := j.packBlocks(t, parts)
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
			all[from], err = j.receivePart(t, from)
		} else {
			all[from], err = j.openPart(t, from, engine.Payload{Bytes: blocks[d].bytes})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pack sends what is too long, and returns the rest, by distance.
func (j *invocation[T, In, Out]) packBlocks(t *engine.Task, parts [][]T) (blocks []block, err error) {
	blocks = make([]block, t.N)
	for d := 1; d < t.N; d++ {
		to := (t.ID + d) % t.N
		p := &blocks[d]
		if p.direct = j.bytes(len(parts[to])) > t.Thresholds().BruckPart; p.direct {
			err = j.sendElements(t, to, direct, parts[to])
		} else {
			p.bytes, err = j.encode(parts[to])
		}
		if err != nil {
			return nil, err
		}
	}
	return blocks, nil
}

// appendParcels writes those whose distance has a bit: each its length 8, then the
// bytes, up to a multiple of eight, so that numbers in them are aligned.
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

// cutParcels reads them.
func cutGroup(blocks []block, bit int, b []byte) error {
	for d := range blocks {
		if d&bit == 0 {
			continue
		}
		if len(b) < 8 {
			return fmt.Errorf("%w: parcels end early", ErrMessage)
		}
		length := binary.BigEndian.Uint64(b)
		b = b[8:]
		if length == directMark {
			blocks[d] = block{direct: true}
			continue
		}
		padded := (length + 7) &^ 7
		if length > uint64(len(b)) || padded > uint64(len(b)) {
			return fmt.Errorf("%w: a parcel of %d bytes", ErrMessage, length)
		}
		blocks[d] = block{bytes: b[:length:length]}
		b = b[padded:]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes behind parcels", ErrMessage, len(b))
	}
	return nil
}
