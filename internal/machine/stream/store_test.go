package stream

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/protocol"
)

// A store is a map of numbers to segments, whatever was given up and trimmed.
func TestStoreIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s store
		model := map[uint64]int{} // sizes
		low, next := uint64(0), uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				seg := segment{
					frame:   make([]byte, 20+rapid.IntRange(0, 50).Draw(t, "size")),
					batched: rapid.IntRange(0, 2).Draw(t, "batched"),
				}
				s.add(&seg)
				model[next] = seg.weight()
				next++
			case 2:
				to := next + uint64(rapid.IntRange(1, 5).Draw(t, "lost"))
				s.skip(next, to)
				next = to
			case 3:
				if s.segments.Len() == 0 {
					continue
				}
				number, seg := s.trimOldest()
				if model[number] != seg.weight() {
					t.Fatalf("trimmed is %d", number)
				}
				delete(model, number)
				low = number + 1
			}
			weight := 0
			for number := uint64(0); number < next+3; number++ {
				seg, ok := s.get(number)
				if want, has := model[number]; ok != has || ok && seg.weight() != want {
					t.Fatalf("segment %d of %d: %t, %v", number, next, ok, model)
				}
				weight += model[number]
				if first := s.firstKept(number); first < number || model[first] == 0 && first < next {
					t.Fatalf("the first kept from %d on is %d: %v, low %d, gaps %v", number, first, model, low, s.gaps)
				}
				if got := s.weightOf(0, number+1); got != weight {
					t.Fatalf("up to %d: weight %d, want %d", number, got, weight)
				}
			}
			if s.weight != weight {
				t.Fatalf("weight %d, want %d", s.weight, weight)
			}
		}
	})
}

// Memory is used again by a message that needs almost all of it, and there is a limit.
func TestSpareMemory(t *testing.T) {
	var s spareMemory
	const size = 800
	for _, c := range []struct {
		size int
		used bool
	}{{size, true}, {size - 1, true}, {size + 1, false}, {712, true}, {711, false}} {
		s = spareMemory{}
		s.put(make([]byte, 5, size))
		if got := s.get(c.size); len(got) != 0 || cap(got) != c.size || (s.bytes == 0) != c.used {
			t.Errorf("%d of %d bytes: used %t, %d of %d", c.size, size, s.bytes == 0, len(got), cap(got))
		}
	}
	s = spareMemory{}
	s.put(make([]byte, maxSpare-1))
	s.put(make([]byte, 2))
	if s.bytes != maxSpare-1 || len(s.free) != 1 {
		t.Errorf("%d bytes are kept", s.bytes)
	}
	s.put(make([]byte, 1))
	if s.bytes != maxSpare {
		t.Errorf("%d bytes are kept", s.bytes)
	}
	a := s.get(1)
	if b := s.get(1); s.bytes != maxSpare-1 || &a[:1][0] == &b[:1][0] {
		t.Error("memory is given out twice")
	}
}

// Messages are put together from their segments, up to a limit, with or without a copy.
func TestPartialMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p partial
		begins := true
		message := rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "message")
		limit := rapid.IntRange(1, 35).Draw(t, "limit")
		head := make([]byte, 100)
		for rest := message; ; {
			n := rapid.IntRange(0, len(rest)).Draw(t, "segment")
			body := rest[:n:n]
			if rapid.Bool().Draw(t, "adjacent") {
				body = rest[:n]
			}
			seg := segment{begins: begins, remaining: uint32(len(rest) - n), frame: head, body: body}
			begins = false
			got, complete := p.add(&seg, limit)
			if complete != (n == len(rest) && len(message) <= limit) || complete && !bytes.Equal(got, message) || complete &&
				cap(got) != len(got) {
				t.Fatalf("%d of %d bytes, at most %d: %t, %v", len(message)-len(rest)+n, len(message), limit, complete, got)
			}
			rest = rest[n:]
			if len(rest) == 0 {
				break
			}
		}
	})
}

