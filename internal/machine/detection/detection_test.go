package detection_test

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/protocol"
)

const (
	millisecond protocol.Time = 1e6
	second                    = 1000 * millisecond

	dialTimeout  = 200 * millisecond
	startTimeout = 30 * second
)

var (
	errGone, errSilent, errReplaced = errors.New("gone"), errors.New("silent"), errors.New("replaced")
	errLost, errDial                = errors.New("lost"), errors.New("dial")
)

// view is a list of peers.
type view []detection.Peer

func (v view) Find(rank protocol.Rank) (detection.Peer, bool) {
	for _, p := range v {
		if p.Rank == rank {
			return p, true
		}
	}
	return detection.Peer{}, false
}

func (v view) Since(before detection.Peers) iter.Seq[detection.Peer] {
	return func(yield func(detection.Peer) bool) {
		for _, p := range v {
			if _, known := before.Find(p.Rank); !known && !yield(p) {
				return
			}
		}
	}
}

var known = detection.Peer{Rank: 1, Incarnation: 5, Address: "a:1"}

func config() detection.Config {
	return detection.Config{
		Gone: errGone, Silent: errSilent, Replaced: errReplaced,
		DialTimeout: dialTimeout, StartTimeout: startTimeout, MaxDials: 32,
	}
}

// driver drives a machine whose probes have the given results, the last one again and again.
type driver struct {
	*testing.T
	*detection.Machine
	now     protocol.Time
	results []detection.Result
	probes  []protocol.Time // when they were made
	flying  []flight
	log     []detection.Opinion
}

func drive(t *testing.T, c detection.Config, results ...detection.Result) *driver {
	return &driver{T: t, Machine: detection.New(c), results: results}
}

// flight is a probe that was made.
type flight struct {
	at     protocol.Time // of its result
	probe  detection.Probe
	result detection.Result
}

// advance lets time pass. A silent probe takes dialTimeout, others a millisecond.
func (d *driver) advance(by protocol.Time) {
	d.Helper()
	for end := d.now + by; ; {
		for p, ok := d.Next(d.now); ok; p, ok = d.Next(d.now) {
			f := flight{d.now + millisecond, p, d.results[min(len(d.probes), len(d.results)-1)]}
			if f.result == detection.Silent {
				f.at = d.now + dialTimeout
			}
			d.probes = append(d.probes, d.now)
			d.flying = append(d.flying, f)
		}
		for o, ok := d.Report(); ok; o, ok = d.Report() {
			d.log = append(d.log, o)
		}
		slices.SortStableFunc(d.flying, func(a, b flight) int { return cmp.Compare(a.at, b.at) })
		next := d.Machine.Deadline()
		if len(d.flying) > 0 && d.flying[0].at <= min(next, end) {
			f := d.flying[0]
			d.flying = d.flying[1:]
			d.now = max(d.now, f.at)
			d.Probed(d.now, f.probe, f.result, errDial)
			continue
		}
		if next > end {
			d.now = max(d.now, end)
			return
		}
		if next <= d.now {
			d.Fatalf("at %d the deadline is %d, and there is no probe", d.now, next)
		}
		d.now = next
	}
}

// want checks what was reported: the reasons in order, nil for a withdrawal.
func (d *driver) want(reasons ...error) {
	d.Helper()
	var got []error
	for _, o := range d.log {
		got = append(got, o.Why)
	}
	if !slices.Equal(got, reasons) {
		d.Errorf("reported %v, want %v", got, reasons)
	}
}

// wantProbes checks when probes were made.
func (d *driver) wantProbes(at ...protocol.Time) {
	d.Helper()
	if !slices.Equal(d.probes, at) {
		d.Errorf("probed at %v, want %v", d.probes, at)
	}
}

