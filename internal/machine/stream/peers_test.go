package stream

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// What a member does when the transport reports something about a peer.

// middle is rank 4 of nine, which has one segment of root 0.
func middle(t *testing.T) (*Member, *flow) {
	t.Helper()
	m, f := behind(t, 0)
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	drain(m, 1)
	return m, f
}

// offeredTo returns the ranks that a member makes offers to now, in order.
func offeredTo(m *Member, now protocol.Time) (to []protocol.Rank) {
	for _, s := range drain(m, now) {
		if f, err := parse(s.frame); err == nil && f.kind == offer {
			to = append(to, s.to)
		}
	}
	return to
}

// An offer to a peer that is down goes on to the next one out on that side, unless it was a try of
// a neighbor that is down, or the peer is no member. The neighbor is tried again later.
func TestOfferGoesPastAPeerThatIsDown(t *testing.T) {
	for _, c := range []struct {
		what    string
		last    send
		further []protocol.Rank
	}{
		{"to the left", send{to: 3, kind: offer}, []protocol.Rank{2}},
		{"to the right", send{to: 5, kind: offer}, []protocol.Rank{6}},
		{"past two", send{to: 6, kind: offer}, []protocol.Rank{7}},
		{"as far as half of the ring", send{to: 8, kind: offer}, nil},
		{"a try", send{to: 3, kind: offer, retry: true}, nil},
		{"a segment", send{to: 3, kind: data}, nil},
		{"to no member", send{to: 20, kind: offer}, nil},
		{"to the member itself", send{to: 4, kind: offer}, nil},
	} {
		m, f := middle(t)
		m.lastSent = c.last
		m.lastSent.flow = f
		m.SendFailed(1, false)
		if !m.down[c.last.to] || m.retryDue != 1+retryInterval || m.Deadline() > m.retryDue {
			t.Errorf("%s: down: %t, tried again at %d", c.what, m.down[c.last.to], m.retryDue)
		}
		if got := offeredTo(m, 1); !slices.Equal(got, c.further) {
			t.Errorf("%s: offered to %v, want %v", c.what, got, c.further)
		}
	}
}

// A correction that awaits an answer of a peer that is down goes on at once. One that does not run
// makes no offer for it.
func TestCorrectionDoesNotWaitForThoseThatAreDown(t *testing.T) {
	for _, running := range []bool{true, false} {
		m, f := middle(t)
		for running && f.correction.rightwardOffers == 0 {
			drain(m, m.Deadline())
		}
		due := f.correction.due
		m.lastSent = send{to: 5, kind: offer, flow: f, rightward: true}
		m.SendFailed(2, false)
		if running != (f.correction.due == 2) || !running && f.correction.due != due || m.Deadline() > f.correction.due {
			t.Errorf("running: %t; it goes on at %d, after %d", running, f.correction.due, due)
		}
	}
}

// Neighbors that are down are tried each second: as many as are down next to each other on a side,
// up to a distance. When none is down any more, the tries end.
func TestTriesOfNeighborsThatAreDown(t *testing.T) {
	for _, c := range []struct {
		size    protocol.Rank
		down    []protocol.Rank
		offered []protocol.Rank
	}{
		{16, nil, nil},
		{16, []protocol.Rank{3}, []protocol.Rank{3}},
		{16, []protocol.Rank{2}, nil},
		{16, []protocol.Rank{5, 6, 3, 2, 8}, []protocol.Rank{3, 2, 5, 6}},
		{16, []protocol.Rank{5, 6, 7, 8, 9}, []protocol.Rank{5, 6, 7, 8}},
		{6, []protocol.Rank{5, 0, 1, 2, 3}, []protocol.Rank{3, 2, 1, 5, 0, 1}},
	} {
		m := group(t, Config{}, c.size)[4]
		if c.down != nil {
			m.scheduleRetry(1)
		}
		for _, peer := range c.down {
			m.setDown(peer, true)
		}
		if got := offeredTo(m, retryInterval); got != nil {
			t.Errorf("%v are offered something before a second is over", got)
		}
		if got := offeredTo(m, 1+retryInterval); !slices.Equal(got, c.offered) {
			t.Errorf("%d members, %v down: %v are tried, want %v", c.size, c.down, got, c.offered)
		}
		want := protocol.Never
		if c.offered != nil {
			want = 1 + 2*retryInterval
		}
		if m.retryDue != want {
			t.Errorf("%v down: the next try is at %d, want %d", c.down, m.retryDue, want)
		}
	}
}

