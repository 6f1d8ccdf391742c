package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Acknowledgments, and what a member tells of itself and of others.

// answerTo gives a member a frame about a stream of the first incarnation, in its view.
func answerTo(t *testing.T, m *Member, now protocol.Time, from protocol.Rank, f frame) {
	t.Helper()
	f.incarnation, f.view = 1, m.view
	if err := m.Receive(now, from, f.append(nil)); err != nil {
		t.Fatal(err)
	}
}

// A member acknowledges when it has everything that it was polled for, also if that arrives after
// the poll, and when all below it have acknowledged. It does so once, and again if polled again.
func TestAcknowledgmentFollowsTheLastSegment(t *testing.T) {
	m := group(t, Config{}, 4)[1]
	acks := func() (up, down int) {
		for _, s := range drain(m, 1) {
			switch f, _ := parse(s.frame); {
			case f.kind == ack && s.to == 0 && f.first == 1:
				up++
			case f.kind == poll && s.to == 3:
				down++
			}
		}
		return up, down
	}
	answerTo(t, m, 1, 0, frame{kind: poll, first: 1})
	if up, down := acks(); up != 0 || down != 1 {
		t.Errorf("polled before it has anything: %d acknowledgments, %d polls below", up, down)
	}
	answerTo(t, m, 1, 3, frame{kind: ack, first: 1})
	if up, _ := acks(); up != 0 {
		t.Error("it acknowledges what it does not have")
	}
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	if up, _ := acks(); up != 1 {
		t.Errorf("%d acknowledgments of the last segment", up)
	}
	answerTo(t, m, 1, 0, frame{kind: poll, first: 1})
	if up, down := acks(); up != 1 || down != 0 {
		t.Errorf("polled again: %d acknowledgments, %d polls below", up, down)
	}
}

// A member acknowledges to a root of its own view only. While it is frozen, it acknowledges what it
// had before.
func TestWhenAMemberAcknowledges(t *testing.T) {
	for _, c := range []struct {
		what   string
		view   uint64
		frozen bool // after the first of two segments
		upTo   uint64
		want   int
	}{
		{"all", 1, false, 2, 1},
		{"of the next view", 2, false, 2, 0},
		{"frozen, what came before", 1, true, 1, 1},
		{"frozen, what came since", 1, true, 2, 0},
	} {
		m := group(t, Config{}, 2)[1]
		receiveFrom(t, m, 1, 0, 0, 0, 10)
		if c.frozen {
			m.Freeze()
		}
		receiveFrom(t, m, 1, 0, 1, 0, 10)
		drain(m, 1)
		f := frame{kind: poll, incarnation: 1, first: c.upTo, view: c.view}
		if err := m.Receive(1, 0, f.append(nil)); err != nil {
			t.Fatal(err)
		}
		kinds := map[kind]int{}
		for _, s := range drain(m, 1) {
			kinds[kind(s.frame[0])]++
		}
		if kinds[ack] != c.want || kinds[grantCredit] != 1 {
			t.Errorf("%s: %d acknowledgments, %d credits", c.what, kinds[ack], kinds[grantCredit])
		}
	}
}

// A poll that is not answered is repeated after twice the time, up to a limit, to those that have
// not answered. When all have, it ends.
func TestPollsAreRepeated(t *testing.T) {
	m := group(t, Config{}, 3)[0]
	if err := m.Write([]byte("message"), 0); err != nil {
		t.Fatal(err)
	}
	drain(m, 1)
	upTo := m.Poll(1)
	if m.Poll(1) != upTo {
		t.Error("another poll of the same is another one")
	}
	answerTo(t, m, 1, 1, frame{kind: ack, first: upTo})
	if got := m.Unanswered(); !slices.Equal(got, []protocol.Rank{2}) {
		t.Errorf("%v have not answered", got)
	}
	if n := sentOf(m, 1, poll); n != 2 {
		t.Errorf("%d polls of two members", n)
	}
	sent, at := runTo(m, 1, 10_000*millisecond)
	last, wait := protocol.Time(1), minPollInterval
	polls := 0
	for i, s := range sent {
		if kind(s.frame[0]) != poll || at[i] == 1 {
			continue
		}
		polls++
		if s.to != 2 || at[i]-last != wait {
			t.Errorf("rank %d is polled after %d ms, want %d", s.to, (at[i]-last)/millisecond, wait/millisecond)
		}
		last, wait = at[i], min(2*wait, maxPollInterval)
	}
	if polls < 10 || !m.stalled[2] || m.stalled[1] {
		t.Errorf("%d polls; stalled: %v", polls, m.stalled)
	}
	answerTo(t, m, last, 2, frame{kind: ack, first: upTo})
	drain(m, m.own.pollDue)
	if m.own.pollDue != protocol.Never || m.Stable() != upTo || m.Unanswered() != nil && len(m.Unanswered()) > 0 {
		t.Errorf("stable up to %d of %d, polled at %d", m.Stable(), upTo, m.own.pollDue)
	}
}

