package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// fickle is a stream that returns nothing, less than asked for, or bytes together with an
// error, as a socket may.
type fickle struct {
	bytes []byte
	rng   *rand.Rand
}

func (f *fickle) Read(p []byte) (int, error) {
	n := min(f.rng.IntN(len(p)+1), len(f.bytes))
	if f.rng.IntN(3) == 0 {
		n = min(len(p), len(f.bytes))
	}
	copy(p, f.bytes[:n])
	f.bytes = f.bytes[n:]
	switch {
	case len(f.bytes) == 0 && (n == 0 || f.rng.IntN(2) == 0):
		return n, io.EOF
	case f.rng.IntN(4) == 0:
		return n, errPause
	}
	return n, nil
}

// Frames of every size around the bounds come whole from a stream that does all that streams
// may do, into a buffer or not.
func TestReaderOfAFickleStream(t *testing.T) {
	const limit = LongFrame + 2000
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		var stream []byte
		var sent [][]byte
		for range 12 {
			f := bytes.Repeat([]byte{byte(1 + rng.IntN(255))}, []int{
				0, 1, smallBuffer - HeaderSize, LongFrame - 1, LongFrame,
				limit,
			}[rng.IntN(6)])
			sent, stream = append(sent, f), AppendFrame(stream, f)
		}
		r := NewReader(&fickle{bytes: stream, rng: rng}, limit)
		for i, f := range sent {
			asked := 0
			head, body, err := nextInto(r, func(head []byte, size int) []byte {
				asked++
				if size != len(f) || len(head) != LongHead {
					t.Fatalf("seed %d: frame %d of %d bytes is announced with %d", seed, i, len(f), size)
				}
				return make([]byte, size-len(head))
			})
			if err != nil || !bytes.Equal(slices.Concat(head, body), f) {
				t.Fatalf("seed %d: frame %d of %d bytes: %v", seed, i, len(f), err)
			}
			if asked > 1 || asked > 0 && len(f) < LongFrame {
				t.Fatalf("seed %d: frame %d of %d bytes asks for %d buffers", seed, i, len(f), asked)
			}
		}
		if _, _, err := nextInto(r, nil); err != io.EOF {
			t.Fatalf("seed %d: in the end: %v", seed, err)
		}
	}
}

// steady is a stream without end, of frames of one size, that has so many bytes at a time.
type steady struct {
	frame []byte
	chunk int
	at    int
	asked []int
}

func (s *steady) Read(p []byte) (int, error) {
	s.asked = append(s.asked, len(p))
	n := min(len(p), s.chunk)
	for i := range p[:n] {
		p[i] = s.frame[s.at]
		s.at = (s.at + 1) % len(s.frame)
	}
	return n, nil
}

// A buffer grows for many small frames at a time, to a bound, and not for few.
func TestBufferOfSmallFrames(t *testing.T) {
	for _, c := range []struct {
		chunk, limit, want int
	}{
		{100, MaxFrame, smallBuffer},
		{1 << 20, MaxFrame, busyBuffer},
		{1 << 20, 5000, HeaderSize + 5000},
	} {
		r := NewReader(&steady{frame: AppendFrame(nil, make([]byte, 60)), chunk: c.chunk}, c.limit)
		for range 20_000 {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if len(r.buf) != c.want {
			t.Errorf("%d bytes at a time, frames up to %d: a buffer of %d, want %d", c.chunk, c.limit, len(r.buf), c.want)
		}
	}
}

// One burst does not make a buffer grow on and on.
func TestBufferAfterABurst(t *testing.T) {
	s := &steady{frame: AppendFrame(nil, make([]byte, 60)), chunk: smallBuffer}
	r := NewReader(s, MaxFrame)
	for range 20_000 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		s.chunk = 100
	}
	if len(r.buf) > 2*smallBuffer {
		t.Errorf("a buffer of %d bytes", len(r.buf))
	}
}

// A stream that ends within a frame says so, wherever the frame is in the buffer.
func TestEndWithinASecondFrame(t *testing.T) {
	stream := AppendFrame(AppendFrame(nil, make([]byte, 50)), make([]byte, 50))
	for cut := 55; cut < len(stream); cut++ {
		r := NewReader(bytes.NewReader(stream[:cut]), 100)
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != io.ErrUnexpectedEOF {
			t.Errorf("after %d bytes: %v", cut, err)
		}
	}
}

