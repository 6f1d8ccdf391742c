package membership

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// joinerAlone is a group of two whose coordinator has let a third one in, and has died
// before the second learned it.
func joinerAlone(t *testing.T) (n *network, behind, joiner *host) {
	t.Helper()
	n = newNetwork(t, 2, 1, nil)
	first, behind := n.hosts[0], n.hosts[1]
	n.blocked = func(_, to *host) bool { return to == behind && first.m.view.Number > 1 }
	joiner = n.join("newcomer", "")
	if !n.run(10*time.Second, joiner.live) {
		t.Fatal(n.situation())
	}
	n.kill(0)
	n.suspectAll(0)
	n.run(5*time.Second, nil)
	if state, _ := behind.m.State(); state != NoQuorum || behind.m.view.Number != 1 {
		t.Fatalf("%v in %v: the test tests nothing", state, &behind.m.view)
	}
	return n, behind, joiner
}

// A joiner may be the only one that knows the view. A member that gets the decision from
// it makes a quorum with it.
func TestJoinerPassesTheDecisionOn(t *testing.T) {
	n, behind, joiner := joinerAlone(t)
	d, err := DecodeDecisions(joiner.m.Decisions().Encode(nil))
	if err != nil || !reflect.DeepEqual(d, joiner.m.Decisions()) {
		t.Fatalf("%v, %v", d, err)
	}
	text, err := d.MarshalText()
	var again Decisions
	if err != nil || again.UnmarshalText(text) != nil || !reflect.DeepEqual(d, again) ||
		again.UnmarshalText([]byte("?")) == nil {
		t.Errorf("as text: %v, %v", again, err)
	}
	n.blocked = nil
	if err := behind.m.Learn(n.now, d); err != nil {
		t.Fatal(err)
	}
	n.pump(behind)
	if !n.run(20*time.Second, func() bool { return behind.m.view.Number == 3 && joiner.m.view.Number == 3 }) {
		t.Fatal(n.situation())
	}
}

// A member that waits for messages which nobody has any more ends when it learns that the
// others have gone on without it.
func TestMemberThatCannotFlushLearnsThatItIsRemoved(t *testing.T) {
	n, behind, joiner := joinerAlone(t)
	admission := *joiner.m.history[len(joiner.m.history)-1]
	admission.cut = []Position{{Root: 0, Incarnation: 1, Next: 9, Holder: 0}}
	self, _ := joiner.m.view.index(behind.self.Rank)
	removal := value{number: 3, slots: joiner.m.view.Slots, removed: newSet(joiner.m.view.Members.Len())}
	removal.removed.add(self)
	if err := behind.m.Learn(n.now, Decisions{[]*value{&admission, &removal}}); err != nil {
		t.Fatal(err)
	}
	if state, err := behind.m.State(); state != Evicted || behind.m.view.Number != 1 {
		t.Fatalf("%v in %v: %v", state, &behind.m.view, err)
	}
}

// A member that still waits for messages of a view keeps the decision after it, and installs both
// views when the messages are here.
func TestDecisionAfterTheNextIsKept(t *testing.T) {
	v := firstView(3)
	self := *v.Members.At(2)
	log := newTestLog(self, v)
	m, err := New(Config{Self: self, View: v, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	joiner := func(number uint64) []Member {
		return []Member{{
			Rank: protocol.Rank(number) + 1, Identity: fmt.Sprint("j", number), Address: "x",
			Incarnation: number, Nonce: number,
		}}
	}
	if err := m.Learn(1, Decisions{[]*value{
		{
			number: 2, slots: 4, removed: newSet(3), added: joiner(2),
			cut: []Position{{Root: 0, Incarnation: 1, Next: 1, Holder: 0}},
		},
		{number: 3, slots: 5, removed: newSet(4), added: joiner(3)},
	}}); err != nil {
		t.Fatal(err)
	}
	if state, err := m.State(); state == Evicted || m.view.Number != 1 {
		t.Fatalf("%v in %v, without the messages: %v", state, &m.view, err)
	}
	log.receive(0, datum{view: 1, root: 0, incarnation: 1})
	m.LogFlushed(2)
	if m.view.Number != 3 || len(log.record) != 2 {
		t.Errorf("%d views are installed, the last %v", len(log.record), &m.view)
	}
}

// Decisions are some in a row, and the last ones if they are long.
func TestDecisionsAreBounded(t *testing.T) {
	var d Decisions
	for number := range uint64(savedCommits) {
		v := &value{number: number + 2, slots: 1, removed: newSet(1)}
		for i := range protocol.Rank(decisionBytes / 100) {
			v.cut = append(v.cut, Position{Root: i, Incarnation: 1, Next: 1})
		}
		d.values = append(d.values, v)
	}
	b := d.Encode(nil)
	got, err := DecodeDecisions(b)
	if err != nil || len(b) > decisionBytes+4 || len(got.values) == 0 ||
		got.values[len(got.values)-1].number != savedCommits+1 {
		t.Errorf("%d bytes: %d decisions, %v", len(b), len(got.values), err)
	}
	fill := &value{number: 3, slots: 1, removed: newSet(1), changed: []Member{{Identity: "x"}}}
	rest := decisionBytes - len(appendValue(nil, d.values[0])) - len(appendValue(nil, fill))
	fill.cut = make([]Position, rest/positionBytes)
	for i := range fill.cut {
		fill.cut[i] = Position{Root: protocol.Rank(i), Incarnation: 1, Next: 1}
	}
	fill.changed[0].Meta = strings.Repeat("x", rest%positionBytes)
	for longer, want := range []int{2, 1} {
		fill.changed[0].Meta += strings.Repeat("y", longer)
		if got, err := DecodeDecisions((Decisions{[]*value{d.values[0], fill}}).Encode(nil)); err != nil ||
			len(got.values) != want {
			t.Errorf("%d more than fits: %d decisions, %v", longer, len(got.values), err)
		}
	}
	gap := Decisions{[]*value{{number: 2, slots: 1}, {number: 4, slots: 1}}}
	if _, err := DecodeDecisions(gap.Encode(nil)); err == nil {
		t.Error("decisions with a gap are accepted")
	}
}

// Decisions tell the members that they have added, one after another.
func TestMembersThatDecisionsAdd(t *testing.T) {
	d := Decisions{[]*value{{added: []Member{{Rank: 1}, {Rank: 2}}}, {}, {added: []Member{{Rank: 3}}}}}
	var all []protocol.Rank
	for m := range d.Added() {
		all = append(all, m.Rank)
	}
	if !slices.Equal(all, []protocol.Rank{1, 2, 3}) {
		t.Errorf("%v", all)
	}
	for m := range d.Added() {
		if m.Rank != 1 {
			t.Errorf("rank %d after the end", m.Rank)
		}
		break
	}
}
