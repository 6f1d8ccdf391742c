package backbone

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// driver keeps the actions of a machine until a test looks at them.
type driver struct {
	t       *testing.T
	m       *Machine
	now     Time
	actions []Action
}

// drive returns the driver of a process of zone "b" at a position, which has seeds of zones.
func drive(t *testing.T, index int, zones ...string) *driver {
	d := &driver{t: t, m: New(Config{Zone: "b", Delegates: 2}), now: second}
	d.m.SetSeeds(zones)
	d.settle()
	if len(d.actions) > 0 {
		t.Errorf("it decides %v before it is in the zone", d.actions)
	}
	d.m.SetZone(d.now, Zone{Index: index})
	d.settle()
	return d
}

// settle takes all actions. After that, the machine waits: its deadline is in the future.
func (d *driver) settle() {
	d.t.Helper()
	for range 1000 {
		a := d.m.Next(d.now)
		if a == nil {
			if due := d.m.Deadline(); due <= d.now {
				d.t.Fatalf("the deadline %d is over at %d, and there is nothing to do", due, d.now)
			}
			return
		}
		d.actions = append(d.actions, a)
	}
	d.t.Fatal("the actions do not end")
}

// pass lets time pass, from deadline to deadline.
func (d *driver) pass(t Time) {
	d.t.Helper()
	until := d.now + t
	for d.m.Deadline() <= until {
		d.now = max(d.now, d.m.Deadline())
		d.settle()
	}
	d.now = until
	d.settle()
}

// expect complains unless these are the actions since the last look, questions without their rounds
// and timeouts.
func (d *driver) expect(what string, want ...string) {
	d.t.Helper()
	var got []string
	for _, a := range d.actions {
		text := fmt.Sprintf("%+v", a)
		switch a := a.(type) {
		case AskZone:
			text = fmt.Sprint(a.Zone, a.Known)
		case AskDelegates:
			text = fmt.Sprint(a.Addresses)
		}
		got = append(got, strings.TrimPrefix(fmt.Sprintf("%T ", a), "backbone.")+text)
	}
	d.actions = nil
	if !slices.Equal(got, want) {
		d.t.Errorf("%s:\n%q, want\n%q", what, got, want)
	}
}

// found answers a question of the present round.
func (d *driver) found(f Found) {
	d.t.Helper()
	d.m.Found(d.now, d.m.round.number, f)
	d.settle()
}

// nothing answers that own delegates, and zones, know no backbone.
func (d *driver) nothing(zones ...string) {
	d.t.Helper()
	d.found(Found{})
	for _, zone := range zones {
		d.found(Found{Zone: zone})
	}
}

// enter brings the process into a backbone with a view.
func (d *driver) enter(v View) {
	d.t.Helper()
	d.found(Found{View: view("x"), Asked: []string{"x0:1"}})
	d.m.Entered(d.now, "b0:1")
	d.m.Installed(d.now, v)
	d.settle()
	d.actions = nil
}

// view is that of a backbone with a quorum: each letter is a delegate of that zone.
func view(zones string) View {
	v := View{Quorum: true}
	for i, zone := range strings.Split(zones, "") {
		n := strings.Count(zones[:i], zone)
		v.Members = append(v.Members, Member{ID: fmt.Sprint(zone, "/", n), Address: fmt.Sprint(zone, n, ":1"), Zone: zone})
	}
	return v
}

func lost(v View) View {
	v.Quorum = false
	return v
}

const (
	noDelegates = "AskDelegates []"
	create      = "Create {SameAddress:true}"
	leave       = "Leave {}"
)