// A round has four probes. Two silent answers in a row, or one refusal, decide it.
func TestRound(t *testing.T) {
	const i, r, f, s = detection.Inconclusive, detection.Reachable, detection.Refused, detection.Silent
	ms := func(times ...protocol.Time) []protocol.Time {
		for i := range times {
			times[i] *= millisecond
		}
		return times
	}
	for name, c := range map[string]struct {
		results []detection.Result
		probes  []protocol.Time
		want    []error
	}{
		"refused":                     {[]detection.Result{f}, ms(0), []error{errGone}},
		"reachable":                   {[]detection.Result{r}, ms(0, 6, 57, 558), nil},
		"refused at last":             {[]detection.Result{r, r, r, f}, ms(0, 6, 57, 558), []error{errGone}},
		"silent":                      {[]detection.Result{s}, ms(0, 205), []error{errSilent}},
		"silence that is interrupted": {[]detection.Result{s, i, s, r}, ms(0, 205, 256, 956), nil},
		"silent at last":              {[]detection.Result{r, r, r, s}, ms(0, 6, 57, 558, 1258), []error{errSilent}},
		"no answers for long": {
			[]detection.Result{i, i, i, i, i, f}, ms(0, 6, 57, 558, 1059, 1560), []error{errGone},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, config(), c.results...)
			d.Watch(0, view{known})
			d.Down(0, 1, errLost)
			d.advance(3 * second)
			d.want(c.want...)
			d.wantProbes(c.probes...)
			for _, o := range d.log {
				if o.Rank != 1 || o.Incarnation != 5 || !errors.Is(o.Err, errLost) || !errors.Is(o.Err, errDial) {
					t.Errorf("reported %+v", o)
				}
			}
		})
	}
}

// A peer that others are closer to is probed later.
func TestPause(t *testing.T) {
	d := drive(t, config(), detection.Refused)
	p := known
	p.Pause = 50 * millisecond
	d.Watch(0, view{p})
	d.Down(0, 1, nil)
	d.advance(second)
	d.wantProbes(p.Pause)
	d.want(errGone)
	if err := d.log[0].Err; err != errDial {
		t.Errorf("the error is %v", err)
	}
}

// A silent answer that took too long says that this process was stopped.
func TestLateAnswerProvesNothing(t *testing.T) {
	for _, c := range []struct {
		took protocol.Time
		want bool
	}{{dialTimeout * 5 / 4, true}, {dialTimeout*5/4 + 1, false}} {
		m, now := detection.New(config()), protocol.Time(0)
		m.Watch(0, view{known})
		m.Down(0, 1, nil)
		for range 2 {
			now = m.Deadline()
			p, _ := m.Next(now)
			now += c.took
			m.Probed(now, p, detection.Silent, nil)
		}
		if _, suspected := m.Report(); suspected != c.want {
			t.Errorf("answers after %d: suspected: %t", c.took, suspected)
		}
	}
}

// A connection, a view and news of another process prove more than a probe.
func TestProbesAreOvertaken(t *testing.T) {
	moved, successor := known, known
	moved.Address, successor.Incarnation = "b:1", 6
	for name, c := range map[string]struct {
		overtake func(m *detection.Machine)
		want     []error
	}{
		"by a connection":           {func(m *detection.Machine) { m.Met(1, 5) }, nil},
		"by a predecessor":          {func(m *detection.Machine) { m.Met(1, 4) }, nil},
		"by a successor":            {func(m *detection.Machine) { m.Met(1, 6) }, []error{errReplaced}},
		"by another at its address": {func(m *detection.Machine) { m.Replaced(1, 5) }, []error{errReplaced}},
		"by a view without it":      {func(m *detection.Machine) { m.Watch(1, view{}) }, nil},
		"by a view with another":    {func(m *detection.Machine) { m.Watch(1, view{successor}) }, nil},
		"by its move":               {func(m *detection.Machine) { m.Watch(1, view{moved}) }, nil},
		"not by old news":           {func(m *detection.Machine) { m.Replaced(1, 4) }, []error{errGone}},
		"not by the same view":      {func(m *detection.Machine) { m.Watch(1, view{known}) }, []error{errGone}},
	} {
		for _, flying := range []bool{false, true} {
			d := drive(t, config(), detection.Refused)
			d.Watch(0, view{known})
			d.Down(0, 1, nil)
			var p detection.Probe
			if flying {
				p, _ = d.Next(0)
			}
			c.overtake(d.Machine)
			if flying {
				d.Probed(2, p, detection.Refused, nil)
			}
			t.Log(name, flying)
			d.advance(second)
			d.want(c.want...)
		}
	}
}

