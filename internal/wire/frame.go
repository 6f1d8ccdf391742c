package wire

import (
	"encoding/binary"
	"fmt"
)

const (
	// HeaderSize is the size of a frame's length field.
	HeaderSize = 4
	// MaxFrame is the usual limit of a frame: a payload of 1 MiB, and room for
	// what those above put in front of it.
	MaxFrame = 1<<20 + 4<<10
	// MaxHelloFrame is the limit of a frame before the handshake is done.
	MaxHelloFrame = 4 << 10
)

// SizeError is a frame, or a length field that announces one, over the limit.
type SizeError struct {
	Size, Limit int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("wire: frame of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// Header returns what precedes a frame of n bytes.
func Header(n int) (h [HeaderSize]byte) {
	binary.BigEndian.PutUint32(h[:], uint32(n))
	return h
}

// AppendFrame appends a frame with the given payload. Its length must fit a
// uint32; senders hold it to their limit before.
func AppendFrame(dst, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}
