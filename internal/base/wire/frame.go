package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// HeaderSize is the size of a frame's length field.
	HeaderSize = 4
	// MaxFrame is the default limit of a frame: a payload of 1 MiB and the headers
	// of the protocols.
	MaxFrame = 1<<20 + 4<<10
	// MaxHelloFrame is the limit of a frame during the handshake.
	MaxHelloFrame = 4 << 10
)

// ErrFrameSize is wrapped by every [SizeError].
var ErrFrameSize = errors.New("frame over the limit")

// SizeError is a frame over the limit, or a length field that announces one. It
// wraps [ErrFrameSize].
type SizeError struct {
	Size, Limit int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("wire: frame of %d bytes is over the limit of %d", e.Size, e.Limit)
}

// Unwrap returns [ErrFrameSize].
func (e *SizeError) Unwrap() error { return ErrFrameSize }

// Header returns the header of a frame of n bytes.
func Header(n int) (h [HeaderSize]byte) {
	binary.BigEndian.PutUint32(h[:], uint32(n))
	return h
}

// AppendFrame appends a frame with a payload. The caller has checked the length
// against its limit; it must fit a uint32.
func AppendFrame(dst, payload []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}
