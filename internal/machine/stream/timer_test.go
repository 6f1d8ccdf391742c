package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// runTo calls a member whenever it is due until a time, and returns what it sends, with when.
func runTo(m *Member, from, until protocol.Time) (sent []sentFrame, at []protocol.Time) {
	for now := from; now <= until; now = max(m.Deadline(), now+1) {
		for _, s := range drain(m, now) {
			sent, at = append(sent, s), append(at, now)
		}
		if m.Deadline() == protocol.Never {
			break
		}
	}
	return sent, at
}

// A member that has nothing left to do is due no more, and looks at no stream: neither when all is
// well, nor when no member has answered its requests.
func TestQuietMemberDoesNothing(t *testing.T) {
	for _, c := range []struct{ offered, arrived uint64 }{{0, 1}, {1, 1}, {3, 1}, {3, 0}} {
		m, f := behind(t, c.offered)
		for number := range c.arrived {
			receiveFrom(t, m, 1, 0, number, 0, 10)
		}
		runTo(m, 1, 600_000*millisecond)
		if m.Deadline() != protocol.Never || len(m.scheduled) > 0 || f.scheduled {
			t.Errorf("%+v: due at %d, %d streams are scheduled", c, m.Deadline(), len(m.scheduled))
		}
		asked := m.Stats().Requests
		if want := c.offered > c.arrived; (asked > 0) != want || asked > maxUnanswered {
			t.Errorf("%+v: %d requests", c, asked)
		}
	}
	alone := group(t, Config{}, 1)[0]
	if err := alone.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	if sent, _ := runTo(alone, 1, 600_000*millisecond); len(sent) > 0 || alone.Deadline() != protocol.Never {
		t.Errorf("a member that is alone sends %d frames, and is due at %d", len(sent), alone.Deadline())
	}
}