// A view asks once more for what is not acknowledged yet, and only for its own stream: what other
// roots have asked of this member is their affair.
func TestNewViewPollsAgain(t *testing.T) {
	for _, asked := range []bool{true, false} {
		m := group(t, Config{}, 2)[1]
		if err := m.Write([]byte("message"), 0); err != nil {
			t.Fatal(err)
		}
		drain(m, 1)
		if asked {
			m.Poll(1)
		}
		answerTo(t, m, 1, 0, frame{kind: poll, first: 5}) // for more than is here
		m.handleLoss(0)
		drain(m, 1)
		m.Flush(1, m.Freeze())
		if err := m.Install(1, 2, 2, m.roster.members); err != nil {
			t.Fatal(err)
		}
		polls := 0
		for _, s := range drain(m, 1) {
			if f, _ := parse(s.frame); f.kind == poll && f.root == 1 {
				polls++
			}
		}
		if want := map[bool]int{true: 1}[asked]; polls != want || len(m.Incomplete()) > 0 {
			t.Errorf("asked before: %t; %d polls, incomplete %v", asked, polls, m.Incomplete())
		}
	}
}

// Members that have lost something are told once each, in order, and only members.
func TestIncompleteMembersAreListedOnce(t *testing.T) {
	m := group(t, Config{}, 5)[0]
	for _, r := range []protocol.Rank{3, 1, 3, 9, 4, 1} {
		answerTo(t, m, 1, r, frame{kind: trimmed, first: 1})
	}
	if got := m.Incomplete(); !slices.Equal(got, []protocol.Rank{1, 3, 4}) {
		t.Errorf("%v", got)
	}
}

// A member knows what it has received of each stream of its view, and of those that ended with it.
func TestReceivedOfStreams(t *testing.T) {
	m := group(t, Config{}, 4)[3]
	for r := range protocol.Rank(3) {
		for number := range uint64(r) + 1 {
			receiveFrom(t, m, 1, r, number, 0, 10)
		}
	}
	m.flows[2].lost = 1
	m.Flush(1, m.Freeze())
	if err := m.Install(1, 2, 4, MemberList{{0, 2}, {2, 1}, {3, 1}}); err != nil {
		t.Fatal(err)
	}
	for root, want := range map[MemberID]struct {
		before    uint64
		whole, ok bool
	}{
		{0, 1}: {1, true, true},
		{1, 1}: {2, true, true},
		{2, 1}: {3, false, true},
		{0, 2}: {},
		{1, 2}: {},
		{2, 2}: {},
	} {
		if before, whole, ok := m.Received(root); before != want.before || whole != want.whole || ok != want.ok {
			t.Errorf("%v: before %d, whole %t, %t", root, before, whole, ok)
		}
	}
	// Requests for what has ended are answered, of the right stream.
	for root, want := range map[MemberID]int{{0, 1}: 1, {1, 1}: 2, {1, 2}: 0} {
		f := frame{kind: request, root: root.Rank, incarnation: root.Incarnation, last: 9}
		if err := m.Receive(1, 2, f.append(nil)); err != nil {
			t.Fatal(err)
		}
		if n := sentOf(m, 1, repair); n != want {
			t.Errorf("%v: %d repairs", root, n)
		}
	}
}

// What people see of peers: nothing of those that owe nothing, the lag of those that this member
// feeds and of those that have stalled, and what waits.
func TestStatesOfPeers(t *testing.T) {
	m := group(t, Config{}, 8)[0]
	if got := m.PeerStates(1); len(got) > 0 {
		t.Errorf("%v", got)
	}
	receiveFrom(t, m, 1, 5, 0, 0, 10)
	if got := m.PeerStates(1); len(got) > 0 {
		t.Errorf("with a message of rank 5: %v", got)
	}
	for range 4 {
		if err := m.Write(make([]byte, 2000), 0); err != nil {
			t.Fatal(err)
		}
	}
	drain(m, 1)
	g := slices.Clone(m.own.flow.grantors)
	answered := 1 + lateAfter
	answerTo(t, m, answered, g[0], frame{kind: grantCredit, first: 3})
	answerTo(t, m, answered, g[1], frame{kind: grantCredit, first: 4})
	answerTo(t, m, answered, g[2], frame{kind: ack, first: 2})
	want := map[protocol.Rank]PeerState{g[0]: {Lag: 1}} // the others have it, or were not asked
	equal := func(what string) {
		t.Helper()
		got := m.PeerStates(answered)
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		for r := range want {
			if got[r] != want[r] {
				t.Errorf("%s: of rank %d, %+v, want %+v", what, r, got[r], want[r])
			}
		}
	}
	equal("after credits")
	m.own.flow.credit.pollsTo(g[0])
	m.own.flow.credit.pollsTo(7)
	m.setStalled(7, true)
	want[7] = PeerState{Lag: 4, Stalled: true}
	equal("one has stalled")
	m.setStalled(7, false)
	m.own.flow.viewStart = 3
	delete(want, 7)
	equal("a view has begun")
}