// The lead asks all zones. That of the first name creates a backbone at once if there is none, and
// another one when it has found none for five seconds.
func TestLeadCreatesBackbone(t *testing.T) {
	d := drive(t, 0, "a", "b", "c")
	d.expect("it has just begun", noDelegates, "AskZone a[]", "AskZone c[]")
	d.nothing("a")
	d.expect("not all zones have answered")
	d.found(Found{Zone: "c", Reachable: true})
	d.expect("no zone before it is reachable", create)
	d.m.Failed(d.now)
	d.pass(2 * minPause)
	d.expect("it has failed", noDelegates, "AskZone a[]", "AskZone c[]")
	d.nothing("a", "c")
	d.expect("nobody is reachable: again, at another address", "Create {SameAddress:false}")

	for name, answer := range map[string]Found{
		"a zone before it is reachable": {Zone: "a", Reachable: true},
		"a zone announces delegates":    {Zone: "c", Reachable: true, Announced: true},
		"its own zone does":             {Asked: []string{"b1:1"}},
	} {
		d := drive(t, 0, "a", "b", "c")
		rounds := 0
		for ; d.now <= 10*second; rounds++ {
			if d.m.stage == creating {
				break
			}
			d.actions = nil
			d.found(answer)
			d.nothing("c")
			d.pass(maxPause)
		}
		if since := d.now - second; d.m.stage != creating || since < createDelay || since > createDelay+2*maxPause {
			t.Errorf("%s: stage %d after %d ms", name, d.m.stage, since/millisecond)
		}
		d.m.Failed(d.now)
		d.pass(maxPause)
		d.found(answer)
		d.nothing("c")
		if d.m.stage != creating {
			t.Errorf("%s: it has failed, and waits as if it had joined", name)
		}
	}
}

// Pauses between rounds grow up to two seconds.
func TestPausesBetweenRounds(t *testing.T) {
	d := drive(t, 1, "a")
	var at []Time
	for range 80 {
		d.actions = nil
		d.found(Found{Asked: []string{"b1:1"}})
		if d.m.round.open > 0 {
			d.found(Found{Zone: "a", Reachable: true})
		}
		at = append(at, d.m.Deadline()-d.now)
		d.pass(d.m.Deadline() - d.now)
	}
	if at[0] != minPause || at[79] != maxPause || !slices.IsSorted(at) {
		t.Errorf("pauses: %v", at)
	}
}

// The first backbone with a quorum that an asked delegate is in is joined, by that delegate and
// others of the view.
func TestJoinsFirstBackboneWithQuorum(t *testing.T) {
	all := view("aacc")
	for name, c := range map[string]struct {
		found Found
		want  []string
	}{
		"a view": {
			Found{Zone: "c", View: all, Asked: []string{"c1:1"}},
			[]string{"c1:1", "a0:1", "a1:1", "c0:1"},
		},
		"no quorum": {Found{Zone: "c", View: lost(all), Asked: []string{"c1:1"}}, nil},
		"no answer": {Found{Zone: "c", Asked: []string{"c1:1"}}, nil},
		"who was asked has left": {
			Found{Zone: "c", View: all, Asked: []string{"d1:1"}},
			[]string{"a0:1", "a1:1", "c0:1", "c1:1"},
		},
	} {
		d := drive(t, 0, "a", "c")
		d.actions = nil
		d.found(c.found)
		if c.want == nil {
			d.expect(name)
			continue
		}
		if want := []Action{Join{c.want, true, joinTimeout}}; !reflect.DeepEqual(d.actions, want) {
			t.Errorf("%s: %v, want %v", name, d.actions, want)
		}
		d.actions = nil
		d.found(Found{Zone: "a", View: all, Asked: []string{"a0:1"}})
		d.expect("another answer of the round")
	}
	many := Found{View: view("aaaaaaaaaaaa"), Asked: []string{"a9:1"}}
	if got := many.seeds(); len(got) != 1+maxSeeds {
		t.Errorf("%d seeds of a large backbone", len(got))
	}
}

