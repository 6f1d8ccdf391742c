package logp_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// The golden files hold runs of flogsim, the simulator of the authors of
// Corrected Trees. Every row must come out here exactly as there: messages,
// coloring, quiescence, unreached processes and gap.
//
// flogsim differs from Pleach on purpose in three points, and only there does
// this test go flogsim's way to compare:
//
//  1. Its optimal tree gives the last, incomplete level to the youngest parents
//     instead of the lowest ranks (youngestTree).
//  2. Its overlapped checked correction does not cross the border between ranks
//     P−1 and 0 (broadcast.Config.Line).
//  3. Its gap is what the correcting processes saw of it: the distance at which
//     a side was finished. Where correction is synchronized that is the gap on
//     the ring; where it is overlapped it is not (seenGap), and a survivor that
//     hears from none sees -1.

// goldenRow is one run of flogsim.
type goldenRow struct {
	line       int
	collective string
	k, d, l, o int64
	size       protocol.Rank
	dead       []protocol.Rank
	want       outcome
	hasGap     bool
}

// outcome is what is compared.
type outcome struct {
	Messages, Coloring, Quiescence, Unreached, Gap int64
}

func TestAgreesWithFlogsimOnSmallGroups(t *testing.T) {
	rows := readGolden(t, "flogsim-small.csv", func(get func(string) string) ([]protocol.Rank, bool) {
		if get("failed") == "-" {
			return nil, true
		}
		return parseRanks(t, get("failed")), true
	})
	if len(rows) != 1800 {
		t.Fatalf("%d rows, not 1800", len(rows))
	}
	for _, row := range rows {
		row.check(t, row.plan(t).Group())
	}
}

func TestAgreesWithFlogsimOn65536(t *testing.T) {
	rows := readGolden(t, "flogsim-65536.csv", func(get func(string) string) ([]protocol.Rank, bool) {
		if strings.Contains(get("coll"), "gossip") {
			return nil, false // draws random numbers: compared statistically elsewhere
		}
		if get("F") == "0" {
			return nil, true
		}
		name := fmt.Sprintf("F%s_seed%s.txt", get("F"), get("seed"))
		list, err := os.ReadFile(filepath.Join("testdata", "fail-lists", name))
		if err != nil {
			t.Fatal(err)
		}
		return parseRanks(t, string(list)), true
	})
	if len(rows) != 240 {
		t.Fatalf("%d rows, not 240", len(rows))
	}
	if testutil.RaceEnabled {
		rows = rows[:8]
	}
	byConfiguration := map[string][]goldenRow{}
	for _, row := range rows {
		name := fmt.Sprintf("%s k=%d d=%d", row.collective, row.k, row.d)
		byConfiguration[name] = append(byConfiguration[name], row)
	}
	for name, rows := range byConfiguration {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := rows[0].plan(t).Group()
			for _, row := range rows {
				row.check(t, group)
			}
		})
	}
}

// check runs the row's configuration here and compares.
func (row *goldenRow) check(t *testing.T, group *broadcast.Group) {
	t.Helper()
	sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: protocol.Time(row.l), O: protocol.Time(row.o)})
	if err != nil {
		t.Fatal(err)
	}
	sim.Initiators = group.Initiators()
	seen := newSeenGap(row)
	overlapped := row.hasGap && !strings.HasPrefix(row.collective, "phased_")
	if overlapped {
		sim.Trace = seen.event
	}
	r, err := sim.Run(group.Machines(0), logp.Faults{Dead: row.dead})
	if err != nil {
		t.Fatal(err)
	}
	got := outcome{
		Messages: r.Total(), Coloring: int64(r.Coloring), Quiescence: int64(r.Quiescence),
		Unreached: int64(r.Unreached),
	}
	switch {
	case overlapped:
		got.Gap = seen.max()
	case row.hasGap && r.MaxGap == row.size-1:
		got.Gap = -1 // a lone survivor sees none
	case row.hasGap:
		got.Gap = int64(r.MaxGap)
	}
	if got != row.want {
		t.Errorf("line %d: %s k=%d d=%d L=%d o=%d P=%d dead=%v\n  here    %+v\n  flogsim %+v",
			row.line, row.collective, row.k, row.d, row.l, row.o, row.size, row.dead, got, row.want)
	}
}

