package membership

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// The coordinator acts on a request when the batch window ends, neither earlier nor later, and
// asks to be called then. A member repeats its request until there is a view: that does not make
// the window any longer.
func TestRequestsWaitForTheBatchWindow(t *testing.T) {
	from := func(f frame) func(a *asker) {
		return func(a *asker) {
			f.view, f.incarnation = 1, 1
			if err := a.Receive(a.now, 3, f.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, ask := range map[string]func(a *asker){
		"its own leave":   func(a *asker) { a.Leave(a.now) },
		"its own version": func(a *asker) { _ = a.RaiseVersion(a.now, a.view.Version+1) },
		"its own candidate": func(a *asker) {
			a.Join(a.now, 1, Member{Identity: "new", Nonce: 9, Version: a.view.Version},
				false)
		},
		"another's leave":   from(frame{kind: Leave}),
		"another's meta":    from(frame{kind: MetaChange, wanted: attributes{meta: "x"}}),
		"another's version": func(a *asker) { from(frame{kind: Raise, version: a.view.Version + 1})(a) },
		"another's joiner": func(a *asker) {
			from(frame{kind: JoinRequest, candidate: candidate{Member: Member{
				Rank: protocol.NoRank, Identity: "new", Nonce: 9,
				Version: a.view.Version,
			}}})(a)
		},
	} {
		a := newAsker(t, func(c *Config) { c.View.Version-- })
		a.step(second)
		due := a.now + a.config.BatchWindow
		for ; a.now < due; a.step(a.now + millisecond) {
			ask(a)
			a.step(a.now)
			if a.Deadline() > due || a.stats.Ballots > 0 {
				t.Fatalf("%s: %d attempts after %d ms, called again in %d ms", what, a.stats.Ballots, (a.now-second)/millisecond,
					(a.Deadline()-a.now)/millisecond)
			}
		}
		if a.stats.Ballots != 1 {
			t.Errorf("%s: %d attempts at the end of the window", what, a.stats.Ballots)
		}
	}
}

// A coordinator whose attempt has failed begins the next one when its pause is over, at the time
// at which it asks to be called.
func TestNextAttemptBeginsAfterThePause(t *testing.T) {
	a := newAsker(t, func(c *Config) { c.DoubtTimeout = 0 })
	a.Suspect(a.now, 4, 1)
	for a.step(a.now + millisecond); a.proposer != nil; a.step(a.now + millisecond) {
	}
	pong := frame{kind: Pong, view: 1, incarnation: 1}
	for r := range protocol.Rank(3) {
		if err := a.Receive(a.now, r+1, pong.append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	pause := a.pause
	for a.Deadline() < pause {
		a.step(a.Deadline())
		if a.proposer != nil {
			t.Fatalf("it tries again %d ms too early", (pause-a.now)/millisecond)
		}
	}
	if a.Deadline() != pause {
		t.Errorf("it asks to be called %d ms too late", (a.Deadline()-pause)/millisecond)
	}
	a.step(pause)
	if a.proposer == nil {
		t.Error("it does not try again")
	}
}
