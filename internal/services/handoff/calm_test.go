package handoff

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// newCalm returns a group that loses nothing, and has settled.
func newCalm(t *testing.T, seed uint64, size int) *world {
	w := newWorld(t, seed, 12, size)
	w.calm = true
	w.run(2*lease + w.handoff)
	w.settled()
	return w
}

func (w *world) run(duration Time) {
	for range duration {
		w.step()
	}
}

// soon is more than all that members of a calm group need to hand a partition over: views and
// confirmations come, work ends, messages travel. It is less than a lease.
const soon = skew + lease/5 + drain + 2*delay

// In a calm group messages do what they are for: a partition is served again without a wait for
// a lease when its owner has released it, because another member comes or because it leaves.
func TestCalmGroupsHandOverWithoutALease(t *testing.T) {
	for seed := range uint64(6) {
		w := newCalm(t, seed, 3)
		for round := range 4 {
			hosts := slices.Clone(w.last().hosts)
			if round%2 == 0 {
				w.decide(append(hosts, w.start(3, uint64(len(w.views)+1))))
			} else {
				hosts[3].Leave(w.now)
				w.run(drain + 2*delay)
				if n := hosts[3].Holds(); n > 0 {
					t.Fatalf("seed %d: a member that leaves holds %d partitions", seed, n)
				}
				hosts[3].ended = true
				w.decide(hosts[:3])
			}
			w.run(soon)
			w.settled()
			for _, h := range w.last().hosts {
				if missing := h.Missing(); len(missing) > 0 {
					t.Fatalf("seed %d: %v has no report of %v", seed, h.self, missing)
				}
			}
		}
	}
}

// When a member dies, the others wait for its lease, and not for work that it might still drain.
func TestDeadOwnersCostALease(t *testing.T) {
	for seed := range uint64(6) {
		w := newCalm(t, seed, 4)
		hosts := slices.Clone(w.last().hosts)
		hosts[3].ended = true
		w.decide(hosts[:3])
		w.run(lease + soon)
		w.settled()
	}
}

// A member that is out of work by its own deadline, and not before, releases what it has.
func TestOwnersDrainUntilTheirDeadline(t *testing.T) {
	w := newCalm(t, 1, 3)
	a := w.last().hosts[0]
	a.Leave(w.now)
	drains := a.Take().Drain
	if len(drains) != a.Holds() || len(drains) == 0 {
		t.Fatalf("%d partitions are drained, of %d", len(drains), a.Holds())
	}
	first := drains[0]
	a.Drained(w.now, Item{first.Partition, first.Token + 1}) // of another owner
	a.Tick(w.now + w.handoff - 1)
	if out := a.Take(); len(out.Stop)+len(out.Send) > 0 {
		t.Errorf("before the deadline: %+v", out)
	}
	a.Drained(w.now, first)
	a.Drained(w.now, first)
	if out := a.Take(); len(out.Send) != 1 || !slices.Equal(out.Send[0].Items, drains[:1]) ||
		out.Send[0].Kind != Released {
		t.Errorf("one that has ended: %+v", out)
	}
	a.Tick(w.now + w.handoff)
	if out := a.Take(); len(out.Stop) != len(drains)-1 || len(out.Send) != 1 || len(out.Send[0].Items) != len(drains)-1 {
		t.Errorf("at the deadline: %+v", out)
	}
}

// one returns a process that is alone in a view, and owns everything at time 1000+lease.
func one(t *testing.T) (*Machine, Process, []Member) {
	t.Helper()
	m, self := New(Config{Partitions: 4, Lease: lease, Handoff: handoff}), Process{0, 1}
	list := []Member{{self, "a", 1}}
	m.Install(1000, self, 1, list)
	for now := Time(1000); now <= 1000+lease; now += lease / 5 {
		m.Confirm(now, now, 1)
		m.Tick(now)
	}
	m.Take()
	if m.Holds() != 4 {
		t.Fatalf("it holds %d partitions", m.Holds())
	}
	return m, self, list
}