// A stream that waits for room in the inbox is looked at when there is some, though it is not due.
func TestStreamThatWaitsForRoomStaysScheduled(t *testing.T) {
	m := group(t, Config{InboxBytes: 100, Drop: true}, 3)[1]
	for number := range uint64(3) {
		f := frame{kind: data, begins: true, incarnation: 1, first: number, segment: make([]byte, 100)}
		if err := m.Receive(1, 0, f.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	other, err := m.open(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	other.next, other.wanted = 1, 1
	m.schedule(other, 1)
	runTo(m, 1, 600_000*millisecond)
	f := m.flows[0]
	other.pull.due = 1 << 60 // it asks for something in a while
	if !slices.Equal(m.scheduled, []*flow{f}) || m.Stats().Requests > 0 || m.Stats().Refused == 0 {
		t.Fatalf("%d streams are scheduled, %d requests, %d refused", len(m.scheduled), m.Stats().Requests, m.Stats().Refused)
	}
	m.Deliver(600_000 * millisecond)
	runTo(m, 600_000*millisecond, 600_010*millisecond)
	if m.Stats().Requests == 0 || m.Withholding() {
		t.Error("there is room, and nothing is requested")
	}
	if other.pull.due != 1<<60 {
		t.Error("room in the inbox moves requests that were not refused")
	}
}

// A member that has asked for long without an answer does not go on because its program receives.
func TestReceivingProgramBringsBackNoRequests(t *testing.T) {
	m, f := behind(t, 3)
	runTo(m, 1, 600_000*millisecond)
	m.schedule(f, protocol.Never)
	m.inbox.push(&m.inbox.main, Message{})
	m.Deliver(600_000 * millisecond)
	if f.pull.due != protocol.Never {
		t.Error("it asks again")
	}
}

// While the inbox overflows, nothing that was refused is requested, and what there is no room for is
// not either.
func TestNothingIsRequestedWithoutRoom(t *testing.T) {
	m, f := behind(t, 3)
	m.config.InboxBytes = 100
	for range 5 {
		m.inbox.push(&m.inbox.main, Message{Data: make([]byte, 100)})
	}
	if sent, _ := runTo(m, 1, 600_000*millisecond); slices.ContainsFunc(sent,
		func(s sentFrame) bool { return kind(s.frame[0]) == request }) {
		t.Error("something is requested")
	}
	for room := false; !room; {
		m.Deliver(1)
		room = m.inbox.bytes <= 200
		if m.Withholding() == room || (f.pull.due == 1) != room {
			t.Errorf("%d bytes wait: withholding %t, due at %d", m.inbox.bytes, m.Withholding(), f.pull.due)
		}
	}
}

// Probes of the right neighbor follow when a stream has fallen quiet, each after four times the
// interval before. A neighbor that has offered as much is not probed.
func TestTailProbes(t *testing.T) {
	m, f := behind(t, 0)
	const began = 1000 * millisecond
	receiveFrom(t, m, began, 0, 0, 0, 10)
	if due := f.tailProbe.due; due != began+tailProbeInterval {
		t.Errorf("the first is due after %d ms", (due-began)/millisecond)
	}
	receiveFrom(t, m, began+millisecond, 0, 1, 0, 10)
	sent, at := runTo(m, began, 60_000*millisecond)
	last, wait, probes := began+millisecond, tailProbeInterval, 0
	for i, s := range sent {
		if f, err := parse(s.frame); err != nil || f.kind != offer || f.direction != undirected || s.to != 5 {
			continue
		}
		probes++
		if at[i]-last != wait {
			t.Errorf("probe %d follows after %d ms, want %d", probes, (at[i]-last)/millisecond, wait/millisecond)
		}
		last, wait = at[i], 4*wait
	}
	if probes != tailProbes {
		t.Errorf("%d probes", probes)
	}
	for heard, want := range map[uint64]bool{1: true, 2: false, 3: false} {
		f.correction.heardTo, f.tailProbe.remaining = heard, tailProbes-1
		m.sendTailProbe(60_000*millisecond, f)
		if probed := m.outbox.Len() > 0; probed != want {
			t.Errorf("a neighbor that has offered %d of 2 is probed: %t", heard, probed)
		}
		drain(m, 60_000*millisecond)
	}
}

// Whatever a member waits for, it is due by then, also if it waits for nothing else sooner.
func TestNothingIsForgotten(t *testing.T) {
	const later = 1 << 50
	for what, c := range map[string]struct {
		wait func(*Member, *flow)
		due  func(*Member, *flow) protocol.Time
	}{
		"an adoption": {
			func(m *Member, f *flow) { m.updateFoster(1, f, 7, f.wanted, false) },
			func(_ *Member, f *flow) protocol.Time { return f.foster.due },
		},
		"a probe": {
			func(m *Member, f *flow) { m.armTailProbe(1, f) },
			func(_ *Member, f *flow) protocol.Time { return f.tailProbe.due },
		},
		"a pull": {
			func(m *Member, f *flow) { m.schedulePull(1, f, 7, true) },
			func(_ *Member, f *flow) protocol.Time { return f.pull.due },
		},
		"a correction": {
			func(m *Member, f *flow) { f.next = 1; m.runCorrection(1, f) },
			func(_ *Member, f *flow) protocol.Time { return f.correction.due },
		},
		"a question": {
			func(m *Member, f *flow) {
				f.next = 1
				m.runCorrection(1, f)
				m.due = later
				m.runCorrection(f.correction.due, f)
			},
			func(_ *Member, f *flow) protocol.Time { return f.correction.due },
		},
		"a neighbor": {
			func(m *Member, _ *flow) { m.scheduleRetry(1) },
			func(m *Member, _ *flow) protocol.Time { return m.retryDue },
		},
		"a backlog": {
			func(m *Member, f *flow) { m.startBacklog(1, send{to: 7, kind: data, flow: f}) },
			func(m *Member, _ *flow) protocol.Time { return m.backlogs[7].since + stallTimeout },
		},
	} {
		m, f := behind(t, 0)
		m.due = later
		c.wait(m, f)
		due := c.due(m, f)
		if due <= 1 || due >= later || m.Deadline() != due {
			t.Errorf("%s: it waits until %d, and is due at %d", what, due, m.Deadline())
		}
		drain(m, due)
		if b := m.backlogs[7]; b != nil && (!b.expired || m.Deadline() <= due) {
			t.Errorf("%s: expired %t", what, b.expired)
		}
	}
}

// A step before a member is due does nothing, and one in time does something or is not due again
// at once, whatever it waits for.
func TestDeadlinesAreExact(t *testing.T) {
	root, silent := group(t, Config{SegmentSize: 16 << 10}, 3)[0], 0
	for range 2 * initialWindow / (16 << 10) {
		if err := root.Write(make([]byte, 16<<10), 0); err != nil {
			t.Fatal(err)
		}
	}
	drain(root, 1)
	root.Poll(1)
	orphan, _ := behind(t, 5)
	repaired(t, orphan, 1, 7, 4)
	orphan.Down(1, 5)
	orphan.startBacklog(1, send{to: 6, kind: data, flow: orphan.own.flow})
	for _, m := range []*Member{root, orphan} {
		now := protocol.Time(1)
		for range 60 {
			drain(m, now)
			due := m.Deadline()
			if due == protocol.Never {
				break
			}
			before := m.Stats()
			if sent := drain(m, due-1); len(sent) > 0 || m.Deadline() != due || m.Stats() != before {
				t.Fatalf("due at %d, it sends %d frames before", due, len(sent))
			}
			if len(drain(m, due)) == 0 {
				silent++
			}
			now = due
		}
	}
	t.Logf("%d times nothing was sent", silent)
}
