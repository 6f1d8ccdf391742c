package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
)

// chunks gives a stream in pieces of random size.
type chunks struct {
	rest []byte
	rng  *rand.Rand
	most int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.rng.IntN(c.most)+1)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// drain returns copies of all frames, and the error that ended them.
func drain(r *Reader) (frames [][]byte, err error) {
	for {
		f, err := r.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, bytes.Clone(f))
	}
}

// drainInto does so too, where some frames that are long enough are placed.
func drainInto(r *Reader, rng *rand.Rand) (frames [][]byte, err error) {
	for {
		head, body, err := r.NextInto(func(head []byte, size int) []byte {
			if rng.IntN(4) == 0 {
				return nil
			}
			return make([]byte, size-len(head))
		})
		if err != nil {
			return frames, err
		}
		frames = append(frames, slices.Concat(head, body))
	}
}

func TestReaderReturnsFramesAsSent(t *testing.T) {
	var stream []byte
	var want [][]byte
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 3, 4092, 4096, 0, 4097, 70_000, 64, MaxFrame, 5, MaxFrame - 1, 0} {
		f := make([]byte, size)
		for i := range f {
			f[i] = byte(rng.Uint32())
		}
		want = append(want, f)
		stream = AppendFrame(stream, f)
	}
	for _, most := range []int{1, 7, 4096, 5000, 1 << 20, 1 << 24} {
		got, err := drain(NewReader(&chunks{stream, rng, most}, MaxFrame))
		if err != io.EOF {
			t.Fatalf("chunks of up to %d: %v", most, err)
		}
		if len(got) != len(want) {
			t.Fatalf("chunks of up to %d: %d frames, want %d", most, len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("chunks of up to %d: frame %d differs", most, i)
			}
		}
	}
}

// Long frames go where they belong, whatever is around them and however they come.
func TestReaderFillsBuffersWithLongFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var stream []byte
	var want [][]byte
	for range 60 {
		f := make([]byte, []int{0, 70, 5000, LongFrame - 1, LongFrame, LongFrame + 1, 130_000}[rng.IntN(7)])
		for i := range f {
			f[i] = byte(rng.Uint32())
		}
		want = append(want, f)
		stream = AppendFrame(stream, f)
	}
	for _, most := range []int{1, 7, 4096, 70_000, 1 << 24} {
		r := NewReader(&pausing{src: &chunks{stream, rng, most}}, MaxFrame)
		placed := 0
		for i, f := range want {
			head, body, err := nextInto(r, func(head []byte, size int) []byte {
				if len(head) != LongHead || size != len(f) || size < LongFrame {
					t.Fatalf("a place for %d of %d bytes", len(head), size)
				}
				if rng.IntN(5) == 0 {
					return nil
				}
				return make([]byte, size-len(head))
			})
			if err != nil {
				t.Fatal(err)
			}
			if body != nil {
				placed++
			}
			if !bytes.Equal(slices.Concat(head, body), f) {
				t.Fatalf("chunks of up to %d: frame %d of %d bytes differs", most, i, len(f))
			}
		}
		if _, _, err := nextInto(r, nil); err != io.EOF {
			t.Errorf("after the last frame: %v", err)
		}
		if placed == 0 {
			t.Errorf("chunks of up to %d: nothing was placed", most)
		}
	}
	r := NewReader(bytes.NewReader(AppendFrame(nil, make([]byte, LongFrame))[:LongFrame]), MaxFrame)
	if _, _, err := r.NextInto(func(head []byte, size int) []byte { return make([]byte, size-len(head)) }); err !=
		io.ErrUnexpectedEOF {
		t.Errorf("in a body: %v", err)
	}
}

// pausing is a stream that has no bytes every other time.
type pausing struct {
	src    io.Reader
	paused bool
}

var errPause = errors.New("no bytes at present")

func (p *pausing) Read(b []byte) (int, error) {
	p.paused = !p.paused
	if p.paused {
		return 0, errPause
	}
	return p.src.Read(b)
}

// nextInto calls NextInto until the stream has had all bytes of a frame.
func nextInto(r *Reader, buffer func(head []byte, size int) []byte) (head, body []byte, err error) {
	for {
		head, body, err = r.NextInto(buffer)
		if err != errPause {
			return head, body, err
		}
	}
}