// A Down that a round is too late for begins another one; an earlier one does not.
func TestDownDuringRound(t *testing.T) {
	for name, c := range map[string]struct {
		at     protocol.Time
		probes int
	}{"before": {0, 4}, "during": {3 * millisecond, 8}} {
		d := drive(t, config(), detection.Reachable)
		d.Watch(0, view{known})
		d.Down(0, 1, nil)
		if c.at > 0 {
			d.advance(c.at)
		}
		d.Down(d.now, 1, nil)
		d.advance(10 * second)
		if len(d.probes) != c.probes {
			t.Errorf("%s the first probe: %d probes, want %d", name, len(d.probes), c.probes)
		}
	}
}

// A Down begins nothing if the peer is gone, its address is unknown or nobody is watched there.
func TestNothingToProbe(t *testing.T) {
	d := drive(t, config(), detection.Refused)
	d.Down(0, 1, nil)
	d.Watch(0, view{known, {Rank: 2, Incarnation: 1}})
	d.Down(0, 2, nil)
	d.Down(0, 3, nil)
	d.Suspect(1, 5, errGone, nil)
	d.Down(0, 1, nil)
	d.advance(second)
	d.wantProbes()
	d.want(errGone)
}

// An answer withdraws silence only. A connection withdraws everything.
func TestWithdrawal(t *testing.T) {
	d := drive(t, config(), detection.Silent, detection.Silent, detection.Reachable)
	d.Watch(0, view{known})
	d.Down(0, 1, nil)
	d.advance(second)
	d.Down(d.now, 1, nil)
	d.advance(2 * millisecond) // the first answer of the round
	d.want(errSilent, nil)
	d.advance(second)
	d.Suspect(1, 5, errGone, nil)
	d.Suspect(1, 5, errSilent, nil) // the first reason stays
	d.advance(second)
	if !d.Met(1, 5) || d.Met(1, 4) || d.Met(7, 5) {
		t.Error("Met confuses processes")
	}
	d.advance(second)
	d.want(errSilent, nil, errGone, nil)
	d.Down(d.now, 1, nil)
	d.advance(millisecond)
	d.Suspect(1, 5, errGone, nil) // while it is probed
	d.advance(second)
	d.want(errSilent, nil, errGone, nil, errGone)
}

// A peer that was never met is not suspected before StartTimeout, counted from the first view, or
// from that which has admitted it. If it listens before it starts, a refusal counts at once.
func TestStart(t *testing.T) {
	first, second2 := detection.Peer{Rank: 1, Address: "a:1"}, detection.Peer{Rank: 2, Address: "a:2"}
	d := drive(t, config(), detection.Refused)
	d.Watch(0, view{first})
	d.now = 10 * second
	d.Watch(d.now, view{first, second2})
	d.Down(d.now, 1, nil)
	d.Down(d.now, 2, nil)
	d.advance(5 * second)
	d.Down(d.now, 1, nil)
	d.advance(time60)
	d.wantProbes(startTimeout, startTimeout+10*second)
	d.want(errGone, errGone)
	if !d.Met(1, 7) {
		t.Error("the first process met is another one")
	}
	d.advance(second)
	d.want(errGone, errGone, nil)
	if o := d.log[2]; o.Incarnation != 7 {
		t.Errorf("reported %+v", o)
	}

	d = drive(t, config(), detection.Refused)
	d.Watch(0, view{first, second2})
	d.Met(1, 0) // of a transport that does not know incarnations
	d.Met(2, 1)
	d.Down(0, 1, nil)
	d.Down(0, 2, nil)
	d.advance(second)
	d.wantProbes(0, 0)
}

const time60 = 60 * second

