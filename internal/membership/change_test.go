package membership

import (
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
	m.suspicions.own = []suspect{{3, 1}}
	m.suspicions.reported = []reported{
		{report{2, []suspect{{3, 1}, {4, 1}}}, 2, 2},
		{report{2, []suspect{{4, 1}}}, 3, 2},
		{report{1, []suspect{{4, 1}}}, 1, 1},
	}
	m.tick(1)
	got := m.Accusers()
	if len(got) != 2 || len(got[3]) != 2 || got[3][0] != 2 || got[3][1] != 0 || len(got[4]) != 1 || got[4][0] != 2 {
		t.Errorf("%v", got)
	}
}