// With its connection, what waits for a peer is gone: it asks for that when it is back. Nothing is
// sent to it again in the middle.
func TestNothingWaitsForAPeerThatIsDown(t *testing.T) {
	m, f := middle(t)
	m.startBacklog(1, send{to: 5, kind: data, flow: f, encoded: make([]byte, 100)})
	m.noteMissed(5, f)
	if s := m.PeerStates(1)[5]; s.Backlog != 100+segmentCost {
		t.Errorf("%+v", s)
	}
	m.Down(1, 5)
	if s := m.PeerStates(1)[5]; s.Backlog != 0 {
		t.Errorf("down: %+v", s)
	}
	offeredTo(m, 1)
	m.Writable(1, 5)
	if offeredTo(m, 1) != nil {
		t.Error("it is offered what it had missed before")
	}
	m.setStalled(5, true)
	m.noteMissed(5, f)
	m.Up(1, 5)
	if m.down[5] || m.PeerStates(1)[5].Stalled || m.missed[5] != nil {
		t.Errorf("it is back: down %t, %+v", m.down[5], m.PeerStates(1)[5])
	}
	if got := offeredTo(m, 1); !slices.Equal(got, []protocol.Rank{5}) {
		t.Errorf("%v are offered the stream", got)
	}
	f.fedAt = 1
	m.Up(1, 5)
	if f.fedAt != 1 {
		t.Error("a tree whose parent was not away does not go on")
	}
	m.Up(1, f.parent)
	if f.fedAt != 0 {
		t.Error("what a parent has sent before may be lost, and it is waited for")
	}
}

// Down of a neighbor takes the offers of all streams that are scheduled to the next one out.
func TestOffersPassANeighborThatGoesDown(t *testing.T) {
	for _, c := range []struct {
		peer    protocol.Rank
		running bool
		asked   int
		want    []protocol.Rank
	}{
		{3, false, 0, []protocol.Rank{2}},
		{5, false, 0, []protocol.Rank{6}},
		{5, true, 0, []protocol.Rank{6}},
		{5, false, 1, []protocol.Rank{6}}, // of the correction before
		{6, false, 0, nil},
		{20, false, 0, nil},
		{4, false, 0, nil},
	} {
		m, f := middle(t)
		if c.running {
			m.beginCorrection(1, f)
			f.correction.due = 1000 * millisecond
		}
		f.correction.rightwardOffers = c.asked
		m.Down(1, c.peer)
		if member := c.peer < 9 && c.peer != 4; m.down[c.peer] != member ||
			(m.retryDue != protocol.Never) != (c.want != nil) {
			t.Errorf("%d is down: %t, and tried again at %d", c.peer, m.down[c.peer], m.retryDue)
		}
		if got := offeredTo(m, 1); !slices.Equal(got, c.want) {
			t.Errorf("%d is down: offered to %v, want %v", c.peer, got, c.want)
		}
	}
}

// What is known of a process ends with the view that it is not in: another process at its rank is
// fed as any member.
func TestSuccessorIsFed(t *testing.T) {
	for what, trouble := range map[string]func(*Member){
		"down":    func(m *Member) { m.setDown(1, true) },
		"stalled": func(m *Member) { m.setStalled(1, true) },
		"a backlog": func(m *Member) {
			m.startBacklog(1, send{to: 1, kind: data, flow: m.own.flow, encoded: make([]byte, 2*m.config.KeepBytes)})
		},
		"missed something": func(m *Member) { m.noteMissed(1, m.own.flow) },
	} {
		m := group(t, Config{KeepBytes: 1000}, 3)[0]
		trouble(m)
		if what != "missed something" && slices.Contains(m.own.flow.children, 1) {
			t.Errorf("%s: it is fed", what)
		}
		for i, members := range []MemberList{{{0, 1}, {2, 1}}, {{0, 1}, {1, 2}, {2, 1}}} {
			m.Flush(1, m.Freeze())
			if err := m.Install(1, uint64(2+i), 3, members); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Contains(m.own.flow.children, 1) || len(m.missed) > 0 || len(m.PeerStates(1)) > 0 {
			t.Errorf("%s: of its successor, %+v; children %v", what, m.PeerStates(1), m.own.flow.children)
		}
	}
}

// Only frames that carry segments or offers are missed when a queue is full. A segment along the
// tree waits for room.
func TestWhatAFullQueueMisses(t *testing.T) {
	for k, want := range map[kind]struct{ missed, waits bool }{
		data: {waits: true}, offer: {missed: true}, repair: {missed: true}, request: {}, poll: {}, ack: {}, grantCredit: {},
	} {
		m, f := middle(t)
		m.lastSent = send{to: 5, kind: k, flow: f, encoded: make([]byte, 10)}
		m.SendFailed(1, true)
		if missed, waits := len(m.missed[5]) > 0, m.hasBacklog(5, f); missed != want.missed || waits != want.waits ||
			m.down[5] {
			t.Errorf("kind %d: missed %t, waits %t, down %t", k, missed, waits, m.down[5])
		}
	}
}

// A member whose neighbors have all died at once sends each of them some offers. An offer to a neighbor
// that is down already is not repeated further out when it fails: one was sent there.
func TestOffersPastManyDeadNeighborsAreFew(t *testing.T) {
	m := group(t, Config{}, 64)[32]
	receiveFrom(t, m, 1, 0, 0, 0, 10)
	offers := 0
	for now := protocol.Time(1); now < second; now = max(now+1, m.Deadline()) {
		for {
			if _, _, _, ok := m.Next(now); !ok {
				break
			}
			offers++
			m.SendFailed(now, false)
		}
		if offers > 1000 {
			break
		}
	}
	if offers < maxOfferDistance || offers > 1000 {
		t.Errorf("%d frames in a second, to 63 neighbors that are down", offers)
	}
}
