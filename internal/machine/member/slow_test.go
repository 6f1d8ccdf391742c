package member

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// A member whose inbox is full leaves if its program does not receive. If a view change
// holds the messages back, the program cannot receive them, and the member stays.
func TestOnlyASlowProgramMakesAMemberLeave(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprintf("frozen=%v", frozen), func(t *testing.T) {
			members := []membership.Member{
				{Rank: 0, Identity: "a", Address: "a", Incarnation: FirstIncarnation},
				{Rank: 1, Identity: "b", Address: "b", Incarnation: FirstIncarnation},
			}
			view := membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(members...)}
			var both [2]*Machine
			for r := range both {
				m, err := New(Config{Self: members[r], View: view, Stream: stream.Config{InboxBytes: 1000}})
				if err != nil {
					t.Fatal(err)
				}
				m.Start(1)
				both[r] = m
			}
			sender, receiver := both[0], both[1]
			if frozen {
				receiver.Freeze()
			}
			if err := sender.stream.Write(make([]byte, 1100), 0); err != nil {
				t.Fatal(err)
			}
			for _, head, body, ok := sender.stream.Next(1); ok; _, head, body, ok = sender.stream.Next(1) {
				if err := receiver.stream.Receive(1, 0, append(head[:len(head):len(head)], body...)); err != nil {
					t.Fatal(err)
				}
			}
			if !receiver.stream.Full() {
				t.Fatal("the inbox is not full")
			}
			slow := 0
			receiver.config.OnSlow = func(after protocol.Time, why string) {
				slow++
				if after != defaultSlowTimeout || why != programReceivesNothing {
					t.Errorf("it leaves after %d: %s", after, why)
				}
			}
			receiver.Settle(1)
			if receiver.Slow() == frozen {
				t.Error("others wait for a program that cannot receive, or not for one that can")
			}
			receiver.Settle(defaultSlowTimeout)
			receiver.Received(defaultSlowTimeout)
			for _, now := range []protocol.Time{defaultSlowTimeout + 1, 2*defaultSlowTimeout - 1} {
				receiver.Settle(now)
				if receiver.TooSlow() {
					t.Errorf("it leaves at %d, although the program has received something", now)
				}
			}
			viewFrames(receiver, 2*defaultSlowTimeout-1)
			for range 2 {
				receiver.Settle(2 * defaultSlowTimeout)
				if receiver.TooSlow() == frozen || slow != map[bool]int{false: 1}[frozen] {
					t.Errorf("the member leaves: %v, %d times", receiver.TooSlow(), slow)
				}
			}
			if told := viewFrames(receiver, 2*defaultSlowTimeout) > 0; told == frozen {
				t.Errorf("the others are told that it leaves: %t", told)
			}
		})
	}
}

// A member whose process hardly runs leaves, if others wait for it, and its neighbor runs
// well: where all hardly run, none is at fault.
func TestProcessThatHardlyRunsLeaves(t *testing.T) {
	const interval, ms = 300e6, 1e6
	for name, c := range map[string]struct {
		period protocol.Time // between two times at which the member runs
		beat   protocol.Time // between two heartbeats of its neighbor
		waits  bool
		leaves bool
	}{
		"it hardly runs":       {period: 500 * ms, beat: interval, waits: true, leaves: true},
		"it runs well":         {period: 20 * ms, beat: interval, waits: true},
		"nobody waits for it":  {period: 500 * ms, beat: interval},
		"all members are slow": {period: 500 * ms, beat: 500 * ms, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			sender, receiver := starvedPair(t, interval)
			why := ""
			receiver.config.OnSlow = func(_ protocol.Time, reason string) { why += reason } // once
			beat := protocol.Time(1)
			for now := protocol.Time(1); now < 5*defaultSlowTimeout; now += c.period {
				for ; beat <= now; beat += c.beat {
					receive(t, receiver, now, []byte{heartbeatFrame})
				}
				for _, head, body, ok := sender.stream.Next(now); ok; _, head, body, ok = sender.stream.Next(now) {
					if c.waits && len(head)+len(body) < 500 { // what the sender waits for does not arrive
						receive(t, receiver, now, head)
					}
				}
				for _, head, _, ok := receiver.Next(now); ok; _, head, _, ok = receiver.Next(now) {
					if head[0] < viewFrame { // a stream's
						_ = sender.stream.Receive(now, 1, slices.Clone(head))
					}
				}
				receiver.Settle(now)
			}
			if receiver.TooSlow() != c.leaves || c.leaves && why != processStarved {
				t.Errorf("it leaves: %v, %q", receiver.TooSlow(), why)
			}
		})
	}
}

