package member

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// dataFrame is the first byte of a segment of a stream.
const dataFrame = 1

// What is broadcast, and what is sent to single members, arrives although queues are full now and
// then, and connections end.
func TestNothingIsLostOnTheWay(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 35))
		g := newGroup(t, 3, false)
		full, down := map[[2]protocol.Rank]bool{}, map[[2]protocol.Rank]bool{}
		g.fails = func(from, to protocol.Rank, frame []byte) (bool, bool) {
			way := [2]protocol.Rank{from, to}
			if frame[0] != heartbeatFrame && !down[way] && rng.IntN(4) == 0 {
				full[way] = true
			}
			return full[way] || down[way], !down[way]
		}
		got, want := map[string]int{}, map[string]int{}
		trouble := func() bool {
			clear(g.due)
			for way := range full {
				delete(full, way)
				g.roles[way[0]].Writable(g.now, way[1])
			}
			a := protocol.Rank(rng.IntN(3))
			b := (a + 1) % 3
			switch ways := [][2]protocol.Rank{{a, b}, {b, a}}; {
			case down[ways[0]] && rng.IntN(4) == 0:
				for _, way := range ways {
					delete(down, way)
					g.roles[way[0]].Up(g.now, way[1])
				}
			case !down[ways[0]] && rng.IntN(20) == 0:
				for _, way := range ways {
					down[way] = true
					delete(full, way)
					g.roles[way[0]].Down(g.now, way[1])
				}
			}
			for r := range 3 {
				m := g.machine(r)
				for x, ok := m.Deliver(g.now); ok; x, ok = m.Deliver(g.now) {
					if !x.Begins {
						got[fmt.Sprint(r, string(bytes.TrimSpace(x.Data)))]++
					}
				}
				for x, ok := m.DeliverDirect(); ok; x, ok = m.DeliverDirect() {
					got[fmt.Sprint(r, string(bytes.TrimSpace(x.Data)))]++
				}
			}
			return false
		}
		for i := range 60 {
			r := rng.IntN(3)
			text := fmt.Sprintf("message %d", i)
			data := append([]byte(text), bytes.Repeat([]byte(" "), rng.IntN(300))...)
			if err := g.machine(r).Write(data, 0); err != nil {
				t.Fatal(err)
			}
			to := (r + 1 + rng.IntN(2)) % 3
			if err := g.machine(r).SendDirect(protocol.Rank(to), []byte("to you: "), data, nil); err != nil {
				t.Fatal(err)
			}
			want[fmt.Sprint((r+1)%3, text)]++
			want[fmt.Sprint((r+2)%3, text)]++
			want[fmt.Sprint(to, "to you: "+text)]++
			g.run(10*ms, trouble)
		}
		all := func() bool {
			trouble()
			return fmt.Sprint(got) == fmt.Sprint(want)
		}
		if !g.run(30_000*ms, all) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
		if g.filled[directFrame] == 0 || g.filled[dataFrame] == 0 {
			t.Errorf("frames that were read to where they stay: %v", g.filled)
		}
	}
}

// What a full queue has refused is sent as soon as there is room.
func TestRefusedFramesAreSentAgain(t *testing.T) {
	for first, send := range map[byte]func(*Machine) error{
		directFrame: func(m *Machine) error { return m.SendDirect(1, nil, []byte("to you"), nil) },
		dataFrame:   func(m *Machine) error { return m.Write([]byte("to all"), 0) },
	} {
		m, _ := alone(t, 2, 0, nil)
		m.Up(1, 1)
		contacted(m, 1)
		if err := send(m); err != nil {
			t.Fatal(err)
		}
		sent := func() (n int) {
			for _, head, _, ok := m.Next(2); ok && n < 10; _, head, _, ok = m.Next(2) {
				if head[0] == first {
					n++
					m.SendFailed(2, true)
				}
			}
			return n
		}
		before := sent()
		if again := sent(); before != 1 || again > 0 {
			t.Errorf("%#x: it is sent %d times, and %d times to a full queue", first, before, again)
		}
		m.Writable(2, 1)
		if sent() == 0 {
			t.Errorf("%#x: it is not sent again", first)
		}
	}
}

