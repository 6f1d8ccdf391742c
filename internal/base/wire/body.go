package wire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
)

// AppendUint8 appends one byte.
func AppendUint8(dst []byte, v uint8) []byte { return append(dst, v) }

// AppendUint16 appends a big-endian integer.
func AppendUint16(dst []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(dst, v) }

// AppendUint32 appends a big-endian integer.
func AppendUint32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

// AppendUint64 appends a big-endian integer.
func AppendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

// AppendRank appends a rank, [protocol.NoRank] included.
func AppendRank(dst []byte, r protocol.Rank) []byte { return AppendUint64(dst, uint64(r)) }

// AppendBytes appends a length and the bytes.
func AppendBytes(dst, b []byte) []byte {
	return append(AppendUint32(dst, uint32(len(b))), b...)
}

// DecodeError means that the body of a frame is malformed.
type DecodeError struct {
	// Offset is the position of the problem in the body.
	Offset int
	// Problem says what it is.
	Problem string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("wire: at byte %d: %s", e.Offset, e.Problem)
}

// Decoder decodes the body of a frame field by field. After its first error it
// returns zeros, so the caller checks for an error only once, with
// [Decoder.Finish].
type Decoder struct {
	body   []byte
	offset int
	err    error
}

// NewDecoder returns a decoder of a body. The slices it returns point into the body.
func NewDecoder(body []byte) Decoder { return Decoder{body: body} }

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Left returns how many bytes are left.
func (d *Decoder) Left() int { return len(d.body) - d.offset }

// Finish returns the first error, or an error if bytes are left.
func (d *Decoder) Finish() error {
	if left := d.Left(); left > 0 {
		d.fail("%d bytes left over", left)
	}
	return d.err
}

// Uint8 decodes one byte.
func (d *Decoder) Uint8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 decodes a big-endian integer.
func (d *Decoder) Uint16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Uint32 decodes a big-endian integer.
func (d *Decoder) Uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 decodes a big-endian integer.
func (d *Decoder) Uint64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Rank decodes a rank, which may be [protocol.NoRank].
func (d *Decoder) Rank() protocol.Rank {
	r := protocol.Rank(d.Uint64())
	if r < protocol.NoRank {
		d.fail("%d is no rank", r)
		return 0
	}
	return r
}

// Bytes decodes a length and that many bytes.
func (d *Decoder) Bytes() []byte {
	return d.take(int(min(d.Uint32(), math.MaxInt32))) // an int may have 32 bits
}

// Rest returns the remaining bytes.
func (d *Decoder) Rest() []byte { return d.take(d.Left()) }

// take returns the next n bytes, or nil.
func (d *Decoder) take(n int) []byte {
	if d.Left() < n {
		d.fail("%d bytes needed, %d left", n, d.Left())
	}
	if d.err != nil {
		return nil
	}
	b := d.body[d.offset : d.offset+n : d.offset+n]
	d.offset += n
	return b
}

func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = &DecodeError{Offset: d.offset, Problem: fmt.Sprintf(format, args...)}
	}
}