func TestStartOfListening(t *testing.T) {
	c := config()
	c.Listening = true
	p := detection.Peer{Rank: 1, Address: "a:1"}
	for name, last := range map[string]struct {
		result detection.Result
		want   []error
	}{"refused": {detection.Refused, []error{errGone}}, "silent": {detection.Silent, []error{errSilent}}} {
		d := drive(t, c, detection.Silent, detection.Silent, detection.Silent, last.result)
		d.Watch(0, view{p})
		d.Down(0, 1, nil)
		d.advance(second)
		d.Down(d.now, 1, nil)
		d.advance(100 * millisecond) // in the middle of the probe
		d.Down(d.now, 1, nil)
		d.advance(second)
		d.want()
		d.advance(time60)
		t.Log(name)
		d.want(last.want...)
		want := []protocol.Time{0, second, second + dialTimeout, startTimeout}
		if last.result == detection.Silent {
			want = append(want, startTimeout+dialTimeout+5*millisecond)
		}
		d.wantProbes(want...)
	}
}

// A result that comes when the time to start is over counts.
func TestResultAtTheEndOfStart(t *testing.T) {
	for _, again := range []bool{false, true} {
		c := config()
		c.Listening = true
		d := drive(t, c, detection.Silent)
		d.Watch(0, view{{Rank: 1, Address: "a:1"}})
		d.now = startTimeout - dialTimeout
		d.Down(d.now, 1, nil)
		if again {
			d.advance(millisecond)
			d.Down(d.now, 1, nil)
		}
		d.advance(dialTimeout + 10*millisecond)
		d.wantProbes(startTimeout-dialTimeout, startTimeout+5*millisecond)
	}
}

// No more than MaxDials probes are made at a time, and all get their turn, in order.
func TestProbesAreLimited(t *testing.T) {
	c := config()
	c.MaxDials = 2
	m := detection.New(c)
	var v view
	for r := range protocol.Rank(5) {
		v = append(v, detection.Peer{Rank: r, Incarnation: 1, Address: "a:1"})
	}
	m.Watch(0, v)
	for r := range protocol.Rank(5) {
		m.Down(0, r, nil)
	}
	for r := range protocol.Rank(5) {
		p, ok := m.Next(0)
		if !ok || p.Rank != r || p.Address != "a:1" {
			t.Fatalf("%+v, %t, want rank %d", p, ok, r)
		}
		if r%2 == 1 {
			if _, more := m.Next(0); more || m.Deadline() != protocol.Never {
				t.Error("a third probe at a time")
			}
			m.Probed(0, p, detection.Refused, nil)
		}
		if r%2 == 1 {
			m.Probed(0, detection.Probe{}, detection.Refused, nil) // the other one was overtaken
		}
	}
}

// Whatever happens in whichever order, those who get the reports eventually have the opinions of
// the machine, and no report twice.
func TestReportsAreTheOpinions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, heard := detection.New(config()), map[protocol.Rank]uint64{}
		listen := func() {
			for o, ok := m.Report(); ok; o, ok = m.Report() {
				as, before := heard[o.Rank]
				if before == (o.Why != nil) && (!before || as == o.Incarnation) {
					t.Fatalf("reported again: %+v", o)
				}
				delete(heard, o.Rank)
				if o.Why != nil {
					heard[o.Rank] = o.Incarnation
				}
			}
			if m.Pending() {
				t.Fatal("something is pending after the last report")
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			rank := protocol.Rank(rapid.IntRange(0, 3).Draw(t, "rank"))
			incarnation := rapid.Uint64Range(0, 3).Draw(t, "incarnation")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				m.Suspect(rank, incarnation, errSilent, nil)
			case 2:
				m.Trust(rank, incarnation)
			case 3:
				m.Met(rank, incarnation+1)
			case 4:
				listen()
			case 5:
				listen()
				var v view
				for r := range protocol.Rank(4) {
					if rapid.Bool().Draw(t, "member") {
						v = append(v, detection.Peer{
							Rank: r, Incarnation: rapid.Uint64Range(0, 3).Draw(t, "of the member"),
							Address: rapid.SampledFrom([]string{"a:1", "b:1"}).Draw(t, "address"),
						})
					}
				}
				m.Watch(0, v)
				maps.DeleteFunc(heard, func(r protocol.Rank, incarnation uint64) bool {
					p, ok := m.Watched(r)
					return !ok || p.Incarnation != incarnation
				})
			}
		}
		listen()
		for r := range protocol.Rank(4) {
			p, ok := m.Watched(r)
			_, is := heard[r]
			if suspected := ok && m.Opinion(r, p.Incarnation).Why != nil; suspected != is {
				t.Fatalf("rank %d: suspected: %t, reported: %t", r, suspected, is)
			}
		}
	})
}

