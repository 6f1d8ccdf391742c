package wire

import (
	"encoding/binary"
	"io"
)

const (
	// smallBuffer is the initial size of a reader's buffer: one page, because a
	// member may have many connections that are idle most of the time.
	smallBuffer = 4 << 10
	// busyBuffer is how far a buffer grows for many small frames at a time. Only
	// larger frames make it grow further.
	busyBuffer = 64 << 10

	// LongFrame is the shortest frame that is worth a receive buffer of its own,
	// and LongHead is how much of it has arrived when that is requested.
	LongFrame = 32 << 10
	LongHead  = 64
)

// Reader reads frames from a stream. It has one buffer, which grows only when bytes
// that have really arrived fill it: a length field alone costs nothing.
type Reader struct {
	src        io.Reader
	limit      int
	buf        []byte
	start, end int  // buf[start:end] has been read and not yet returned.
	filled     bool // The last Read filled the buffer: more bytes are likely.
	sparing    bool // The last frame was long: the next one likely is too, and is not read into buf.

	// The frame that is being read into memory of the caller, if body is not nil.
	head, body []byte
	held       int // Bytes of body that have arrived.
}

// NewReader returns a reader of frames of at most limit bytes.
func NewReader(src io.Reader, limit int) *Reader {
	return &Reader{src: src, limit: limit}
}

// SetLimit changes the limit for the frames to come.
func (r *Reader) SetLimit(limit int) { r.limit = limit }

// Next returns the next frame, which is valid until the next call. At the end of
// the stream it returns [io.EOF], or [io.ErrUnexpectedEOF] in the middle of a frame.
// For a frame over the limit it returns a [*SizeError]. After an error of the stream
// that is not final, the next call continues where this one has stopped; after others
// the reader cannot be used any more. During a Read of the stream that ends with such an
// error and without bytes, another goroutine may use the reader.
func (r *Reader) Next() ([]byte, error) {
	size, err := r.announced()
	if err != nil {
		return nil, err
	}
	r.sparing = false
	return r.cut(size)
}

// NextInto is like Next, but reads a frame of at least [LongFrame] bytes into memory
// of the caller. It calls buffer with the first [LongHead] bytes and the size of the
// frame; buffer returns memory for the rest, which is then the body. If buffer
// returns nil, and for shorter frames, head is the whole frame and body is nil.
// Both are valid until the next call.
func (r *Reader) NextInto(buffer func(head []byte, size int) []byte) (head, body []byte, err error) {
	if r.body != nil {
		return r.fillBody()
	}
	size, err := r.announced()
	if err != nil {
		return nil, nil, err
	}
	r.sparing = size >= LongFrame
	if !r.sparing || r.Ready() {
		head, err = r.cut(size)
		return head, nil, err
	}
	if err := r.fill(HeaderSize + LongHead); err != nil {
		return nil, nil, err
	}
	head = r.buf[r.start+HeaderSize:][:LongHead:LongHead]
	r.body = buffer(head, size)
	if r.body == nil {
		head, err = r.cut(size)
		return head, nil, err
	}
	r.start += HeaderSize + LongHead
	r.head, r.held = head, copy(r.body, r.buf[r.start:r.end])
	r.start += r.held
	return r.fillBody()
}

// fillBody reads the rest of a frame into memory of the caller.
func (r *Reader) fillBody() (head, body []byte, err error) {
	for r.held < len(r.body) {
		n, err := r.src.Read(r.body[r.held:])
		if n == 0 && err != nil && err != io.EOF {
			return nil, nil, err
		}
		r.held += n
		switch {
		case r.held == len(r.body):
		case err == io.EOF:
			return nil, nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, nil, err
		}
	}
	head, body = r.head, r.body
	r.head, r.body = nil, nil
	return head, body, nil
}

// Control reads a control message, which stands in place of a frame, after a [*SizeError]:
// the length field, by which the caller knows it, and n bytes that follow. It returns
// those. Frames follow.
func (r *Reader) Control(n int) ([]byte, error) { return r.cut(n) }

// Switch makes the reader read from another source. It drops what it has read from the
// present one beyond the last frame.
func (r *Reader) Switch(src io.Reader) {
	r.src, r.start = src, r.end
}

// announced reads the length field of the next frame.
func (r *Reader) announced() (int, error) {
	if err := r.fill(HeaderSize); err != nil {
		return 0, err
	}
	size := int64(binary.BigEndian.Uint32(r.buf[r.start:]))
	if size > int64(r.limit) {
		return 0, &SizeError{Size: size, Limit: int64(r.limit)}
	}
	return int(size), nil
}

// cut reads a frame of the announced size.
func (r *Reader) cut(size int) ([]byte, error) {
	whole := HeaderSize + size
	if err := r.fill(whole); err != nil {
		return nil, err
	}
	frame := r.buf[r.start+HeaderSize : r.start+whole : r.start+whole]
	r.start += whole
	return frame, nil
}

// Ready reports whether a whole frame, within the limit, is in the buffer: Next
// returns it without waiting.
func (r *Reader) Ready() bool {
	held := r.buf[r.start:r.end]
	if len(held) < HeaderSize {
		return false
	}
	size := int64(binary.BigEndian.Uint32(held))
	return size <= int64(r.limit) && int64(len(held)) >= HeaderSize+size
}

// fill reads until at least need bytes are in the buffer.
func (r *Reader) fill(need int) error {
	// As in package bufio, a source that keeps returning neither bytes nor an
	// error is an error.
	for empty := 0; r.end-r.start < need; {
		r.makeRoom()
		room := r.buf[r.end:]
		if r.sparing {
			room = room[:min(len(room), max(need-(r.end-r.start), HeaderSize+LongHead))]
		}
		n, err := r.src.Read(room)
		if n == 0 && err != nil && err != io.EOF {
			return err // Not by what is in the buffer: others may have used the reader meanwhile.
		}
		r.end += n
		r.filled = r.end == len(r.buf) || n == 0 && r.filled
		switch {
		case r.end-r.start >= need:
		case err == io.EOF && r.end > r.start:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case n > 0:
			empty = 0
		default:
			empty++
			if empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// makeRoom makes sure that the buffer has free space. A frame that has filled the
// whole buffer gets one of twice the size, up to the limit.
func (r *Reader) makeRoom() {
	held := r.buf[r.start:r.end]
	size := len(r.buf)
	switch {
	case size == 0:
		size = smallBuffer
	case len(held) == size:
		size = min(2*size, HeaderSize+r.limit)
	case len(held) == 0 && r.filled && size < busyBuffer:
		size = max(size, min(2*size, HeaderSize+r.limit))
	case len(held) > 0 && r.end < size:
		return
	}
	if size > len(r.buf) {
		r.buf = make([]byte, size)
	}
	copy(r.buf, held)
	r.start, r.end = 0, len(held)
}
