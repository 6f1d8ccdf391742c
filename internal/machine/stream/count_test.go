package stream

import (
	"testing"

	"pgregory.net/rapid"
)

// streamOf returns the segments of a stream of messages that a root has written: alone, in batches,
// or in several segments.
func streamOf(t *rapid.T) (frames [][]byte, messages int) {
	m, err := New(Config{Size: 2, Incarnation: 1, SegmentSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	take := func() {
		m.FlushBatch()
		for _, s := range drain(m, 1) {
			if kind(s.frame[0]) == data {
				frames = append(frames, s.frame)
			}
		}
	}
	for range rapid.IntRange(1, 12).Draw(t, "writes") {
		segments := rapid.SampledFrom([]int{1, 1, 3}).Draw(t, "segments")
		for i := range segments {
			if err := m.Write(make([]byte, 10), 10*(segments-1-i)); err != nil {
				t.Fatal(err)
			}
			if segments > 1 {
				take()
			}
		}
		messages++
		if rapid.Bool().Draw(t, "alone") {
			take()
		}
	}
	take()
	return frames, messages
}

// Every message is delivered, or told to be lost, once: whatever a member gives up, and whether or
// not others know how many messages that was, as soon as a segment behind it arrives. Before that
// the program knows that something is lost. Of a stream that it has joined in its midst, a member
// knows from its first segment on.
func TestEveryMessageIsCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames, messages := streamOf(t)
		c := Config{Rank: 1, Size: 2, Incarnation: 1}
		joined := uint64(rapid.IntRange(0, 1).Draw(t, "joined")) * uint64(rapid.IntRange(0, len(frames)-1).Draw(t, "at"))
		for frames[joined][1]&flagBegins == 0 {
			joined-- // views begin with messages
		}
		c.Start = []Position{{MemberID{0, 1}, joined, 0}}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		f := m.flows[0]
		before, counted := 0, 0 // messages before the first segment of a joiner, and those counted since
		known := joined == 0
		take := func() {
			m.DeliverEach(1, 1000, func(got *Message) {
				switch {
				case got.Lost == 0:
					counted++
				case known:
					counted += int(got.Lost)
				}
			})
		}
		for number := joined; number < uint64(len(frames)); {
			last := number == uint64(len(frames))-1
			if lost := uint64(rapid.IntRange(0, 3).Draw(t, "lost")); !last && lost > 0 {
				to := min(number+lost, uint64(len(frames))-1)
				f.wanted = to
				f.pull.trimmedTo, f.pull.messages = 0, 0
				if rapid.Bool().Draw(t, "known") {
					fr, _ := parse(frames[to])
					f.pull.trimmedTo, f.pull.messages = to, fr.messages
				}
				skipped := f.partial.skipped
				m.giveUp(1, f, to)
				if m.Pending() == 0 && !skipped {
					t.Fatalf("segments %d to %d are lost, and the program is not told", number, to)
				}
				take()
				number = to
				continue
			}
			if fr, _ := parse(frames[number]); !known {
				before = int(fr.messages)
			}
			if err := m.Receive(1, 0, frames[number]); err != nil {
				t.Fatal(err)
			}
			take()
			known = true
			number++
		}
		if counted != messages-before {
			t.Fatalf("%d messages are delivered or lost, of %d", counted, messages-before)
		}
	})
}

// The first segment that was given up, and those after it, are what a member never has.
func TestWhatIsLostBefore(t *testing.T) {
	f := &flow{positions: positions{lost: 5}} // segment 4
	for number, want := range map[uint64]bool{4: false, 5: true, 6: true} {
		if f.lostBefore(number) != want {
			t.Errorf("before %d, something is lost: %t", number, !want)
		}
	}
	if (&flow{}).lostBefore(0) {
		t.Error("something is lost before anything was given up")
	}
}

// A member that is asked for what it has trimmed says how many messages began before, if it knows.
func TestMessagesBeforeASegment(t *testing.T) {
	m, f := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	*f.store.segments.At(0) = segment{frame: f.store.segments.At(0).frame, messages: 3}
	f.ahead[4] = segment{messages: 8}
	f.count = count{begun: 4, end: 2, endMessages: 6}
	for number, want := range map[uint64]uint32{0: 3, 1: 4, 2: 6, 3: 0, 4: 8} {
		if got := f.messagesBefore(number); got != want {
			t.Errorf("%d messages before segment %d, want %d", got, number, want)
		}
	}
	for _, c := range []count{{begun: 4, unknown: true}, {begun: 4, lower: true}} {
		f.count = c
		if f.messagesBefore(1) != 0 {
			t.Errorf("%+v: %d messages", c, f.messagesBefore(1))
		}
	}
}