// A suspicion of a process that was not known is reported again, with its incarnation, if the
// process is suspected again before the withdrawal was reported.
func TestSuspicionOfUnknownProcess(t *testing.T) {
	d := drive(t, config(), detection.Refused)
	d.Watch(0, view{{Rank: 1}})
	d.Suspect(1, 0, errGone, nil)
	d.advance(0)
	d.Met(1, 7)
	d.Suspect(1, 7, errSilent, nil)
	d.advance(0)
	d.want(errGone, errSilent)
	if o := d.log[1]; o.Incarnation != 7 {
		t.Errorf("reported %+v", o)
	}
}

// News of one process is not news of another. Reports of a new view come in order of rank.
func TestViewsTellProcessesApart(t *testing.T) {
	d := drive(t, config(), detection.Refused)
	if _, ok := d.Watched(1); ok {
		t.Error("somebody is watched before the first view")
	}
	var v view
	for r := range protocol.Rank(8) {
		v = append(v, detection.Peer{Rank: r, Incarnation: 5, Address: "a:1"})
	}
	d.Watch(0, v)
	d.Suspect(1, 4, errGone, nil)
	d.Suspect(2, 5, errGone, errDial)
	d.Trust(2, 6)
	if o := d.Opinion(1, 4); o.Why != nil || o.Rank != 1 || o.Incarnation != 4 {
		t.Errorf("news of its predecessor: %+v", o)
	}
	if o := d.Opinion(2, 5); o.Why != errGone || o.Err != errDial {
		t.Errorf("%+v", o)
	}
	for r := range protocol.Rank(8) {
		d.Suspect(7-r, 5, errGone, nil)
	}
	d.Watch(0, v)
	d.advance(0)
	for i, o := range d.log {
		if o.Rank != protocol.Rank(i) {
			t.Fatalf("reported %+v", d.log)
		}
	}
	if len(d.log) != 8 {
		t.Errorf("%d reports", len(d.log))
	}
	d.Trust(2, 5)
	d.advance(0)
	if o := d.Opinion(2, 5); o.Why != nil || o.Err != nil || len(d.log) != 9 {
		t.Errorf("%+v after %d reports", o, len(d.log))
	}
	v[3].Incarnation, v[4].Address = 6, "b:1"
	d.Watch(0, v)
	d.advance(0)
	if d.Opinion(3, 6).Why != nil || len(d.log) != 10 || d.log[9].Rank != 4 || d.log[9].Why != nil {
		t.Errorf("after a replacement and a move: %+v", d.log)
	}
}

// A peer is suspected while any detector suspects the process of the view.
func TestMerged(t *testing.T) {
	const suspect, trust = false, true
	m := detection.NewMerged(2)
	if m.Report(0, 1, 5, suspect) {
		t.Error("nobody is watched")
	}
	m.Watch(view{{Rank: 1, Incarnation: 5}, {Rank: 2}})
	for i, c := range []struct {
		detector    int
		rank        protocol.Rank
		incarnation uint64
		alive, want bool
	}{
		{0, 1, 4, suspect, false},
		{0, 3, 5, suspect, false},
		{0, 1, 5, suspect, true},
		{1, 1, 5, suspect, true},
		{0, 1, 5, trust, false},
		{1, 1, 4, trust, false},
		{1, 1, 5, trust, true},
		{0, 2, 7, suspect, true},
		{1, 2, 8, suspect, true},
	} {
		if got := m.Report(c.detector, c.rank, c.incarnation, c.alive); got != c.want {
			t.Errorf("report %d: %t", i, got)
		}
	}
	m.Watch(view{{Rank: 2, Incarnation: 8}}) // the opinion of detector 0 was about another process
	if !m.Report(1, 2, 8, trust) {
		t.Error("an opinion about another process counts")
	}
	m.Report(0, 2, 8, suspect)
	m.Watch(view{})
	m.Watch(view{{Rank: 2, Incarnation: 8}})
	m.Report(1, 2, 8, suspect)
	if !m.Report(1, 2, 8, trust) {
		t.Error("an opinion from before an absence counts")
	}
}
