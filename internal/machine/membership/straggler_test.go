package membership

import "testing"

// A member that is behind gets the decisions that it misses. If they are not known any more, it
// learns that it is removed, or is too far behind; a member that has joined since cannot know.
func TestMissedDecisions(t *testing.T) {
	const number = 100
	for what, c := range map[string]struct {
		known, view uint64 // decisions, and the view of the straggler
		incarnation uint64
		commits     uint64
		removed     bool
	}{
		"a view behind":                     {keptCommits, number - 1, 1, 1, false},
		"as far behind as is known":         {keptCommits, number - keptCommits, 1, keptCommits, false},
		"further behind":                    {keptCommits, number - keptCommits - 1, 1, 0, true},
		"further behind a joiner":           {3, number - 4, 1, 0, false},
		"as far behind as a joiner knows":   {3, number - 3, 1, 3, false},
		"behind one that knows nothing":     {0, number - 1, 1, 0, false},
		"just not too far behind":           {0, number - keptCommits + 1, 1, 0, false},
		"too far behind":                    {0, number - keptCommits, 1, 0, true},
		"removed, and known":                {3, number - 3, 9, 3, false},
		"removed, and not known":            {3, number - 4, 9, 0, true},
		"removed, and nothing is known":     {0, number - 1, 9, 0, true},
		"removed long ago, and not known":   {3, 1, 9, 0, true},
		"a member of the first view, alone": {0, 1, 1, 0, true},
	} {
		v := firstView(3)
		v.Number = number
		m, err := New(Config{Self: *v.Members.At(0), View: v, Log: forgetfulLog{}})
		if err != nil {
			t.Fatal(err)
		}
		for n := number - c.known + 1; n <= number; n++ {
			m.history = append(m.history, &value{number: n, slots: 3, removed: newSet(3)})
		}
		late := frame{kind: Status, view: c.view, incarnation: c.incarnation}
		if err := m.Receive(1, 2, late.append(nil)); err != nil {
			t.Fatal(err)
		}
		var commits, removed []*frame
		for _, s := range m.outbox {
			if s.frame.kind == Commit {
				commits = append(commits, &s.frame)
			} else if s.frame.kind == Removed {
				removed = append(removed, &s.frame)
			}
		}
		if uint64(len(commits)) != c.commits || len(removed) == 1 != c.removed {
			t.Errorf("%s: %d commits, removed %d times", what, len(commits), len(removed))
		}
		for i, f := range commits {
			if f.value.number != c.view+1+uint64(i) {
				t.Errorf("%s: commit %d is about view %d", what, i, f.value.number)
			}
		}
	}
}

// A member that learns of a later view than the next one asks the sender, but not a second time at
// once. One that learns that it is removed by a later view ends.
func TestMemberThatIsBehindAsks(t *testing.T) {
	for number, installs := range map[uint64]bool{1: false, 2: false, 3: true, 4: false, 5: false} {
		a := newAsker(t, func(c *Config) { c.View.Number = 2 })
		commit := frame{kind: Commit, view: number, incarnation: 1, value: &value{
			number: number, version: a.view.Version,
			slots: 5, removed: newSet(5),
		}}
		for range 2 {
			if err := a.Receive(a.now, 3, commit.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		if asked := a.sentTo(3, Status); (asked == 1) != (number > 3) || asked > 1 || (a.view.Number == 3) != installs {
			t.Errorf("a decision about view %d: it asks %d times, and is in view %d", number, asked, a.view.Number)
		}
		b := newAsker(t, func(c *Config) { c.View.Number = 2 })
		removed := frame{kind: Removed, view: number, incarnation: 1}
		if err := b.Receive(b.now, 3, removed.append(nil)); err != nil || (b.done != nil) != (number > 2) {
			t.Errorf("removed by view %d: it ends: %t, %v", number, b.done != nil, err)
		}
	}
}

// What a member that is behind asks or reports shows that it is behind. Its late answers do not: they
// are about what is decided.
func TestLateFrames(t *testing.T) {
	for kind := range Kind(Kinds) {
		if kind == Commit || kind == Removed {
			continue
		}
		a := newAsker(t, func(c *Config) { c.View.Number = 2 })
		a.history = []*value{{number: 2, slots: 5, removed: newSet(5)}}
		late := frame{
			kind: kind, view: 1, incarnation: 1, members: newSet(5), value: a.history[0],
			candidate: candidate{Member: Member{Identity: "x"}},
		}
		if kind == Promise {
			late.value = nil
		}
		if err := a.Receive(a.now, 3, late.append(nil)); err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		answers := kind == Promise || kind == Accept || kind == Cancel || kind == Pong
		if told := a.sentTo(3, Commit) == 1; told == answers {
			t.Errorf("%v: the decision is told: %t", kind, told)
		}
	}
}

// A member keeps as many decisions as another one may miss.
func TestKeptDecisions(t *testing.T) {
	a := newAsker(t, nil)
	for number := uint64(2); number < 2*keptCommits; number++ {
		d := &value{number: number, version: a.view.Version, slots: 5, removed: newSet(5)}
		if err := a.Learn(a.now, Decisions{[]*value{d}}); err != nil {
			t.Fatal(err)
		}
		if want := min(number-1, keptCommits); uint64(len(a.history)) != want {
			t.Fatalf("%d decisions are kept in view %d, want %d", len(a.history), number, want)
		}
	}
}
