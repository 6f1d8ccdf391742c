package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A process that has lost what it kept declines requests for what is before an end that it
// knows, and nothing else.
func TestDecline(t *testing.T) {
	end := func(root protocol.Rank, incarnation uint64) uint64 {
		if root == 3 && incarnation == 7 {
			return 20
		}
		return 0
	}
	for _, c := range []struct {
		name  string
		frame frame
		want  bool
	}{
		{"before the end", frame{kind: request, root: 3, incarnation: 7, first: 19, last: 30}, true},
		{"at the end", frame{kind: request, root: 3, incarnation: 7, first: 20, last: 30}, false},
		{"of another incarnation", frame{kind: request, root: 3, incarnation: 8, first: 1, last: 30}, false},
		{"an offer", frame{kind: offer, root: 3, incarnation: 7, first: 1}, false},
	} {
		answer, ok := Decline(c.frame.append(nil), end)
		if ok != c.want {
			t.Errorf("%s: declined %t", c.name, ok)
		}
		if !ok {
			continue
		}
		if got, err := parse(answer); err != nil || got.kind != trimmed || got.root != 3 || got.incarnation != 7 ||
			got.first != 20 {
			t.Errorf("%s: answer %+v, %v", c.name, got, err)
		}
	}
	if _, ok := Decline([]byte{1, 2}, end); ok {
		t.Error("a malformed frame is declined")
	}
}

// A frozen member gives up what the cut needs when all others have trimmed it; when some have and
// the others have been asked for long; or when none answers for longer. It gives up nothing else.
func TestFrozenMemberGivesUp(t *testing.T) {
	const next, cut, began = 5, 10, 1000
	tries := maxTries + 4*4/3
	for _, c := range []struct {
		what      string
		tries     int
		waited    protocol.Time
		repaired  protocol.Time // when the last repair of another stream has arrived, since the question
		trimmedTo uint64
		by        []protocol.Rank
		next, to  uint64 // to: 0 if nothing is given up
	}{
		{"nobody answers", tries, lossTimeout, 0, 0, nil, next, cut},
		{"nobody answers, but for repairs of other streams", tries, lossTimeout + 1, 2, 0, nil, next, 0},
		{"nobody answers after these", tries, lossTimeout + 2, 2, 0, nil, next, cut},
		{"nobody answers yet", tries, lossTimeout - 1, 0, 0, nil, next, 0},
		{"not all are asked", tries - 1, lossTimeout, 0, 0, nil, next, 0},
		{"one has trimmed a part", tries, flushTimeout, 0, 8, []protocol.Rank{2}, next, 8},
		{"one has trimmed a part, and others may answer", tries, flushTimeout - 1, 0, 8, []protocol.Rank{2}, next, 0},
		{"one has trimmed more than the cut", tries, flushTimeout, 0, cut + 2, []protocol.Rank{2}, next, cut},
		{"one has trimmed what is here", tries, lossTimeout - 1, 0, next, []protocol.Rank{2}, next, 0},
		{"one had trimmed it before a repair has come", tries, flushTimeout, 0, 8, nil, next, 0},
		{"all have trimmed it", 0, 0, 0, 8, []protocol.Rank{0, 2, 3, 4}, next, 8},
		{"not all have trimmed it", 0, 0, 0, 8, []protocol.Rank{0, 2, 3}, next, 0},
		{"the cut is reached", tries, lossTimeout, 0, 0, nil, cut, 0},
	} {
		m, err := New(Config{Rank: 1, Size: 5, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.open(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		m.frozen, f.next, f.cut, m.repairedAt = true, c.next, cut, began+c.repaired
		f.pull.asked, f.pull.tries, f.pull.trimmedTo, f.pull.trimmedBy, f.pull.trimmedReplies = began, c.tries, c.trimmedTo,
			c.by, len(c.by)
		if to, gone := m.unavailable(began+c.waited, f); gone != (c.to > 0) || gone && to != c.to {
			t.Errorf("%s: given up %t, to %d", c.what, gone, to)
		}
	}
}

// A repair that a cut needs shows that the others are not silent. One behind the cut shows nothing: a root
// that is left out of the next view may send for ever.
func TestRepairsForCutsAreNoted(t *testing.T) {
	for _, c := range []struct {
		number, cut uint64
		noted       protocol.Time
	}{{2, 3, 9}, {3, 3, 0}, {0, 0, 0}} {
		m := group(t, Config{}, 4)[1]
		f, err := m.open(0, 1)
		if err != nil {
			t.Fatal(err)
		}
		m.frozen, f.cut = true, c.cut
		answerTo(t, m, 9, 2, frame{kind: repair, first: c.number, begins: true, segment: []byte("x")})
		if m.repairedAt != c.noted {
			t.Errorf("segment %d, cut %d: noted at %d, want %d", c.number, c.cut, m.repairedAt, c.noted)
		}
	}
}

// What the left neighbor was offered may be lost with the connection: it is offered again.
func TestOffersAreForgottenWithTheConnection(t *testing.T) {
	for _, up := range []bool{true, false} {
		m, err := New(Config{Rank: 3, Size: 5, Incarnation: 1})
		if err != nil {
			t.Fatal(err)
		}
		told := func(peer protocol.Rank) uint64 {
			m.own.flow.correction.toldTo = 7
			if up {
				m.Up(1, peer)
			} else {
				m.Down(1, peer)
			}
			return m.own.flow.correction.toldTo
		}
		if told(4) != 7 || told(2) != 0 {
			t.Errorf("up %t: what the left neighbor was offered is not forgotten, or what another was", up)
		}
	}
}

// A peer is offered the streams of which it has missed something, if both are still in the view.
func TestMissedStreamsAreOffered(t *testing.T) {
	m, err := New(Config{Rank: 1, Size: 5, Incarnation: 1, View: 1, Members: MemberList{
		{Rank: 1, Incarnation: 1},
		{Rank: 2, Incarnation: 1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	m.own.flow.next = 3
	for _, c := range []struct {
		what  string
		peer  protocol.Rank
		flow  *flow
		count int
	}{
		{"a member", 2, m.own.flow, 1},
		{"a stream that has ended", 2, &flow{root: 1, incarnation: 1}, 0},
		{"a process that is no member", 3, m.own.flow, 0},
	} {
		m.noteMissed(c.peer, c.flow)
		m.noteMissed(c.peer, c.flow)
		before := m.outbox.Len()
		m.offerMissed(1, c.peer)
		m.offerMissed(1, c.peer)
		if got := m.outbox.Len() - before; got != c.count {
			t.Errorf("%s: %d offers", c.what, got)
		}
	}
}
