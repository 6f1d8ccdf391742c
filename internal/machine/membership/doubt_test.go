package membership

import (
	"testing"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// asker is a member of five, as a driver sees it.
type asker struct {
	*Machine
	asked, told map[protocol.Rank]int
	wrong       int // questions that say a lost quorum where there is one, or do not say it
}

func newAsker(t *testing.T, change func(*Config)) *asker {
	t.Helper()
	v := firstView(5)
	var members []Member
	for _, m := range v.Members.All() {
		members = append(members, *m)
		members[len(members)-1].Version = wire.Version
	}
	v.Members, v.Version = MembersOf(members...), wire.Version
	c := Config{Self: members[0], View: v, Log: &testLog{}, DoubtTimeout: 100 * millisecond}
	if change != nil {
		change(&c)
	}
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{Machine: m, asked: map[protocol.Rank]int{}, told: map[protocol.Rank]int{}}
	a.step(1)
	return a
}

// step has the machine do what is due up to a time.
func (a *asker) step(until protocol.Time) {
	for now := min(max(a.Deadline(), a.now), until); ; now = min(a.nextCall(), until) {
		for to, b, ok := a.Next(now); ok; to, b, ok = a.Next(now) {
			f, err := parse(0, b)
			if err != nil {
				panic(err)
			}
			if f.asks {
				a.asked[to]++
			}
			if f.lost && !f.asks {
				a.told[to]++
			}
			if _, _, ok := a.Quorum(); f.asks && f.lost == ok {
				a.wrong++
			}
		}
		if now == until {
			return
		}
	}
}

// nextCall returns when a machine that has nothing left to do wants to be called again.
func (m *Machine) nextCall() protocol.Time {
	if m.Deadline() <= m.now {
		panic("a deadline, and nothing to do")
	}
	return m.Deadline()
}

func (a *asker) wantQuorum(t *testing.T, want bool) {
	t.Helper()
	if _, _, ok := a.Quorum(); ok != want {
		t.Errorf("at %d ms: a quorum: %v, want %v", a.now/millisecond, ok, want)
	}
}

// A member whose neighbor is quiet asks all others. If too few answer in time, it has no
// quorum, tells those that it hears, and suspects none.
func TestMemberThatHearsTooFewHasNoQuorum(t *testing.T) {
	a := newAsker(t, nil)
	a.SetQuiet(second, true)
	a.step(second + 99*millisecond)
	a.wantQuorum(t, true)
	for r := range protocol.Rank(4) {
		if a.asked[r+1] != asksPerRound {
			t.Errorf("rank %d is asked %d times", r+1, a.asked[r+1])
		}
	}
	a.Heard(3)
	a.step(second + 100*millisecond)
	a.wantQuorum(t, false)
	if len(a.told) != 1 || a.told[3] != 1 {
		t.Errorf("it tells %v, want rank 3 once", a.told)
	}
	if s := a.suspected(); s != nil {
		t.Errorf("it suspects %v", s.each())
	}
	a.Heard(1)
	a.wantQuorum(t, true)
	a.Heard(3)
	a.SetQuiet(a.now, false)
	a.step(5 * second)
	a.asked = map[protocol.Rank]int{}
	a.step(10 * second)
	if a.asked[1]+a.asked[2] > 0 || a.live[asked] != nil {
		t.Error("it asks on although all is well")
	}
}

// A member asks on while it has no quorum or its neighbor is quiet, less often if it knows already
// that it has none. Its questions say that it has none: a member that was still in the
// view before has ignored it.
func TestMemberAsksOn(t *testing.T) {
	for _, lost := range []bool{true, false} {
		a := newAsker(t, nil)
		a.SetQuiet(second, true)
		for end := 5 * second; a.now < end; a.step(a.now + 10*millisecond) {
			a.Heard(1)
			if !lost {
				a.Heard(2)
			}
			if a.now < 2*second {
				a.asked = map[protocol.Rank]int{}
			}
		}
		a.wantQuorum(t, !lost)
		if a.wrong > 0 {
			t.Errorf("lost %t: %d questions are wrong about it", lost, a.wrong)
		}
		if n := a.asked[3]; lost && (n < 8 || n > 13) || !lost && (n < 80 || n > 140) {
			t.Errorf("lost %t: in 3 s, rank 3 is asked %d times", lost, n)
		}
	}
}

// A member that others have told of a lost quorum asks, too.
func TestMemberThatIsToldAsks(t *testing.T) {
	a := newAsker(t, nil)
	f := frame{kind: Status, view: a.view.Number, incarnation: a.view.Members.At(2).Incarnation, lost: true}
	if err := a.Receive(second, 2, f.append(nil)); err != nil {
		t.Fatal(err)
	}
	until := a.doubt.until
	if err := a.Receive(second+50*millisecond, 2, f.append(nil)); err != nil || a.doubt.until != until {
		t.Errorf("told again, it begins again: %t, %v", a.doubt.until != until, err)
	}
	a.step(second + 100*millisecond)
	a.wantQuorum(t, false)
	b := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
	if err := b.Receive(second, 2, f.append(nil)); err != nil || b.live[asked] != nil {
		t.Errorf("a member that does not doubt asks: %v", err)
	}
}

// A member that loses its quorum by suspicions tells the others, once each time: they may not have
// a connection to any of the dead. Where members do not doubt, it tells nobody.
func TestMemberWithoutQuorumTells(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"":                      nil,
		"no doubts":             func(c *Config) { c.DoubtTimeout = 0 },
		"any number may decide": func(c *Config) { c.NoQuorum = true },
	} {
		a := newAsker(t, change)
		a.step(second)
		for round := range 2 {
			for r := range protocol.Rank(3) {
				a.step(a.now + millisecond)
				if a.told[4] != map[bool]int{true: round}[name == ""] {
					t.Errorf("%q: it has its quorum, and tells %v", name, a.told)
				}
				a.Suspect(a.now, r+1, 1)
			}
			a.step(a.now + 10*second)
			if want := map[bool]int{true: round + 1}[name == ""]; a.told[4] != want || len(a.told) > 1 {
				t.Errorf("%q, round %d: it tells %v", name, round, a.told)
			}
			a.Trust(a.now, 1, 1)
			a.Trust(a.now, 2, 1)
			a.Trust(a.now, 3, 1)
		}
	}
}

// No member is asked, or doubted, where that would prove nothing.
func TestNoDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		then   func(*asker)
	}{
		"this process did not run":  {then: func(a *asker) { a.now += second }},
		"any number may decide":     {change: func(c *Config) { c.NoQuorum = true }},
		"heartbeats suspect nobody": {change: func(c *Config) { c.DoubtTimeout = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsker(t, c.change)
			a.SetQuiet(second, true)
			a.step(second)
			if c.then != nil {
				c.then(a)
			}
			a.step(a.now + 100*millisecond)
			a.wantQuorum(t, true)
		})
	}
}

// A member that lacks descriptors has longer to reach the others, and knows in the end that
// it does not.
func TestImpairedMemberKnowsInTheEnd(t *testing.T) {
	a := newAsker(t, nil)
	a.SetImpaired(true)
	a.SetQuiet(second, true)
	a.step(second + maxDoubt*100*millisecond)
	a.wantQuorum(t, true)
	a.step(second + (maxDoubt+1)*100*millisecond)
	a.wantQuorum(t, false)
}