// A delegate that is not the lead asks those of its zone, and all zones only if these know no
// backbone for five seconds. It creates none.
func TestDelegateAsksItsZone(t *testing.T) {
	d := drive(t, 1, "a")
	d.expect("there is no other delegate", noDelegates)
	d.m.SetZone(d.now, Zone{Index: 1, Lead: "b0:1", Others: []string{"b0:1"}})
	d.nothing()
	d.pass(minPause)
	d.expect("again", "AskDelegates [b0:1]")
	d.pass(createDelay)
	d.found(Found{Asked: []string{"b0:1"}})
	d.pass(minPause)
	d.expect("for long", "AskDelegates [b0:1]", "AskZone a[]")
	d.nothing("a")
	d.expect("it creates none")
	d.pass(maxPause)
	d.expect("but asks on", "AskDelegates [b0:1]", "AskZone a[]")
	d.found(Found{View: view("bb"), Asked: []string{"b0:1"}})
	d.expect("the lead is in one", fmt.Sprintf("Join {Seeds:[b0:1 b1:1] SameAddress:true Timeout:%d}", joinTimeout))
	d.m.Failed(d.now)
	d.pass(maxPause)
	d.expect("it relies on the lead again, which is in one", "AskDelegates [b0:1]")
}

// A process that is no delegate asks nobody, and one that becomes one enters.
func TestOnlyDelegatesEnter(t *testing.T) {
	d := drive(t, 2, "a")
	d.pass(10 * second)
	d.expect("it is no delegate")
	d.m.SetZone(d.now, Zone{Index: 1})
	d.settle()
	d.expect("it is", noDelegates)
	d.m.SetZone(d.now, Zone{Index: 2})
	d.found(Found{})
	d.pass(10 * second)
	d.expect("it is no more")
	d.m.SetZone(d.now, Zone{Index: 0})
	d.settle()
	d.enter(view("ab"))
	d.m.SetZone(d.now, Zone{Index: 2})
	d.settle()
	d.expect("a delegate no more leaves", leave)
	d.m.Left(d.now)
	d.settle()
	d.expect("and retracts its address", "Announce {Address:}")
}

// A lead in a backbone asks zones that are missing, leaves for a larger one, and finds it by the
// address that it was found at.
func TestLeadLeavesForLargerBackbone(t *testing.T) {
	d := drive(t, 0, "a", "c")
	d.enter(view("ab"))
	d.pass(searchInterval)
	d.expect("two seconds later", "AskZone c[]")
	d.found(Found{Zone: "c", View: view("ccc"), Asked: []string{"c1:1"}})
	d.expect("a larger one", leave)
	d.m.Installed(d.now, view("abb"))
	d.pass(10 * second)
	d.expect("it is about to leave")
	d.m.Left(d.now)
	d.settle()
	d.expect("it has left", "Announce {Address:}", "AskDelegates [c0:1]")
	d.found(Found{View: view("ccc"), Asked: []string{"c0:1"}})
	d.expect("there", fmt.Sprintf("Join {Seeds:[c0:1 c1:1 c2:1] SameAddress:true Timeout:%d}", joinTimeout))
}

// A lead whose larger backbone does not answer for five seconds looks for others before it creates
// one.
func TestLargerBackboneThatIsGone(t *testing.T) {
	d := drive(t, 0, "c")
	d.enter(view("bb"))
	d.pass(searchInterval)
	d.found(Found{Zone: "c", View: view("ccc"), Asked: []string{"c0:1"}})
	d.m.Left(d.now)
	d.settle()
	d.actions = nil
	d.pass(askTimeout + 1)
	d.found(Found{Asked: []string{"c0:1"}})
	d.pass(minPause)
	d.expect("no answer", noDelegates, "AskZone c[]")
	d.nothing("c")
	d.expect("nor elsewhere", create)
}