func TestReaderSaysHowAStreamEnds(t *testing.T) {
	boom := errors.New("boom")
	whole := AppendFrame(nil, []byte("abc"))
	for _, tt := range []struct {
		name string
		src  io.Reader
		want error
	}{
		{"between frames", bytes.NewReader(whole), io.EOF},
		{"in a length", bytes.NewReader(append(bytes.Clone(whole), 0, 0)), io.ErrUnexpectedEOF},
		{"after a length", bytes.NewReader(append(bytes.Clone(whole), 0, 0, 0, 1)), io.ErrUnexpectedEOF},
		{"in a frame", bytes.NewReader(append(bytes.Clone(whole), 0, 0, 0, 2, 9)), io.ErrUnexpectedEOF},
		{"with an error", io.MultiReader(bytes.NewReader(whole), iotest.ErrReader(boom)), boom},
		{"together with the last bytes", iotest.DataErrReader(bytes.NewReader(whole)), io.EOF},
	} {
		got, err := drain(NewReader(tt.src, 10))
		if len(got) != 1 || string(got[0]) != "abc" || err != tt.want {
			t.Errorf("%s: %q, %v; want one frame and %v", tt.name, got, err, tt.want)
		}
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestReaderGivesUpOnASilentSource(t *testing.T) {
	if _, err := NewReader(silent{}, 10).Next(); err != io.ErrNoProgress {
		t.Errorf("got %v", err)
	}
}

func TestReaderRefusesFramesOverTheLimit(t *testing.T) {
	stream := AppendFrame(AppendFrame(nil, make([]byte, 10)), make([]byte, 11))
	got, err := drain(NewReader(bytes.NewReader(stream), 10))
	var size *SizeError
	if len(got) != 1 || !errors.As(err, &size) || *size != (SizeError{Size: 11, Limit: 10}) {
		t.Errorf("%d frames, %v", len(got), err)
	}

	r := NewReader(bytes.NewReader(stream), 10)
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		r.SetLimit(11)
	}
}

func TestReaderAllocatesOnlyForWhatArrives(t *testing.T) {
	// A length field of almost the limit, and then 10,000 bytes of it.
	stream := append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 10_000)...)
	r := NewReader(bytes.NewReader(stream), 1<<31-1)
	if _, err := r.Next(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if len(r.buf) > 2*len(stream) {
		t.Errorf("%d bytes allocated for %d", len(r.buf), len(stream))
	}
}

func TestReaderDoesNotAllocatePerFrame(t *testing.T) {
	frame := AppendFrame(nil, make([]byte, 5000))
	src := &loop{frame: frame}
	r := NewReader(src, MaxFrame)
	read := func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		read() // The buffer grows at first.
	}
	if n := testing.AllocsPerRun(1000, read); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

// loop repeats a frame for ever.
type loop struct {
	frame []byte
	at    int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.frame[l.at:])
	l.at = (l.at + n) % len(l.frame)
	return n, nil
}

func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 7, 0, 0, 0, 0}, uint64(1), uint16(100))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1}, uint64(2), uint16(9))
	f.Add(AppendFrame(AppendFrame(nil, make([]byte, 5000)), make([]byte, 100)), uint64(3), uint16(5000))
	f.Add(AppendFrame(AppendFrame(nil, make([]byte, LongFrame+1)), make([]byte, LongFrame)), uint64(4),
		uint16(LongFrame+1))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, limit uint16) {
		whole, wholeErr := drain(NewReader(bytes.NewReader(stream), int(limit)))

		rng := rand.New(rand.NewPCG(seed, 0))
		r := NewReader(&chunks{stream, rng, 1 + rng.IntN(9000)}, int(limit))
		cut, cutErr := drainInto(r, rng)
		if len(whole) != len(cut) || wholeErr.Error() != cutErr.Error() {
			t.Fatalf("at once %d frames, %v; in pieces %d, %v", len(whole), wholeErr, len(cut), cutErr)
		}
		var again []byte
		for i := range whole {
			if !bytes.Equal(whole[i], cut[i]) {
				t.Fatalf("frame %d differs", i)
			}
			again = AppendFrame(again, whole[i])
		}
		if !bytes.HasPrefix(stream, again) {
			t.Fatal("frames written again are not what was read")
		}
		if bound := max(smallBuffer, HeaderSize+int(limit)); len(r.buf) > bound {
			t.Fatalf("buffer of %d, limit %d", len(r.buf), limit)
		}
		if len(r.buf) > max(smallBuffer, 2*len(stream)) {
			t.Fatalf("buffer of %d for a stream of %d", len(r.buf), len(stream))
		}
	})
}

