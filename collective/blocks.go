package collective

import (
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/internal/collective/engine"
)

// A message may carry blocks of several tasks. Each has its task 8, its length 8, and the
// bytes, padded to a multiple of eight so that numbers in them are aligned.

const blockHead = 16

func appendBlock(dst []byte, task int, b []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(task))
	dst = binary.BigEndian.AppendUint64(dst, uint64(len(b)))
	dst = append(dst, b...)
	return append(dst, make([]byte, -len(b)&7)...)
}

// cutBlock splits off the first block.
func cutBlock(b []byte, tasks int) (task int, block, rest []byte, err error) {
	if len(b) >= blockHead {
		id, length := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		b = b[blockHead:]
		if padded := (length + 7) &^ 7; id < uint64(tasks) && length <= uint64(len(b)) && padded <= uint64(len(b)) {
			return int(id), b[:length:length], b[padded:], nil
		}
	}
	return 0, nil, nil, fmt.Errorf("%w: blocks are garbled", engine.ErrMessage)
}

// cutBlocks returns the block of each task, or nil where there is none. An empty block is
// not nil.
func cutBlocks(b []byte, tasks int) ([][]byte, error) {
	blocks := make([][]byte, tasks)
	for len(b) > 0 {
		task, block, rest, err := cutBlock(b, tasks)
		if err != nil {
			return nil, err
		}
		blocks[task], b = block, rest
	}
	return blocks, nil
}
