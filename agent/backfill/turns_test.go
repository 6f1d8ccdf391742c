package backfill

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever agents do, each is asked until it has answered, is gone, or has failed maxFailures
// times in a row; no agent is asked before its time; and the asking ends, at the latest
// returnTimeout after there was no more to ask.
func TestTurnsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var turns turns[int]
		agents := rapid.IntRange(0, 2*maxAsked).Draw(t, "agents")
		for a := range agents {
			turns.Add(a)
		}
		more := rapid.Bool().Draw(t, "more")
		now, asked, answered, failures := time.Duration(0), -1, 0, 0
		earliest := now
		s := turns.step(now, more)
		for ; s != (Step[int]{}); s = turns.step(now, more) {
			if !s.Ask {
				now += s.Wait
				if now > time.Hour {
					t.Fatal("the asking does not end")
				}
				continue
			}
			if s.Agent != asked {
				if s.Agent != asked+1 {
					t.Fatalf("agent %d is asked after %d", s.Agent, asked)
				}
				asked, failures, earliest = s.Agent, 0, 0
			}
			if now < earliest || failures == maxFailures {
				t.Fatalf("agent %d is asked at %v after %d failures", s.Agent, now, failures)
			}
			now += time.Duration(rapid.IntRange(0, 1000).Draw(t, "ms")) * time.Millisecond
			switch rapid.IntRange(0, 3).Draw(t, "answer") {
			case 0:
				turns.Pass()
				answered++
			case 1:
				turns.heard() // a page
				failures = 0
			case 2:
				if !turns.Failed(now, true) || !turns.failed[s.Agent] {
					t.Fatal("an agent that is gone is not given up")
				}
			default:
				failures++
				if givenUp := turns.Failed(now, false); givenUp != (failures == maxFailures) || givenUp != turns.failed[s.Agent] {
					t.Fatalf("after %d failures, given up: %t", failures, givenUp)
				}
				earliest = now + askAgain
			}
		}
		if asked+1 < agents && answered < maxAsked {
			t.Fatalf("%d of %d agents were asked, and %d have answered", asked+1, agents, answered)
		}
		if more && now < returnTimeout {
			t.Fatalf("others are waited for until %v", now)
		}
	})
}