// Zones that are not asked, or answer nothing that can be entered, keep nobody from staying. A
// smaller backbone is entered in the third round in a row.
func TestLeadStays(t *testing.T) {
	for name, c := range map[string]struct {
		own    string
		found  View
		leaves int // after rounds; 0: never
	}{
		"larger":                              {"bb", view("ccc"), 1},
		"as large, leader of an earlier zone": {"bb", view("aa"), 1},
		"as large, leader of a later zone":    {"bb", view("cc"), maxSmaller},
		"smaller":                             {"bb", view("c"), maxSmaller},
		"larger, without a quorum":            {"bb", lost(view("ccc")), 0},
		"no answer":                           {"bb", View{}, 0},
		"this process is in it":               {"bb", view("bcc"), 0},
	} {
		d := drive(t, 0, "a", "c")
		d.enter(view(c.own))
		left := 0
		for round := 1; round <= 6 && left == 0; round++ {
			d.pass(searchInterval)
			d.actions = nil
			d.found(Found{Zone: "a"})
			d.found(Found{Zone: "c", View: c.found, Asked: []string{"c0:1"}})
			if d.m.stage == leaving {
				left = round
			}
		}
		if left != c.leaves {
			t.Errorf("%s: leaves in round %d, want %d", name, left, c.leaves)
		}
	}
}

// A round without a smaller backbone begins the count again, and a larger one is preferred.
func TestSmallerBackboneIsFoundInARow(t *testing.T) {
	d := drive(t, 0, "a", "c")
	d.enter(view("bb"))
	for i, found := range []View{view("c"), view("c"), {}, view("c"), view("c"), view("c")} {
		d.pass(searchInterval)
		d.expect("all that are missing are asked", "AskZone a[]", "AskZone c[]")
		if i < 5 {
			d.found(Found{Zone: "c", View: found})
			d.found(Found{Zone: "a"})
		}
	}
	d.found(Found{Zone: "c", View: view("c")})
	d.found(Found{Zone: "a", View: view("aaa")})
	d.expect("both", leave)
	d.m.Left(d.now)
	d.settle()
	d.expect("the larger one", "Announce {Address:}", "AskDelegates [a0:1]")
}

// A round that finds none begins the count again.
func TestSmallerBackboneThatComesAndGoes(t *testing.T) {
	d := drive(t, 0, "c")
	d.enter(view("bb"))
	for i, found := range []View{view("c"), {}, view("c"), view("c"), view("c")} {
		if d.m.stage != serving {
			t.Errorf("it leaves after round %d", i)
		}
		d.pass(searchInterval)
		d.found(Found{Zone: "c", View: found})
	}
	if d.m.stage != leaving {
		t.Error("it stays after three rounds in a row")
	}
}

// Delegates of other zones that were in the backbone are known from then on, also those of zones
// without seeds.
func TestKnownDelegates(t *testing.T) {
	d := drive(t, 0, "a")
	d.enter(view("abccd"))
	d.m.Installed(d.now, view("abc"))
	d.m.Installed(d.now, lost(view("ab"))) // says nothing about others
	d.pass(searchInterval)
	d.expect("zones that are missing", "AskZone c[c0:1]", "AskZone d[d0:1]")
	d.nothing("c", "d")
	d.m.Left(d.now)
	d.settle()
	d.expect("outside", "Announce {Address:}", noDelegates, "AskZone a[a0:1]", "AskZone c[c0:1]", "AskZone d[d0:1]")
}

// The other delegates follow the lead when they have found it elsewhere twice in a row.
func TestDelegatesFollowLead(t *testing.T) {
	d := drive(t, 1, "a", "c")
	d.enter(view("abb"))
	apart := func(lead string) {
		d.m.SetZone(d.now, Zone{Index: 1, Lead: lead, Others: []string{lead}})
		d.pass(searchInterval)
	}
	for _, lead := range []string{"b0:1", "", "b7:1", "b0:1", "b7:1", "", "b7:1"} {
		apart(lead)
		d.expect("lead " + lead)
	}
	apart("b7:1")
	d.expect("twice", leave)
	d.m.Left(d.now)
	d.settle()
	d.expect("it asks the lead", "Announce {Address:}", "AskDelegates [b7:1]")
	d.nothing()
	d.pass(minPause)
	d.expect("then all of its zone", "AskDelegates [b7:1]")
}