// After a long frame the next one is not read into the reader's buffer: only its head is.
func TestLongFramesAreNotCopied(t *testing.T) {
	s := &steady{frame: AppendFrame(nil, make([]byte, LongFrame)), chunk: 1 << 20}
	r := NewReader(s, MaxFrame)
	for i := range 5 {
		s.asked = nil
		_, body, err := r.NextInto(func(head []byte, size int) []byte { return make([]byte, size-len(head)) })
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{HeaderSize + LongHead, LongFrame - LongHead}; i > 0 && !slices.Equal(s.asked, want) {
			t.Errorf("long frame %d of %d bytes: reads of %v, want %v", i, len(body), s.asked, want)
		}
	}
}

// What is ready is so at the bounds, too: an empty frame, and one at the limit.
func TestReadyAtTheBounds(t *testing.T) {
	for _, size := range []int{0, 1, 100} {
		stream := AppendFrame(AppendFrame(nil, []byte("first")), make([]byte, size))
		for left := range 2 {
			r := NewReader(bytes.NewReader(stream[:len(stream)-left]), 100)
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
			if r.Ready() != (left == 0) {
				t.Errorf("a frame of %d bytes, %d of which are missing, is ready: %v", size, left, r.Ready())
			}
		}
	}
}

// A reader gives up on a stream that returns nothing a hundred times, not before.
func TestReaderWaitsForASlowStream(t *testing.T) {
	for nothing, want := range map[int]error{99: nil, 100: io.ErrNoProgress} {
		empty := nothing
		r := NewReader(readFunc(func(p []byte) (int, error) {
			empty--
			if empty >= 0 {
				return 0, nil
			}
			return copy(p, AppendFrame(nil, nil)), nil
		}), 10)
		if _, err := r.Next(); err != want {
			t.Errorf("after %d times nothing: %v, want %v", nothing, err, want)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Decoders take a field that ends where the body ends, and refuse one that is longer by a byte,
// or longer than any body.
func TestFieldsAtTheEndOfABody(t *testing.T) {
	for _, left := range []int{0, 1} {
		b := AppendBytes(nil, []byte("field"))
		d := NewDecoder(b[:len(b)-left])
		if got := string(d.Bytes()); (d.Finish() == nil) != (left == 0) || left == 0 && got != "field" {
			t.Errorf("%d bytes missing: %q, %v", left, got, d.Err())
		}
	}
	d := NewDecoder([]byte{0xff, 0xff, 0xff, 0xff, 'x'})
	if got := d.Bytes(); got != nil || d.Finish() == nil {
		t.Errorf("4 GiB: %q", got)
	}
	d = NewDecoder([]byte("12345678rest"))
	d.Uint64()
	if d.Left() != 4 || string(d.Rest()) != "rest" || d.Left() != 0 {
		t.Errorf("%d bytes left", d.Left())
	}
}

// Hellos at their bounds are valid, and one beyond them is not; errors say what is wrong and
// what would be right.
func TestHellosAtTheirBounds(t *testing.T) {
	long := strings.Repeat("x", maxText)
	for _, h := range []Hello{
		{Removal: Removal{ID: long, Address: long}},
		{Size: 3, From: 2, To: protocol.NoRank},
		{Status: statuses - 1},
	} {
		if err := h.Validate(); err != nil {
			t.Error(err)
		}
	}
	for want, h := range map[string]Hello{
		"removal is longer, want 255 bytes at most": {Removal: Removal{Address: long + "x"}},
		"removal is longer":                         {Removal: Removal{ID: long + "x"}},
		"rank is 3, want 0 to 2":                    {Size: 3, From: 3},
		"status is 13, want at most 12":             {Status: statuses},
	} {
		if err := h.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	ours, theirs := Hello{Size: 3, From: 0, To: 1}, Hello{From: 1, To: 0}
	if err := ours.Match(&theirs); err == nil || !strings.Contains(err.Error(), "size is open, want 3") {
		t.Errorf("%v", err)
	}
	cause := errors.New("the cause")
	for _, e := range []*HelloError{{Field: "f", Got: "1", Want: "2"}, {Field: "f", Err: cause}} {
		if !errors.Is(e, ErrHello) || errors.Is(e, cause) != (e.Err != nil) || slices.Contains(e.Unwrap(), nil) ||
			strings.Contains(e.Error(), "the cause") != (e.Err != nil) {
			t.Errorf("%v", e)
		}
	}
	for s := range Status(statuses + 1) {
		if strings.Contains(s.String(), "unknown") != (s == statuses) {
			t.Errorf("status %d is %q", s, s)
		}
	}
}