// plan is the row's broadcast in Pleach's words.
func (row *goldenRow) plan(t *testing.T) *broadcast.Plan {
	t.Helper()
	l, o := protocol.Time(row.l), protocol.Time(row.o)
	tree := row.tree(t)
	c := broadcast.Config{Size: row.size, Dissemination: broadcast.Tree{Tree: tree}}
	switch name := row.collective; {
	case strings.HasPrefix(name, "phased_checked_"):
		c.Correction = broadcast.Checked{}
		c.Start, c.At = broadcast.Synchronized, topology.FinishTime(tree, l, o)
	case strings.HasPrefix(name, "checked_corrected_"):
		c.Correction, c.EarlyOnlyRelay, c.Line = broadcast.Checked{}, true, true
	case strings.HasPrefix(name, "checked_always_"):
		c.Correction, c.Line = broadcast.Checked{}, true
	case strings.HasPrefix(name, "optimized_opportunistic_"):
		c.Correction = broadcast.Optimized{Distance: protocol.Rank(row.d / 2)} // there d is both sides' total
	case strings.HasPrefix(name, "ack_"):
		c.Dissemination = broadcast.AckTree{Tree: tree}
	}
	plan, err := broadcast.NewPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func (row *goldenRow) tree(t *testing.T) topology.Tree {
	t.Helper()
	shape := topology.Binomial()
	switch {
	case strings.Contains(row.collective, "kary"):
		shape = topology.KAry(int(row.k))
	case strings.Contains(row.collective, "lame"):
		shape = topology.Lame(int(row.k))
	case strings.Contains(row.collective, "optimal"):
		return newYoungestTree(t, row.l, row.size)
	}
	tree, err := topology.New(shape, topology.Interleaved, row.size, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// youngestTree is flogsim's optimal tree for o = 1: the Lamé tree of order
// L + 2, but for its last level, which the youngest parents fill.
type youngestTree struct {
	topology.Tree               // as if the last level were complete
	size, level   protocol.Rank // the last level begins here
}

func newYoungestTree(t *testing.T, l int64, size protocol.Rank) topology.Tree {
	t.Helper()
	// Ready to send, Equation (1), counts the ranks below each level.
	ready := []protocol.Rank{}
	for i := 0; len(ready) == 0 || ready[i-1] < size; i++ {
		n := protocol.Rank(1)
		if i >= int(l)+2 {
			n = ready[i-1] + ready[i-int(l)-2]
		}
		ready = append(ready, n)
	}
	full, err := topology.New(topology.Optimal(protocol.Time(l), 1), topology.Interleaved, ready[len(ready)-1], 0)
	if err != nil {
		t.Fatal(err)
	}
	return youngestTree{Tree: full, size: size, level: ready[len(ready)-2]}
}

func (y youngestTree) Size() protocol.Rank { return y.size }

// missing is how many children the last level lacks.
func (y youngestTree) missing() protocol.Rank { return y.Tree.Size() - y.size }

func (y youngestTree) Child(r protocol.Rank, i int) (protocol.Rank, bool) {
	child, ok := y.Tree.Child(r, i)
	if !ok || child < y.level {
		return child, ok
	}
	child -= y.missing()
	return child, child >= y.level
}

func (y youngestTree) Parent(r protocol.Rank) (protocol.Rank, int) {
	if r >= y.level {
		r += y.missing()
	}
	return y.Tree.Parent(r)
}

// seenGap follows a trace and notes the distance at which each correcting
// process finished: that of the nearest senders heard from when the process was
// asked and had sent as far on both sides.
type seenGap struct {
	processes []seenProcess
	overhead  protocol.Time
	largest   int64
}

type seenProcess struct {
	sent, heard [2]protocol.Rank
	bordered    [2]bool
	turn        int
	finished    bool
	free        protocol.Time // when the send port is free
}

func newSeenGap(row *goldenRow) *seenGap {
	return &seenGap{processes: make([]seenProcess, row.size), overhead: protocol.Time(row.o), largest: -1}
}

func (g *seenGap) event(e logp.Event) {
	p := &g.processes[e.Rank]
	side, distance := 0, e.Rank-e.Peer
	if e.Peer > e.Rank {
		side, distance = 1, e.Peer-e.Rank
	}
	correction := e.Phase == protocol.Correction.String()
	switch e.What {
	case logp.Sent:
		g.settle(e.Rank)
		p.free = e.Time + g.overhead
		if correction {
			p.sent[side], p.turn = distance, 1-side
		}
	case logp.Received:
		if e.Time > p.free {
			g.settle(e.Rank) // it was asked before this came
		}
		if correction && (p.heard[side] == 0 || distance < p.heard[side]) {
			p.heard[side] = distance
		}
	}
}

// settle looks at a process that is asked now: first at the side whose turn it
// is, then, if that is finished, at the other; it notes what a process sees that
// has finished both. A side that is found at the border before it has heard
// anybody has no gap.
func (g *seenGap) settle(r protocol.Rank) {
	p := &g.processes[r]
	border := [2]protocol.Rank{r, protocol.Rank(len(g.processes)) - 1 - r}
	for _, s := range [2]int{p.turn, 1 - p.turn} {
		p.bordered[s] = p.bordered[s] || p.heard[s] == 0 && p.sent[s] == border[s]
		if !p.bordered[s] && (p.heard[s] == 0 || p.sent[s] < p.heard[s]) {
			return
		}
	}
	for s := range p.sent {
		if !p.finished && !p.bordered[s] {
			g.largest = max(g.largest, int64(p.heard[s])-1)
		}
	}
	p.finished = true
}

func (g *seenGap) max() int64 {
	for r := range g.processes {
		g.settle(protocol.Rank(r))
	}
	return g.largest
}

// readGolden reads a golden file; dead returns a row's failed ranks, or false
// to leave the row out.
func readGolden(t *testing.T, name string, dead func(get func(string) string) ([]protocol.Rank, bool)) []goldenRow {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []goldenRow
	for i, record := range records[1:] {
		get := func(column string) string {
			for j, name := range records[0] {
				if name == column {
					return record[j]
				}
			}
			return ""
		}
		first := func(columns ...string) int64 {
			for _, c := range columns {
				if n, err := strconv.ParseInt(get(c), 10, 64); err == nil {
					return n
				}
			}
			t.Fatalf("%s line %d has none of %v", name, i+2, columns)
			return 0
		}
		failed, ok := dead(get)
		if !ok {
			continue
		}
		row := goldenRow{
			line: i + 2, collective: get("coll"), k: first("k"), d: first("d"), l: 2, o: 1,
			size: protocol.Rank(first("P")), dead: failed,
		}
		if get("L") != "" {
			row.l, row.o = first("L"), first("o")
		}
		row.want = outcome{
			Messages: first("MsgTask", "messages"), Coloring: first("ColouringTime", "coloring"),
			Quiescence: first("TotalRuntime", "quiescence"), Unreached: first("UnreachedNodes", "unreached"),
		}
		if get("CorrectedGapLeft") != "" || get("gap_left") != "" {
			row.hasGap = true
			row.want.Gap = max(first("CorrectedGapLeft", "gap_left"), first("CorrectedGapRight", "gap_right"))
		}
		rows = append(rows, row)
	}
	return rows
}

func parseRanks(t *testing.T, list string) []protocol.Rank {
	t.Helper()
	var ranks []protocol.Rank
	for _, field := range strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, protocol.Rank(n))
	}
	return ranks
}