// A delegate leaves a backbone that has had no quorum for three seconds, however many views tell it
// so, and not one that has regained it.
func TestLeavesWithoutQuorum(t *testing.T) {
	d := drive(t, 1, "a")
	d.enter(view("ab"))
	d.m.Installed(d.now, lost(view("ab")))
	d.pass(quorumTimeout - 1)
	d.m.Installed(d.now, view("ab"))
	d.pass(quorumTimeout)
	d.m.Installed(d.now, lost(view("ab")))
	d.pass(quorumTimeout - 1)
	d.m.Installed(d.now, lost(view("ab")))
	d.expect("not yet")
	if due := d.m.Deadline(); due > d.now+1 {
		t.Errorf("the deadline is in %d", due-d.now)
	}
	d.pass(1)
	d.expect("three seconds", leave)
}

// A process that the others have removed enters again. It announces where it is now.
func TestRemovedProcessEntersAgain(t *testing.T) {
	d := drive(t, 0, "a")
	d.enter(view("ab"))
	d.m.Left(d.now)
	d.settle()
	d.expect("removed", "Announce {Address:}", noDelegates, "AskZone a[a0:1]")
	d.nothing("a")
	d.expect("nobody is there", create)
	d.m.Entered(d.now, "b0:2")
	d.settle()
	d.expect("entered", "Announce {Address:b0:2}")
	d.pass(10 * second)
	d.expect("it has no view yet")
	d.m.Installed(d.now, View{})
	d.pass(10 * second)
	d.expect("nor by one without members")
}

// Answers of an earlier round count for nothing.
func TestAnswersOfEarlierRounds(t *testing.T) {
	d := drive(t, 1, "a")
	early := d.m.round.number
	d.nothing()
	d.pass(minPause)
	d.m.Found(d.now, early, Found{View: view("a"), Asked: []string{"a0:1"}})
	d.settle()
	d.expect("a late answer", noDelegates, noDelegates)
}

// A lead that cannot enter the larger backbone goes back to its own. It leaves that one less and less
// often.
func TestLeadThatCannotEnterLargerBackbone(t *testing.T) {
	d := drive(t, 0, "c")
	d.enter(view("bb"))
	larger := Found{Zone: "c", View: view("ccc"), Asked: []string{"c0:1"}}
	var at []Time
	for d.now < 3600*second {
		for d.m.stage == serving {
			d.pass(max(d.m.Deadline()-d.now, 1))
			if d.m.round.open > 0 {
				d.found(larger)
			}
		}
		at = append(at, d.now)
		d.m.Left(d.now)
		d.settle()
		d.found(Found{View: larger.View, Asked: []string{"c0:1"}})
		d.pass(joinTimeout)
		d.m.Failed(d.now)
		d.pass(maxPause)
		d.found(Found{View: view("b"), Asked: []string{"b1:1"}})
		d.m.Entered(d.now, "b0:2")
		d.m.Installed(d.now, view("bb"))
		d.settle()
	}
	if most := int(3600*second/maxSearch) + 6; len(at) > most {
		t.Errorf("it leaves %d times in an hour, more than %d", len(at), most)
	}
	d.pass(maxSearch)
	d.found(larger)
	d.m.Left(d.now)
	d.settle()
	d.enter(view("bccc"))
	d.pass(searchInterval)
	if d.m.vain != 0 {
		t.Error("it has entered it, and waits on")
	}
	d.actions = nil
	d.m.Left(d.now)
	d.settle()
	d.expect("it looks for that no more", "Announce {Address:}", noDelegates, "AskZone c[c0:1 c1:1 c2:1]")

	d.enter(view("bb"))
	d.m.vain = 3
	d.pass(searchInterval)
	d.nothing("c")
	if d.m.vain != 0 {
		t.Error("there is no larger one any more, and it waits on")
	}
}