// A member that is removed knows it.
func TestRemovedMemberEnds(t *testing.T) {
	m, _ := alone(t, 3, 0, nil)
	m.Removed(1, 1, nil)
	if s, _ := m.State(); s != membership.Active {
		t.Errorf("a view that is not later removes it: %v", s)
	}
	m.Removed(1, 2, nil)
	if s, _ := m.State(); s != membership.Evicted {
		t.Errorf("it is %v", s)
	}
}

// A program writes to topics and receives from them, gives up messages, and marks some.
func TestProgramUsesTopics(t *testing.T) {
	g := newGroup(t, 2, false)
	from, to := g.machine(0), g.machine(1)
	one, other := to.Subscribe("x"), to.Subscribe("y")
	to.Unsubscribe(g.now, to.Subscribe("x"))
	from.Trace()
	for i := range 3 {
		if err := from.WriteLabeled(stream.Label{Topic: "x"}, []byte{byte(i)}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := from.Write([]byte("given up"), 10); err != nil {
		t.Fatal(err)
	}
	from.Abandon()
	if err := from.Write([]byte("z"), 0); err != nil {
		t.Fatal(err)
	}
	from.FlushBatch()
	g.run(500*ms, nil)
	upTo := from.Poll(g.now)
	if !g.run(500*ms, func() bool { return from.Stream().Stable() >= upTo }) || upTo == 0 {
		t.Errorf("not all of %d is stable", upTo)
	}
	var got []byte
	if m, ok := to.DeliverTopic(g.now, one); ok {
		got = append(got, m.Data...)
	}
	to.DeliverTopicEach(g.now, one, 5, func(m *stream.Message) { got = append(got, m.Data...) })
	to.DeliverTopicEach(g.now, other, 5, func(m *stream.Message) { got = append(got, m.Data...) })
	to.DeliverEach(g.now, 5, func(m *stream.Message) { got = append(got, m.Data...) })
	if want := []byte{0, 1, 2, 'z'}; !bytes.Equal(got, want) || to.Stream().Undelivered() > 0 ||
		len(to.Stream().Arrivals()) != 1 {
		t.Errorf("got %q, want %q; %d wait, or no arrival", got, want, to.Stream().Undelivered())
	}
}

// A member waits for the messages that the cut of the next view has, and tells the view change when
// they are here; also if it is the last one that has them.
func TestViewWaitsForMessages(t *testing.T) {
	g := newGroup(t, 4, false)
	g.run(500*ms, nil)
	dead := g.machine(3)
	if err := dead.Write(bytes.Repeat([]byte("last words "), 30), 0); err != nil {
		t.Fatal(err)
	}
	dead.FlushBatch()
	for to, head, body, ok := dead.Next(g.now); ok; to, head, body, ok = dead.Next(g.now) {
		if frame := append(bytes.Clone(head), body...); to == 1 && frame[0] < viewFrame {
			if err := g.take(g.roles[1], 3, frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.roles[3] = nil
	has := func(r int) (n int) {
		for m, ok := g.machine(r).Deliver(g.now); ok; m, ok = g.machine(r).Deliver(g.now) {
			if !m.Begins {
				n += len(m.Data)
			}
		}
		return n
	}
	want := has(1)
	g.suspectAll(3)
	if want == 0 || !g.run(5000*ms, func() bool { return g.number(0) == 2 && g.number(1) == 2 && g.number(2) == 2 }) {
		t.Fatalf("no view without the dead one, or rank 1 has %d bytes", want)
	}
	for r := range 3 {
		if m := g.machine(r); m.Stuck() || m.flushing || r != 1 && has(r) != want {
			t.Errorf("rank %d is stuck: %t, flushes: %t", r, m.Stuck(), m.flushing)
		}
	}
}

// A member that was frozen for a view is stuck until it thaws.
func TestThawedMemberGoesOn(t *testing.T) {
	g := newGroup(t, 2, false)
	m := g.machine(0)
	m.Freeze()
	m.Flush(nil)
	if !m.Stuck() || !m.flushing {
		t.Error("a frozen member goes on")
	}
	m.Thaw()
	if m.Stuck() || m.flushing {
		t.Error("it is stuck although no view comes")
	}
}

// Whatever a member is asked for or told, the membership protocol gets to act in the same step, and
// the driver is told to look at the state after it. Messages tell it nothing.
func TestRequestsAreSeen(t *testing.T) {
	g := newGroup(t, 3, true)
	g.run(500*ms, nil)
	_, frame, _, ok := g.machine(1).Next(g.now)
	for g.roles[1].Up(g.now, 0); !ok || frame[0] != viewFrame; _, frame, _, ok = g.machine(1).Next(g.now) {
	}
	frame = bytes.Clone(frame)
	for name, do := range map[string]func(m *Machine, now protocol.Time){
		"":         func(m *Machine, now protocol.Time) { m.Poll(now) },
		"a force":  func(m *Machine, now protocol.Time) { _ = m.ForceView(now, []protocol.Rank{0, 1}) },
		"a raise":  func(m *Machine, now protocol.Time) { _ = m.RaiseVersion(now, 5) },
		"removal":  func(m *Machine, now protocol.Time) { m.Removed(now, 9, nil) },
		"a meta":   func(m *Machine, now protocol.Time) { _ = m.SetMeta(now, "x") },
		"synced":   func(m *Machine, now protocol.Time) { m.SetSynced(now) },
		"a leave":  func(m *Machine, now protocol.Time) { m.Leave(now) },
		"a join":   func(m *Machine, now protocol.Time) { m.Join(now, membership.Member{}, false, func(JoinAnswer) {}) },
		"a report": func(m *Machine, now protocol.Time) { m.Report(now, Report{Rank: 1, Incarnation: FirstIncarnation}) },
		"a peer":   func(m *Machine, now protocol.Time) { m.Up(now, 1) },
		"a save":   func(m *Machine, now protocol.Time) { m.Saved(now, nil) },
		"a frame":  func(m *Machine, now protocol.Time) { _ = m.Receive(now, 1, frame) },
	} {
		g := newGroup(t, 3, true)
		g.run(500*ms, nil)
		m, told := g.machine(0), 0
		m.Settle(g.now)
		m.config.OnState = func() { told++ }
		m.Settle(g.now)
		do(m, g.now)
		if m.acts != (name != "") {
			t.Errorf("%q: the membership protocol acts: %t", name, m.acts)
		}
		m.Settle(g.now)
		m.Settle(g.now)
		if told != 1 && name != "" || told > 0 && name == "" {
			t.Errorf("%q: the driver is told %d times", name, told)
		}
	}
}

// A voter that is left out of a view says why, one that is refused asks again, and one may be forced.
func TestRestartedVoterThatIsNotAdmitted(t *testing.T) {
	voterOf := func(g *testGroup) *RestartedVoter {
		place, err := membership.DecodeSavedVote(g.disks[2])
		if err != nil {
			t.Fatal(err)
		}
		candidate := g.members[2]
		candidate.Nonce = 777
		voter, err := NewRestartedVoter(RestartedVoterConfig{
			Saved: place, Candidate: candidate, Heartbeat: heartbeat.Config{Interval: 300 * ms},
			Save: func(state []byte, _ bool) { g.save(2, state) }, OnView: func(*membership.View) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		g.roles[2] = voter
		voter.Start(g.now)
		g.connect()
		return voter
	}
	g := newGroup(t, 3, true)
	g.run(500*ms, nil)
	voter := voterOf(g)
	g.roles[0], g.roles[1] = nil, nil
	for range 3 { // nobody answers: the request ends, and is made again
		if g.run(25_000*ms, func() bool { a, err := voter.Outcome(); return a != nil || err != nil }) {
			t.Fatal("a voter without a quorum has an outcome")
		}
	}
	voter.Report(g.now, Report{Rank: 0, Incarnation: FirstIncarnation})
	voter.Report(g.now, Report{Rank: 1, Incarnation: FirstIncarnation})
	if _, _, ok := voter.Quorum(); ok {
		t.Error("a voter alone has a quorum")
	}
	if err := voter.ForceView(g.now, []protocol.Rank{2}); err != nil {
		t.Fatal(err)
	}
	if !g.run(10_000*ms, func() bool { a, _ := voter.Outcome(); return a != nil }) {
		t.Error("a forced view does not admit the process")
	}
	g = newGroup(t, 3, true)
	g.run(500*ms, nil)
	disk := bytes.Clone(g.disks[2])
	g.roles[2] = nil
	g.suspectAll(2)
	if !g.run(5000*ms, func() bool { return g.number(0) == 2 && g.number(1) == 2 }) {
		t.Fatal("no view without the dead one")
	}
	g.disks[2] = disk
	voter = voterOf(g)
	if !g.run(10_000*ms, func() bool { _, err := voter.Outcome(); return err != nil }) {
		t.Error("a voter that was left out does not know it")
	}
}