// A backlog ends when it is longer than what is kept, or has lasted for too long: then the peer has
// missed what is in it.
func TestBacklogExpires(t *testing.T) {
	m, err := New(Config{Rank: 1, Size: 4, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	piece := send{to: 2, flow: m.own.flow, kind: data, encoded: make([]byte, 1000-segmentCost)}
	for n := 1000; n <= m.config.KeepBytes; n += 1000 {
		m.startBacklog(1, piece)
	}
	if m.Deadline() != 1+stallTimeout {
		t.Errorf("due at %d", m.Deadline())
	}
	b := m.backlogs[2]
	if b.expired || b.bytes > m.config.KeepBytes || !m.hasBacklog(2, m.own.flow) || m.hasBacklog(3, m.own.flow) {
		t.Fatalf("%d of %d bytes, expired %t", b.bytes, m.config.KeepBytes, b.expired)
	}
	last := piece
	last.encoded = make([]byte, m.config.KeepBytes-b.bytes-segmentCost)
	m.startBacklog(2, last)
	if b.expired || b.bytes != m.config.KeepBytes || b.since != 1 {
		t.Fatalf("%d of %d bytes, expired %t", b.bytes, m.config.KeepBytes, b.expired)
	}
	m.startBacklog(3, piece)
	if !b.expired || b.bytes != 0 || len(m.missed[2]) != 1 {
		t.Errorf("%d bytes, expired %t, missed %v", b.bytes, b.expired, m.missed)
	}
	if !m.joinBacklog(piece) || b.bytes != 0 {
		t.Error("a segment for an expired backlog is sent, or kept")
	}
	if slices.Contains(m.own.flow.children, 2) {
		t.Error("a member whose backlog is too long is fed")
	}
	m.resumeBacklog(2)
	if !slices.Contains(m.own.flow.children, 2) || m.outbox.Len() > 0 {
		t.Error("a member whose queue has room is not fed")
	}
	m.startBacklog(4, piece)
	b = m.backlogs[2]
	if !m.joinBacklog(piece) || b.bytes != 2000 || len(b.sends) != 2 {
		t.Errorf("%d bytes wait, of two segments", b.bytes)
	}
	other := piece
	other.kind = offer
	if m.joinBacklog(other) {
		t.Error("an offer waits")
	}
	other.kind, other.to = data, 3
	if m.joinBacklog(other) {
		t.Error("a segment waits for a peer without a backlog")
	}
	delete(m.backlogs, 2)
	m.startBacklog(10, piece)
	for _, late := range []bool{false, true} {
		now := 10 + stallTimeout - 1
		if late {
			now++
		}
		m.due = 1 << 60
		m.expireBacklogs(now)
		if m.backlogs[2].expired != late || !late && m.due != 10+stallTimeout {
			t.Errorf("late %t: expired %t, due %d", late, m.backlogs[2].expired, m.due)
		}
	}
	m.startBacklog(20, other)
	m.resumeBacklog(3)
	if m.backlogs[3] != nil || m.outbox.Len() != 1 {
		t.Errorf("%d frames are to be sent", m.outbox.Len())
	}
}

// Losses of a root that follow each other in a view are one notice, and what waits is counted.
func TestNoticesOfLosses(t *testing.T) {
	var b inbox
	b.push(&b.main, Message{Data: []byte("data")})
	for _, n := range []struct {
		root protocol.Rank
		view uint64
	}{{1, 1}, {1, 1}, {2, 1}, {2, 2}, {2, 2}} {
		b.pushLoss(n.root, n.view, 3)
	}
	if b.waiting != 4 || b.bytes != 4*messageCost+4 || b.main.At(1).Lost != 6 || b.main.At(2).Lost != 3 ||
		b.main.At(3).Lost != 6 {
		t.Errorf("%d wait, %d bytes", b.waiting, b.bytes)
	}
	for range 4 {
		b.discard(&b.main)
	}
	if b.waiting != 0 || b.bytes != 0 {
		t.Errorf("%d wait, %d bytes", b.waiting, b.bytes)
	}
}

// A batch has as many messages as there is room for, and no more, whatever their lengths.
func TestBatchesAreFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := New(Config{Rank: 1, Size: 4, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(0, maxBatchedMessage), 2, 60).Draw(t, "sizes")
		for _, size := range sizes {
			if err := m.Write(make([]byte, size), 0); err != nil {
				t.Skip("the outbox is full")
			}
		}
		most := rapid.IntRange(maxBatchedMessage+10, maxBatchBytes).Draw(t, "most")
		for next := 0; m.own.waiting.Len() > 0; {
			seg, begun := m.own.nextBatch(&m.frames, most)
			if size := len(seg.payload()); begun == 0 || size > most || !seg.batch && begun > 1 {
				t.Fatalf("%d messages in %d bytes, at most %d", begun, size, most)
			}
			if seg.batch {
				err := split(seg.payload(), func(message []byte) {
					if len(message) != sizes[next] {
						t.Fatalf("message %d has %d bytes, not %d", next, len(message), sizes[next])
					}
					next++
				})
				if err != nil || seg.batched != int(begun) {
					t.Fatalf("%v, %d messages", err, seg.batched)
				}
			} else {
				next++
			}
			if m.own.waiting.Len() > 0 && begun < maxBatchMessages && seg.batch && len(seg.payload())+3+sizes[next] <= most {
				t.Fatalf("a message of %d bytes has room beside %d, at most %d", sizes[next], len(seg.payload()), most)
			}
		}
	})
}

