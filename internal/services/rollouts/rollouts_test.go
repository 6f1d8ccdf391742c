package rollouts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

func sizes(t testing.TB, text string) []Size {
	t.Helper()
	s, err := ParseWaves(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// randomSpec is a rollout of a seed.
func (w *world) randomSpec(id string) Spec {
	s := Spec{
		ID: id, Payload: []byte("payload"),
		Waves:    sizes(w.t, []string{"1,30%,100%", "2,50%,100%", "100%", "1,2,3,100%"}[w.rng.IntN(4)]),
		ByDomain: w.rng.IntN(4) == 0, Timeout: 400 * millisecond, Deaths: w.rng.IntN(4) == 0,
		PauseOnFailure: w.rng.IntN(4) == 0,
	}
	if w.rng.IntN(4) > 0 {
		s.Revert = []byte("revert")
	}
	if w.rng.IntN(2) == 0 {
		s.Hold = protocol.Time(w.rng.IntN(100)) * millisecond
	}
	return s
}

// run has a group roll out under faults of a seed, and returns what was wrong, and how the
// rollouts have ended.
func run(t testing.TB, seed uint64, b bug) *world {
	w := newWorld(t, seed, 3+int(seed%6), b)
	for id := range 1 + w.rng.IntN(3) {
		members := w.members()
		bad := 0
		if w.rng.IntN(2) == 0 {
			bad = 1 + w.rng.IntN(30)
		}
		w.start(members[w.rng.IntN(len(members))], w.randomSpec(fmt.Sprint("r", id)), bad)
		for range w.rng.IntN(1500) {
			w.step()
			if w.rng.IntN(60) == 0 {
				w.fault()
			}
		}
	}
	w.finishAll()
	return w
}

// Under kills, cuts, joins and operators at random: no member gets a payload twice, no wave follows
// a failed gate, a revert reaches all members that may have the payload and no others, all members
// know the same, and every rollout ends.
func TestRolloutsUnderManyFaults(t *testing.T) {
	ends := map[string]int{}
	commands := 0
	first, n := testutil.First.Or(1), testutil.Seeds.Or(300)
	if testutil.Seed.On() {
		first, n = testutil.Seed.Or(1), 1
	}
	for seed := first; seed < first+n; seed++ {
		w := run(t, uint64(seed), noBug)
		for _, wrong := range w.wrong {
			t.Errorf("seed %d: %s", seed, wrong)
		}
		if t.Failed() {
			return
		}
		commands += len(w.log)
		for _, r := range w.truth.rollouts {
			ends[fmt.Sprint(r.Phase)]++
		}
	}
	t.Logf("%d seeds, %d commands, rollouts: %v", n, commands, ends)
	for _, p := range []Phase{Done, Stopped, Reverted} {
		if ends[string(p)] == 0 && n >= 100 {
			t.Errorf("no rollout has ended as %s", p)
		}
	}
}

// The checks find mistakes that are planted.
func TestPlantedMistakesAreFound(t *testing.T) {
	for name, b := range map[string]bug{
		"a member is deaf to the verdict":         deafToVerdict,
		"gates always pass":                       gatesPass,
		"deaths are not seen":                     blindToDeaths,
		"a process that is back begins again":     takesAgain,
		"a revert is reported before it was made": forgetsReverts,
	} {
		found := 0
		for seed := range uint64(300) {
			if w := run(t, seed, b); len(w.wrong) > 0 {
				if found == 0 {
					t.Logf("%s: seed %d: %.150s", name, seed, w.wrong[0])
				}
				found++
				if found == 3 {
					break
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: not found in 300 seeds", name)
		}
	}
}

// death is when which member dies.
type death struct {
	schedule uint64
	bad      int  // percentage of gates that fail
	kill     bool // otherwise it is cut off
	victim   int
	step     int
}

// run has a rollout go on until the death, and then to its end. It reports whether it was over
// before.
func (d *death) run(t *testing.T) (over bool) {
	w := newWorld(t, d.schedule, 3, noBug)
	w.calm = true // but for the death
	w.start(w.procs[0], Spec{
		ID: "r", Waves: sizes(t, "1,2,100%"), Timeout: 400 * millisecond, Hold: 10 * millisecond,
		Payload: []byte("new"), Revert: []byte("old"),
	}, d.bad)
	for n := 0; n < d.step && !over; n++ {
		w.step()
		over = w.truth.find("r") != nil && w.ended()
	}
	w.remove(w.procs[d.victim], d.kill)
	w.finishAll()
	for _, wrong := range w.wrong {
		t.Errorf("%+v: %s", d, wrong)
	}
	if r := w.truth.find("r"); d.bad == 100 && r != nil && r.Wave > 1 {
		t.Errorf("%+v: wave %d after a failed gate", d, r.Wave)
	}
	return over
}

// The process that has started a rollout is killed, or cut off, at each step of it, and so is each
// other member. Every step is one thing that one process does.
func TestRolloutSurvivesADeathAtEachStep(t *testing.T) {
	runs := 0
	for i := range testutil.Rounds.Or(1) * 12 {
		d := death{schedule: uint64(i / 12), bad: i / 6 % 2 * 100, kill: i/3%2 == 0, victim: i % 3}
		for !d.run(t) && !t.Failed() {
			d.step++
			runs++
		}
	}
	t.Logf("%d runs", runs)
}

// A bad payload for 30 members in 3 zones: exactly the first wave has it, all of them revert it, and
// the rollout says why.
func TestBadPayloadStopsInTheFirstWave(t *testing.T) {
	for _, first := range []int{1, 3} {
		w := newWorld(t, 1, 30, noBug)
		w.calm = true
		w.start(w.procs[7], Spec{
			ID: "r", Waves: sizes(t, fmt.Sprint(first, ",10%,100%")), Timeout: 10 * second,
			Payload: []byte("new"), Revert: []byte("old"),
		}, 100)
		w.finishAll()
		r := w.truth.find("r")
		had, reverted, zones := 0, 0, map[string]bool{}
		for _, m := range r.Members {
			e := w.effect("r", m.ID)
			had, reverted = had+e.applied, reverted+e.reverted
			if e.applied > 0 {
				zones[m.Domain] = true
			}
		}
		if len(w.wrong) > 0 || had != first || reverted != first || len(zones) != first || r.Phase != Reverted {
			t.Errorf("%d members have had it in %d zones, and %d reverted it; %s; %v", had, len(zones), reverted, r.Phase,
				w.wrong)
		}
		if !strings.Contains(r.Reason, "wave 1 of") || !strings.Contains(r.Reason, "not ready") {
			t.Errorf("the reason is %q", r.Reason)
		}
	}
}

func TestWavesAreSpreadOverDomains(t *testing.T) {
	v := &View{}
	for i, domain := range []string{"a", "a", "a", "b", "b", "c"} {
		v.Members = append(v.Members, Process{fmt.Sprint(i), 1})
		v.Domains = append(v.Domains, domain)
	}
	for _, c := range []struct {
		waves    string
		byDomain bool
		want     string
	}{
		{"1,3,100%", false, "0:1 3:2 5:2 1:3 4:3 2:3"},
		{"50%,100%", false, "0:1 3:1 5:1 1:2 4:2 2:2"},
		{"1,2,1%,100%", true, "0:1 1:1 2:1 3:2 4:2 5:3"},
		{"100%", false, "0:1 3:1 5:1 1:1 4:1 2:1"},
		{"1,1,1,100%", false, "0:1 3:2 5:2 1:2 4:2 2:2"},
	} {
		members, last := assign(v, sizes(t, c.waves), c.byDomain)
		var got []string
		for _, m := range members {
			got = append(got, fmt.Sprint(m.ID, ":", m.Wave))
		}
		if s := strings.Join(got, " "); s != c.want || last != members[len(members)-1].Wave {
			t.Errorf("%s: got %s, want %s; last %d", c.waves, s, c.want, last)
		}
	}
	for _, wrong := range []string{
		"", "1", "0,100%", "x,100%", "-1,100%", "101%", "1,50%", strings.Repeat("1,", 100) + "100%",
	} {
		if s, err := ParseWaves(wrong); err == nil {
			t.Errorf("%q: %v", wrong, s)
		}
	}
}

// table is a table with two members, and commands for it.
type table struct {
	*Table
	t *testing.T
}

func (t table) do(want Verdict, c Command) {
	t.t.Helper()
	b, err := c.Encode()
	if err != nil {
		t.t.Fatal(err)
	}
	if v, _ := t.Apply(b); v != want {
		t.t.Errorf("%s %s: verdict %d, want %d", c.Op, c.ID, v, want)
	}
}

var (
	memberA = Process{"a", 1}
	memberB = Process{"b", 1}
)

func two() *View { return &View{Number: 1, Members: []Process{{"a", 1}, {"b", 1}}} }

func (t table) start(want Verdict, change func(*Spec)) {
	t.t.Helper()
	s := &Spec{ID: "r", Waves: sizes(t.t, "1,100%"), Timeout: second, Payload: []byte("new"), Revert: []byte("old")}
	change(s)
	t.do(want, Command{Op: Start, Spec: s, View: two()})
}

// next has a member do its next task.
func (t table) next(p Process, want Kind, failure string) {
	t.t.Helper()
	k, ok := t.Task("r", p)
	if !ok || k.Kind != want {
		t.t.Fatalf("task of %s: %d, want %d", p.ID, k.Kind, want)
	}
	t.do(OK, k.Command(p, failure))
}

func TestLimits(t *testing.T) {
	tab := table{New(), t}
	for _, wrong := range []func(*Spec){
		func(s *Spec) { s.ID = "" },
		func(s *Spec) { s.Gate = strings.Repeat("x", MaxName+1) },
		func(s *Spec) { s.Payload = make([]byte, MaxPayload) },
		func(s *Spec) { s.Timeout = 0 },
		func(s *Spec) { s.Hold = -1 },
		func(s *Spec) { s.Waves = s.Waves[:1] },
	} {
		tab.start(Wrong, wrong)
	}
	for i := range MaxRollouts {
		tab.start(OK, func(s *Spec) { s.ID = fmt.Sprint(i) })
	}
	tab.start(Exists, func(s *Spec) { s.ID = "3" })
	tab.start(Full, func(*Spec) {})
	tab.do(OK, Command{Op: Stop, ID: "3"})
	tab.do(Late, Command{Op: Stop, ID: "3"})
	tab.start(OK, func(*Spec) {})
	if tab.find("3") != nil || len(tab.rollouts) != MaxRollouts {
		t.Error("the rollout that has ended is kept")
	}
	tab.do(Unknown, Command{Op: Pause, ID: "3"})
	tab.do(OK, Command{Op: Seen, View: &View{Number: 5, Members: []Process{memberA, memberB}}})
	tab.do(Late, Command{Op: Seen, View: two()})
	tab.start(Old, func(s *Spec) { s.ID = "old" })
	if v, changed := tab.Apply([]byte("{")); v != Wrong || changed {
		t.Error("half a command is applied")
	}
}

// A rollout that pauses on a failed gate asks it again when an operator resumes it.
func TestResumedRolloutAsksAgain(t *testing.T) {
	tab := table{New(), t}
	tab.start(OK, func(s *Spec) { s.PauseOnFailure = true })
	tab.next(memberA, Begin, "")
	tab.next(memberA, Put, "")
	tab.next(memberA, Ask, "not ready")
	r := tab.find("r")
	if !r.Paused || r.Wave != 1 || r.Reason != "wave 1 of 2: a: not ready" {
		t.Fatalf("got %+v", r)
	}
	tab.do(OK, Command{Op: Resume, ID: "r"})
	tab.next(memberA, Ask, "")
	if r.Wave != 2 {
		t.Fatalf("got %+v", r)
	}
	tab.do(OK, Command{Op: Pause, ID: "r"})
	if k, ok := tab.Task("r", memberB); ok {
		t.Fatalf("a member begins while the rollout is paused: %+v", k)
	}
	tab.do(OK, Command{Op: Resume, ID: "r"})
	tab.next(memberB, Begin, "")
	tab.next(memberB, Put, "")
	tab.next(memberA, Ask, "")
	tab.next(memberB, Ask, "")
	if r.Phase != Done || r.Payload != nil {
		t.Fatalf("got %+v", r)
	}
	tab.do(OK, Command{Op: Undo, ID: "r", View: two()})
	tab.next(memberA, TakeBack, "")
	tab.next(memberB, TakeBack, "disk full")
	if r.Phase != Reverted || r.member("b").State != Unchanged {
		t.Fatalf("got %+v", r)
	}
}

// A member that does not report in time fails the rollout. What it has it reverts.
func TestMemberThatDoesNotReport(t *testing.T) {
	tab := table{New(), t}
	tab.start(OK, func(*Spec) {})
	tab.next(memberA, Begin, "")
	r := tab.find("r")
	tab.do(Late, Command{Op: Tick, ID: "r", Step: r.Step - 1})
	tab.do(OK, Command{Op: Tick, ID: "r", Step: r.Step})
	if r.Phase != Reverting || r.Reason != "wave 1 of 2: a: did not report within 1 s" {
		t.Fatalf("got %+v", r)
	}
	tab.next(memberA, TakeBack, "")
	if r.Phase != Reverted || r.member("b").State != Skipped {
		t.Errorf("got %+v", r)
	}
}

// Most members of a wave died: that fails a rollout, and one of several does if it says so.
func TestDeaths(t *testing.T) {
	for _, c := range []struct {
		deaths bool
		alive  int
		want   Phase
	}{{false, 3, Applying}, {false, 2, Applying}, {false, 1, Stopped}, {true, 3, Stopped}} {
		tab := table{New(), t}
		v := &View{Number: 1}
		for i := range 4 {
			v.Members = append(v.Members, Process{fmt.Sprint(i), 1})
		}
		tab.do(OK, Command{Op: Start, Spec: &Spec{ID: "r", Waves: sizes(t, "100%"), Timeout: 1, Deaths: c.deaths}, View: v})
		tab.do(OK, Command{Op: Seen, View: &View{Number: 2, Members: v.Members[:c.alive]}})
		if r := tab.find("r"); r.Phase != c.want {
			t.Errorf("%d of 4 are alive, deaths count: %v: %s (%s)", c.alive, c.deaths, r.Phase, r.Reason)
		}
	}
}

// A member that joins belongs to the last wave, unless that is released.
func TestJoinersBelongToTheLastWave(t *testing.T) {
	tab := table{New(), t}
	tab.start(OK, func(*Spec) {})
	c := Process{"c", 2}
	tab.do(OK, Command{Op: Seen, View: &View{Number: 2, Members: []Process{memberA, memberB, c}}})
	r := tab.find("r")
	if m := r.member("c"); m == nil || m.Wave != 2 {
		t.Fatalf("got %+v", m)
	}
	tab.next(memberA, Begin, "")
	tab.next(memberA, Put, "")
	tab.next(memberA, Ask, "")
	tab.do(OK, Command{Op: Seen, View: &View{Number: 3, Members: []Process{memberA, memberB, c, {"d", 3}}}})
	if r.member("c").State != Released || r.member("d") != nil {
		t.Errorf("got %+v", r)
	}
}

// A member proposes what is due if those with lower ranks do not.
func TestClocksOfHigherRanksWait(t *testing.T) {
	tab := table{New(), t}
	tab.start(OK, func(s *Spec) { s.Hold = 60 * second })
	for i, p := range []Process{memberA, memberB} {
		var clock Clock
		c, at, ok := clock.Next(3600*second, tab.Table, two(), p)
		if want := 3600*second + second + protocol.Time(i)*Stagger; !ok || c.Op != Tick || at != want {
			t.Errorf("%s: %+v at %v, want a tick at %v", p.ID, c, at, want)
		}
		newer := &View{Number: 2, Members: []Process{memberA, memberB}}
		c, at, ok = clock.Next(3600*second+second, tab.Table, newer, p)
		if want := 3600*second + second + protocol.Time(i)*Stagger; !ok || at != want || i == 0 && c.Op != Seen {
			t.Errorf("%s: %+v at %v, want a view at %v", p.ID, c, at, want)
		}
	}
}