// A lease ends to the moment, once, and a later confirmation begins it again.
func TestLeaseEndsToTheMoment(t *testing.T) {
	m, self, list := one(t)
	end := 1000 + lease + lease/5*4
	m.Confirm(end-1, 1000, 1)       // an older one ends no lease
	m.Confirm(end-1, end-1, 2)      // of another view
	m.Install(end-1, self, 1, list) // the same again
	if m.Until() != end || m.Next() != end {
		t.Fatalf("the lease ends at %d, next %d, want %d", m.Until(), m.Next(), end)
	}
	for now, serves := range map[Time]bool{end - 1: true, end: false} {
		if _, ok := m.Serves(now, 0); ok != serves {
			t.Errorf("at %d: serves: %v", now, ok)
		}
	}
	m.Tick(end - 1)
	if m.Take().Lapse {
		t.Error("too early")
	}
	m.Tick(end)
	if !m.Take().Lapse || m.Next() != protocol.Never {
		t.Errorf("it has not ended; next %d", m.Next())
	}
	m.Confirm(end, 1000+lease, 1) // the last one again
	m.Tick(end + 1)
	if m.Take().Lapse {
		t.Error("it ends twice")
	}
	m.Confirm(end+2, end+2, 1)
	if _, ok := m.Serves(end+2, 0); !ok {
		t.Error("it does not begin again")
	}
	tokens := New(Config{Partitions: 4, Handoff: handoff})
	tokens.Install(1, self, 1, list)
	tokens.Confirm(2, 2, 1)
	if tokens.Until() != protocol.Never {
		t.Errorf("without leases it ends at %d", tokens.Until())
	}
}

// A process that did not run for long does not vouch for its view until it would know the next.
func TestSleepersDoNotVouch(t *testing.T) {
	m, _, _ := one(t)
	now := 1000 + lease
	awake := now + lease/5*2
	if !m.Vouches(awake, 1) || m.Vouches(awake+1, 1) || m.Vouches(now, 2) {
		t.Errorf("after %d: %v, after %d: %v", lease/5*2, m.Vouches(awake, 1), lease/5*2+1, m.Vouches(awake+1, 1))
	}
	m.Tick(awake + 1)
	for at, vouches := range map[Time]bool{awake + 1: false, awake + lease: false, awake + 1 + lease: true} {
		for now := m.ticked; now <= at; now += lease / 5 {
			m.Tick(now)
		}
		m.Tick(at)
		if at > awake+1 && m.Vouches(at, 1) != vouches || at == awake+1 && m.awake != at+lease {
			t.Errorf("at %d: %v", at-awake, m.Vouches(at, 1))
		}
	}
}

// Messages of views to come are kept up to a bound; the oldest go.
func TestMessagesOfViewsToCome(t *testing.T) {
	m, _, _ := one(t)
	for n := range 64 + 4 + 3 {
		m.Receive(5000, Message{Kind: Begun, View: 100, From: Process{1, uint64(n)}, Items: nil})
		if want := min(n+1, 64+4); len(m.pending) != want || m.pending[want-1].From.Incarnation != uint64(n) {
			t.Fatalf("%d messages are kept of %d", len(m.pending), n+1)
		}
	}
}

// Bytes that no message has are refused: all that are cut short, or longer by a byte, or name
// what there is not.
func TestBytesThatNoMessageHas(t *testing.T) {
	m := Message{Kind: Released, View: 7, From: Process{2, 300}, Items: []Item{{0, 1}, {9, 1 << 40}}}
	b := m.Encode()
	if got, err := Decode(2, 10, b); err != nil || fmt.Sprint(got) != fmt.Sprint(m) {
		t.Fatalf("%v, %v", got, err)
	}
	bad := map[string][]byte{
		"a byte too many":          append(slices.Clone(b), 0),
		"a kind that there is not": append([]byte{kinds}, b[1:]...),
	}
	for n := range b {
		bad[fmt.Sprint("the first ", n)] = b[:n:n]
	}
	long := Message{Kind: Begun, View: 1, From: Process{2, 1}, Items: nil}
	bad["a number without an end"] = append(long.Encode()[:3], 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255)
	for name, b := range bad {
		if _, err := Decode(2, 10, b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Decode(2, 9, b); !errors.Is(err, ErrMalformed) {
		t.Error("partition 9 of 9 was taken")
	}
	small := Message{Kind: Begun, View: 1, From: Process{2, 1}, Items: []Item{{1, 1}, {2, 2}}} // two bytes each
	if _, err := Decode(2, 10, small.Encode()); err != nil {
		t.Error(err)
	}
}
