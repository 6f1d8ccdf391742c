package membership

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// reasonAt returns why a host's last view has removed a rank.
func (h *host) reasonAt(t *testing.T, r protocol.Rank) reason {
	t.Helper()
	v := h.m.history[len(h.m.history)-1]
	if v.removed.count() != 1 || len(v.reasons) != 1 {
		t.Fatalf("rank %d has removed %d members for %d reasons", h.self.Rank, v.removed.count(), len(v.reasons))
	}
	return v.reasons[0]
}

// Every member knows why another one is gone, whichever member has found out.
func TestReasons(t *testing.T) { bothWays(t, reasons) }

func reasons(t *testing.T, way func(*Config)) {
	const size, gone = 9, 4
	for _, c := range []struct {
		about string
		do    func(n *network)
		want  reason
	}{
		{"a detector of a member reports it", func(n *network) {
			n.kill(gone)
			n.suspect(n.hosts[7], n.hosts[gone].self)
			n.pump(n.hosts[7])
		}, reason{Suspected, 7}},
		{"that of the coordinator reports it", func(n *network) {
			n.kill(gone)
			n.suspect(n.hosts[0], n.hosts[gone].self)
			n.pump(n.hosts[0])
		}, reason{Suspected, 0}},
		{"it leaves", func(n *network) { n.leave(n.hosts[gone]) }, reason{Departed, protocol.NoRank}},
	} {
		n := newNetwork(t, size, 1, way)
		c.do(n)
		n.settle()
		for _, h := range n.hosts {
			if h.self.Rank == gone {
				continue
			}
			if got := h.reasonAt(t, gone); got != c.want {
				t.Errorf("%s: rank %d says %v, not %v", c.about, h.self.Rank, got, c.want)
			}
		}
	}
}

// Accusers tells which members suspect which, at the member that the reports go to. What
// two relays have reported counts once, and a lease that has ended does not.
func TestAccusers(t *testing.T) {
	n := newNetwork(t, 5, 1, nil)
	m := n.hosts[0].m
	m.suspicions.own = []suspect{{3, 1, 0}}
	m.suspicions.reported = []reported{
		{report{2, []suspect{{3, 1, 0}, {4, 1, 0}}}, 2, 2},
		{report{2, []suspect{{4, 1, 0}}}, 3, 2},
		{report{1, []suspect{{4, 1, 0}}}, 1, 1},
	}
	m.tick(1)
	got := m.Accusers()
	if len(got) != 2 || len(got[3]) != 2 || got[3][0] != 2 || got[3][1] != 0 || len(got[4]) != 1 || got[4][0] != 2 {
		t.Errorf("%v", got)
	}
}

// changesLog notes how views differ from those before, as it learns when they are installed.
type changesLog struct {
	forgetfulLog
	machine *Machine
	most    int // how many changes it looks at
	got     []string
}

func (l *changesLog) Install(*View) {
	for c := range l.machine.Changes {
		l.got = append(l.got, fmt.Sprint(c.Member.Identity, c.Cause, c.By))
		if len(l.got) == l.most {
			return
		}
	}
}

// A view tells how it differs from the one before while it is installed, and at no other time. A
// member without a reason in the decision has not answered, as far as is known.
func TestChangesOfAView(t *testing.T) {
	v := firstView(4)
	want := []string{
		fmt.Sprint("p1", Suspected, 3), fmt.Sprint("p2", Unresponsive, protocol.NoRank),
		fmt.Sprint("j", Joined, protocol.NoRank), fmt.Sprint("p0", Changed, protocol.NoRank),
	}
	for most := 1; most <= len(want)+1; most++ {
		log := &changesLog{most: most}
		m, err := New(Config{Self: *v.Members.At(3), View: v, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		log.machine = m
		changed := *v.Members.At(0)
		changed.Meta = "x"
		d := &value{
			number: 2, slots: 5, removed: set{0b110}, reasons: []reason{{Suspected, 3}},
			added: []Member{{Rank: 4, Identity: "j", Incarnation: 2}}, changed: []Member{changed},
		}
		if err := m.Learn(1, Decisions{[]*value{d}}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(log.got, want[:min(most, len(want))]) {
			t.Errorf("the first %d: %v, want %v", most, log.got, want)
		}
		for c := range m.Changes {
			t.Errorf("later: %v", c)
		}
	}
}