func BenchmarkReader64(b *testing.B) {
	r := NewReader(&loop{frame: AppendFrame(nil, make([]byte, 64))}, MaxFrame)
	b.ReportAllocs()
	b.SetBytes(64)
	for b.Loop() {
		f, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(f)
	}
}

// counted counts how often a source is read.
type counted struct {
	io.Reader
	reads int
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

// Ready is what it says: if and only if it is true, Next returns a frame without
// reading anything.
func TestReadyMeansWithoutReading(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var sent []byte
		for range 40 {
			sent = AppendFrame(sent, make([]byte, rng.IntN(300)))
		}
		source := &counted{Reader: &chunks{rest: sent, rng: rng, most: 1000}}
		r := NewReader(source, 1000)
		for err := error(nil); err == nil; {
			ready, before := r.Ready(), source.reads
			_, err = r.Next()
			if without := err == nil && source.reads == before; ready != without {
				t.Fatalf("seed %d: ready is %v, and Next has read %d times, error %v", seed, ready, source.reads-before, err)
			}
		}
	}
}

// A frame over the limit is not announced as ready: Next returns an error.
func TestTooLongIsNotReady(t *testing.T) {
	sent := AppendFrame(AppendFrame(nil, []byte("x")), make([]byte, 100))
	r := NewReader(bytes.NewReader(sent), 50)
	if _, err := r.Next(); err != nil || r.Ready() {
		t.Errorf("error %v, ready %v", err, r.Ready())
	}
}

// turns is a stream whose reader is also used by a poller, while the first user waits in
// Read: see pollLock in internal/driver/tcp.
type turns struct {
	t       *testing.T
	rng     *rand.Rand
	reader  *Reader
	left    []byte
	polling bool
	frames  [][]byte
}

var (
	errEmpty = errors.New("empty")
	errWoken = errors.New("woken")
)

func (s *turns) Read(b []byte) (int, error) {
	switch {
	case len(s.left) == 0:
		return 0, io.EOF
	case s.polling && s.rng.IntN(3) == 0:
		return 0, errEmpty
	case !s.polling && s.rng.IntN(2) == 0:
		s.polling = true
		if err := s.next(); err != nil && err != errEmpty && err != io.EOF {
			s.t.Fatal(err)
		}
		s.polling = false
		return 0, errWoken
	}
	n := copy(b, s.left[:min(len(s.left), 1+s.rng.IntN(60_000))])
	s.left = s.left[n:]
	return n, nil
}

// next takes frames until there is an error.
func (s *turns) next() error {
	for {
		head, body, err := s.reader.NextInto(func(_ []byte, size int) []byte { return make([]byte, size-LongHead) })
		if err != nil {
			return err
		}
		s.frames = append(s.frames, slices.Concat(head, body))
	}
}

// A poller may take frames, and begin to take others, while the reader waits for the rest of
// one. The reader begins anew then, and cuts nothing by a length that it knew before.
func TestReaderIsUsedInTurns(t *testing.T) {
	for seed := range uint64(60) {
		s := &turns{t: t, rng: rand.New(rand.NewPCG(seed, 0))}
		s.reader = NewReader(s, 1<<20)
		var want [][]byte
		for range 40 {
			size := 1 + s.rng.IntN(200)
			if s.rng.IntN(2) == 0 {
				size = s.rng.IntN(3 * LongFrame)
			}
			frame := make([]byte, size)
			for i := range frame {
				frame[i] = byte(s.rng.Uint32())
			}
			want = append(want, frame)
			s.left = append(AppendUint32(s.left, uint32(size)), frame...)
		}
		err := s.next()
		for err == errWoken {
			err = s.next()
		}
		if err != io.EOF || !slices.EqualFunc(s.frames, want, bytes.Equal) {
			t.Fatalf("seed %d: %d frames, want %d, or others; %v", seed, len(s.frames), len(want), err)
		}
	}
}
