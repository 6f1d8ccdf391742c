package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// How segments arrive, and what follows.

// toldOf returns the receivers of frames of a kind that a member sends now, in order.
func toldOf(t *testing.T, m *Member, now protocol.Time, k kind) (to []protocol.Rank) {
	t.Helper()
	for _, s := range drain(m, now) {
		if fr, err := parse(s.frame); err != nil {
			t.Fatal(err)
		} else if fr.kind == k {
			to = append(to, s.to)
		}
	}
	return to
}

// segmentFrame is a frame with a message of one segment.
func segmentFrame(k kind, number uint64, size int) frame {
	return frame{kind: k, begins: true, first: number, messages: uint32(number), segment: make([]byte, size)}
}

// relay returns a member with several below it in the tree of rank 0, and its flow.
func relay(t *testing.T) (*Member, *flow) {
	t.Helper()
	for _, m := range group(t, Config{}, 16)[1:] {
		f, err := m.open(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.children) >= 2 {
			return m, f
		}
	}
	t.Fatal("no member relays to two")
	return nil, nil
}

// A segment is forwarded once: when the tree or an offer brings it, or if it was pulled, when the
// tree brings it after all. What others send twice is not forwarded.
func TestSegmentsAreForwardedOnce(t *testing.T) {
	m, f := relay(t)
	other := f.parent + 1
	for i, c := range []struct {
		from     protocol.Rank
		frame    frame
		forwards bool
	}{
		{f.parent, segmentFrame(data, 0, 10), true},
		{f.parent, segmentFrame(data, 0, 10), false},
		{other, segmentFrame(repair, 1, 10), false},
		{other, segmentFrame(data, 1, 10), false},
		{f.parent, segmentFrame(repair, 1, 10), false},
		{f.parent, segmentFrame(data, 1, 10), true},
		{f.parent, segmentFrame(data, 1, 10), false},
		{other, frame{kind: offer, begins: true, inline: true, first: 3, messages: 2, segment: []byte("x")}, true},
		{f.parent, segmentFrame(data, 2, 10), false},
	} {
		answerTo(t, m, 1, c.from, c.frame)
		want := f.children
		if !c.forwards {
			want = nil
		}
		if told := toldOf(t, m, 1, data); !slices.Equal(told, want) {
			t.Errorf("%d: forwarded to %v, want %v", i, told, want)
		}
	}
	if s := m.Stats(); s.Duplicates != 6 || s.Early != 1 || f.next != 3 {
		t.Errorf("%d are here; %+v", f.next, s)
	}
}

// Only segments that are missing here are read into buffers.
func TestWhatIsReadIntoBuffers(t *testing.T) {
	m := group(t, Config{}, 4)[1]
	answerTo(t, m, 1, 0, segmentFrame(data, 0, 1000))
	answerTo(t, m, 1, 0, segmentFrame(data, 3, 1000))
	for number, want := range []bool{false, true, true, false, true} {
		for _, k := range []kind{data, repair, offer, poll} {
			for _, incarnation := range []uint64{1, 2} {
				fr := segmentFrame(k, uint64(number), 1000)
				fr.incarnation, fr.inline = incarnation, k == offer
				b := append(fr.append(nil), make([]byte, 100)...)
				buffer := m.ReceiveBuffer(0, b[:80], len(b))
				if got := buffer != nil; got != (want && incarnation == 1 && (k == data || k == repair)) {
					t.Errorf("segment %d, kind %d, incarnation %d: %t", number, k, incarnation, got)
				} else if got && len(buffer) != len(b)-80 {
					t.Errorf("a buffer of %d bytes for the rest, which has %d", len(buffer), len(b)-80)
				}
			}
		}
	}
	if m.ReceiveBuffer(0, []byte{1, 2, 3}, 1000) != nil {
		t.Error("there is a buffer for a frame that is malformed")
	}
}

// A buffer takes the segment that follows, if there is room, while nobody else uses it.
func TestWhatFitsIntoABuffer(t *testing.T) {
	for _, c := range []struct {
		what   string
		buffer *reassemblyBuffer
		fits   bool
	}{
		{"none", nil, false},
		{"room", &reassemblyBuffer{memory: make([]byte, 5, 15), next: 7}, true},
		{"a byte too few", &reassemblyBuffer{memory: make([]byte, 6, 15), next: 7}, false},
		{"an earlier one", &reassemblyBuffer{memory: make([]byte, 5, 15), next: 6}, false},
		{"lent", &reassemblyBuffer{memory: make([]byte, 5, 15), next: 7, lent: true}, false},
		{"leased", &reassemblyBuffer{memory: make([]byte, 5, 15), next: 7, leased: true}, false},
	} {
		if got := c.buffer.fits(7, 10); got != c.fits {
			t.Errorf("%s: fits %t", c.what, got)
		}
	}
}

// Only a message of several segments that arrive in order is put together in a buffer. A whole
// message, an empty segment, and what is behind a hole stay in their frames.
func TestWhatIsPutTogether(t *testing.T) {
	for _, c := range []struct {
		what   string
		frame  frame
		buffer bool
	}{
		{"a part", frame{begins: true, first: 0, remaining: 100, segment: make([]byte, 100)}, true},
		{"a whole message", frame{begins: true, first: 0, segment: make([]byte, 100)}, false},
		{"an empty part", frame{begins: true, first: 0, remaining: 100}, false},
		{"a part behind a hole", frame{begins: true, first: 1, remaining: 100, segment: make([]byte, 100)}, false},
		{"a message behind a hole", frame{begins: true, first: 1, segment: make([]byte, 100)}, false},
	} {
		m := group(t, Config{}, 4)[1]
		c.frame.kind = data
		answerTo(t, m, 1, 0, c.frame)
		if seg, ok := m.flows[0].get(c.frame.first); !ok || (seg.buffer != nil) != c.buffer || (seg.body != nil) != c.buffer {
			t.Errorf("%s: here %t, in a buffer %t", c.what, ok, seg.buffer != nil)
		}
	}
}