// A message goes into a batch if there is room for the longest form of its length.
func TestRoomInABatch(t *testing.T) {
	const size = 100
	for most := 190; most < 215; most++ {
		m, err := New(Config{Rank: 1, Size: 4, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := m.Write(make([]byte, size), 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, begun := m.own.nextBatch(&m.frames, most); (begun == 2) != (1+size+binary.MaxVarintLen16+size <= most) {
			t.Errorf("%d messages in at most %d bytes", begun, most)
		}
	}
}

// The tree may only be slow if it has brought something of late, and nothing shows that it does not
// go on.
func TestTreeMayBeSlow(t *testing.T) {
	m, err := New(Config{Rank: 1, Size: 4, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		fedAt, now protocol.Time
		change     func(*flow)
		slow       bool
	}{
		"of late":                {10, 109, nil, true},
		"long ago":               {10, 110, nil, false},
		"never":                  {0, 50, nil, false},
		"something is ahead":     {10, 50, func(f *flow) { f.ahead[3] = segment{} }, false},
		"the member is frozen":   {10, 50, func(*flow) { m.frozen = true }, false},
		"the parent is not down": {10, 50, func(*flow) { m.down[2] = true }, true},
		"the parent is down":     {10, 50, func(f *flow) { m.down[f.parent] = true }, false},
	} {
		f, err := m.open(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		f.parent = 3
		m.frozen = false
		clear(m.down)
		f.fedAt = c.fedAt
		if c.change != nil {
			c.change(f)
		}
		if got := m.treeMayBeSlow(c.now, f, 100); got != c.slow {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// A segment that continues a message which has not begun is dropped: an orphan in a message's place could
// be taken for one with a topic, and lie about its length.
func TestContinuationsOfNothingAreDropped(t *testing.T) {
	for name, before := range map[string][]frame{
		"first":            nil,
		"behind a message": {{kind: data, begins: true, labeled: true, segment: []byte("\x01tx")}},
		"behind a long one": {
			{kind: data, begins: true, labeled: true, remaining: 1, segment: []byte("\x01tx")},
			{kind: data, segment: []byte("y")},
		},
		"behind a batch": {
			{kind: data, begins: true, labeled: true, remaining: 1, segment: []byte("\x01tx")},
			{kind: data, begins: true, batch: true, segment: []byte("\x01z")},
		},
		"behind one too large": {
			{kind: data, begins: true, labeled: true, remaining: 200, segment: []byte("\x01tx")},
			{kind: data, segment: make([]byte, 200)},
		},
	} {
		for _, orphan := range []string{"", "\x66ab", "whole"} {
			m, err := New(Config{Rank: 1, Size: 2, Incarnation: 1, MaxMessage: 100, AllTopics: true})
			if err != nil {
				t.Fatal(err)
			}
			delivered := 0
			for i, f := range append(slices.Clone(before), frame{kind: data, segment: []byte(orphan)}) {
				f.incarnation, f.first, f.messages = 1, uint64(i), uint32(i)
				if err := m.Receive(1, 0, f.append(nil)); err != nil {
					t.Fatal(err)
				}
				if i == len(before)-1 {
					delivered = m.Undelivered()
				}
			}
			if n := m.Undelivered(); n != delivered {
				t.Errorf("%s, %q: %d messages instead of %d", name, orphan, n, delivered)
			}
		}
	}
}