// A process hardly runs if it was late at three of four intervals, a root waited in half of them, and
// a neighbor has sent four of five heartbeats; with one less of any, it runs.
func TestHardlyRuns(t *testing.T) {
	const interval = 300e6
	for _, c := range []struct {
		late, awaited, beats int
		want                 bool
	}{
		{15, 10, 16, true},
		{20, 20, 20, true},
		{14, 10, 16, false},
		{15, 9, 16, false},
		{15, 10, 15, false},
		{0, 20, 20, false},
	} {
		h := heartbeat.Health{Intervals: 20, Late: c.late, Beats: c.beats}
		if got := hardlyRuns(h, c.awaited, 20*interval, interval); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// Messages that follow each other closely are batched, however long each takes to be sent.
func TestTimeToSendIsNoPause(t *testing.T) {
	m, _ := alone(t, 2, 0, nil)
	m.Up(1, 1)
	sent := 0
	for now := protocol.Time(1); now < 40*100e3; now += 100e3 {
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		for _, head, _, ok := m.Next(now); ok; _, head, _, ok = m.Next(now) {
			if head[0] == dataFrame {
				sent++
			}
		}
		m.Settle(now + 90e3)
	}
	if sent == 0 || sent > 30 {
		t.Errorf("40 messages are sent in %d segments", sent)
	}
}

// What a burst has left waiting for a batch is sent at once when the program says so.
func TestBatchIsFlushed(t *testing.T) {
	m, _ := alone(t, 2, 0, nil)
	m.Up(1, 1)
	sent := func(now protocol.Time) (segments int) {
		for _, head, _, ok := m.Next(now); ok; _, head, _, ok = m.Next(now) {
			if head[0] == dataFrame {
				segments++
			}
		}
		return segments
	}
	now := protocol.Time(1)
	for written := 1; written > 0; now += 1000 {
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		written = sent(now)
	}
	if sent(now) > 0 {
		t.Fatal("nothing waits")
	}
	m.FlushBatch()
	if sent(now) != 1 {
		t.Error("it still waits")
	}
}

// starvedPair returns a sender that has more to send than its window allows, and a receiver.
func starvedPair(t *testing.T, interval protocol.Time) (sender, receiver *Machine) {
	t.Helper()
	members := []membership.Member{
		{Rank: 0, Identity: "a", Address: "a", Incarnation: FirstIncarnation},
		{Rank: 1, Identity: "b", Address: "b", Incarnation: FirstIncarnation},
	}
	view := membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(members...)}
	var both [2]*Machine
	for r := range both {
		m, err := New(Config{
			Self: members[r], View: view, Stream: stream.Config{InboxBytes: 100_000},
			Heartbeat: heartbeat.Config{Interval: interval, Timeout: 5 * interval},
		})
		if err != nil {
			t.Fatal(err)
		}
		m.Start(1)
		both[r] = m
	}
	for range 10 {
		if err := both[0].stream.Write(make([]byte, 60_000), 0); err != nil {
			t.Fatal(err)
		}
	}
	return both[0], both[1]
}

func receive(t *testing.T, m *Machine, now protocol.Time, frame []byte) {
	t.Helper()
	if err := m.Receive(now, 0, slices.Clone(frame)); err != nil {
		t.Fatal(err)
	}
}

// viewFrames takes what a member sends, and counts frames of the membership protocol.
func viewFrames(m *Machine, now protocol.Time) (n int) {
	for range 100 {
		if _, head, _, ok := m.Next(now); ok && head[0] == viewFrame {
			n++
		}
	}
	return n
}
