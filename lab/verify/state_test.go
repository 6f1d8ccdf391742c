package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// rightState returns the histories of two processes that use a queue and a lock as they should. The
// second is cut off for a while, and told so.
func rightState() []*history {
	a, b, again := Member{0, "m0", 1}, Member{1, "m1", 1}, Member{1, "m1", 3}
	return []*history{
		{process: "m0#1", ended: true, events: []Event{
			{Type: evView, At: 1, View: 1, Members: []Member{a, b}, Self: &a},
			{Type: evCall, At: 2, Op: 1, Key: queueKey, Write: true, Value: "x"},
			{Type: evReturn, At: 3, Op: 1, Key: queueKey, Write: true, Value: "x"},
			{Type: evCall, At: 4, Op: 2, Key: queueKey, Write: true, Value: "y"},
			{Type: evReturn, At: 5, Op: 2, Key: queueKey, Write: true, Value: "y"},
			{Type: evHold, At: 6, Until: 7, Token: 1},
			{Type: evHold, At: 6, Until: 8, Token: 1},
			{Type: evRelease, At: 9, Token: 1},
			{Type: evView, At: 20 + behind, View: 2, Members: []Member{a}, Self: &a},
			{Type: evView, At: 90 + 3*behind, View: 3, Members: []Member{a, again}, Self: &a},
			{Type: evCall, At: 91 + 3*behind, Op: 3, Key: 1},
			{Type: evReturn, At: 92 + 3*behind, Op: 3, Key: 1},
			{Type: evEnd, At: 100 + 3*behind},
		}},
		{process: "m1#1", ended: true, events: []Event{
			{Type: evView, At: 1, View: 1, Members: []Member{a, b}, Self: &b},
			{Type: evCall, At: 10, Op: 1, Key: queueKey},
			{Type: evReturn, At: 11, Op: 1, Key: queueKey, Value: "x"},
			{Type: evCall, At: 12, Op: 2, Key: queueKey},
			{Type: evReturn, At: 13, Op: 2, Key: queueKey, Value: "y"},
			{Type: evCall, At: 14, Op: 3, Key: queueKey},
			{Type: evReturn, At: 15, Op: 3, Key: queueKey},
			{Type: evHold, At: 16, Until: 17, Token: 2},
			{Type: evView, At: 19 + behind, View: 1, Members: []Member{a, b}, Self: &b, Err: "no quorum"},
			{Type: evView, At: 90 + 3*behind, View: 3, Members: []Member{a, again}, Self: &again},
			{Type: evEnd, At: 100 + 3*behind},
		}},
	}
}

// Every rule of state in memory finds what violates it, and nothing in histories that are right.
func TestRulesOfState(t *testing.T) {
	cut := []Event{{Type: evFault, At: 18, Until: 80 + 3*behind, Err: "cut", Hosts: []int{1}}}
	var s summary
	if v := check(rightState(), memory, cut, &s); len(v) > 0 || s.changes != 2 || len(s.vacant) != 0 || s.calls != 6 {
		t.Fatalf("right histories: %v, %+v", v, s)
	}
	for rule, contradict := range map[string]func(h []*history){
		"what is taken was put":   func(h []*history) { find(h[1], evReturn, 1).Value = "z" },
		"elements are taken once": func(h []*history) { find(h[1], evReturn, 1).Value = "x" },
		"the queue is in order": func(h []*history) {
			find(h[1], evReturn, 0).Value,
				find(h[1], evReturn, 1).Value = "y", "x"
		},
		"a queue with elements is not empty": func(h []*history) {
			find(h[1], evReturn, 0).Value,
				find(h[1], evReturn, 2).Value = "", "x"
		},
		"no element is lost":        func(h []*history) { find(h[1], evReturn, 0).Value = "" },
		"one holder for each token": func(h []*history) { find(h[1], evHold, 0).Token = 1 },
		"one holder at a time":      func(h []*history) { find(h[0], evHold, 1).Until = 18 },
		"tokens of locks rise":      func(h []*history) { find(h[0], evHold, 0).Token, find(h[0], evHold, 1).Token = 3, 3 },
		"a minority knows in time":  func(h []*history) { find(h[1], evView, 1).Type = evNotice },
	} {
		h := rightState()
		contradict(h)
		found := check(h, memory, cut, new(summary))
		if !slices.ContainsFunc(found, func(v violation) bool { return v.rule == rule }) {
			t.Errorf("%s: not found, but %v", rule, found)
		}
	}
}

// A call without an answer may have taken an element.
func TestUnansweredTakes(t *testing.T) {
	h := rightState()
	*find(h[1], evReturn, 0) = Event{Type: evNotice, At: 11}
	if v := check(h, memory, nil, new(summary)); len(v) > 0 {
		t.Error(v)
	}
}

// A lock whose holder has not released it has none for a while.
func TestVacantLocks(t *testing.T) {
	h := rightState()
	find(h[0], evRelease, 0).Type = evNotice
	var s summary
	if v := check(h, memory, nil, &s); len(v) > 0 || !slices.Equal(s.vacant, []time.Duration{8}) {
		t.Error(v, s.vacant)
	}
}

// Plans follow from the seed, keep to the time and to the faults of their kind, and survive being
// written.
func TestPlans(t *testing.T) {
	for _, kind := range []string{disks, memory} {
		seen := map[string]bool{}
		for seed := range uint64(200) {
			plan := newPlan(rand.New(rand.NewPCG(seed, 0)), kind, 5, 40*time.Second)
			var took time.Duration
			for _, a := range plan {
				seen[a.Fault] = true
				took += a.Pause + a.For
				if len(a.Hosts) == 0 || a.Fault == "kill a minority" && len(a.Hosts) > 2 {
					t.Errorf("seed %d: %+v", seed, a)
				}
			}
			text, err := json.Marshal(plan)
			var again []action
			if err != nil || json.Unmarshal(text, &again) != nil || len(again) != len(plan) || took > 40*time.Second {
				t.Fatal(plan, err)
			}
		}
		if want := len(faultsOf(kind, false)) + len(faultsOf(kind, true)); len(seen) != want {
			t.Errorf("%s: %d of %d faults: %v", kind, len(seen), want, seen)
		}
	}
}

// A plan is shrunk to the actions without which its rule is not violated.
func TestShrink(t *testing.T) {
	plan := newPlan(rand.New(rand.NewPCG(1, 0)), disks, 5, 40*time.Second)
	plan = append(plan, action{Fault: "first"}, action{Fault: "between"}, action{Fault: "second"})
	runs := 0
	run := func(plan []action) error {
		runs++
		has := func(fault string) bool {
			return slices.ContainsFunc(plan, func(a action) bool { return a.Fault == fault })
		}
		switch {
		case has("first") && has("second"):
			return &violationsError{plan: plan, violations: []violation{{rule: "rule"}}}
		case has("second"):
			return &violationsError{plan: plan, violations: []violation{{rule: "another rule"}}}
		}
		return nil
	}
	failed, _ := asViolations(run(plan))
	shortest, err := shrink(failed, time.Now().Add(time.Minute), run)
	if err != nil || len(shortest.plan) != 2 || shortest.plan[0].Fault != "first" || shortest.plan[1].Fault != "second" {
		t.Errorf("%v after %d runs: %v", shortest.plan, runs, err)
	}
}

// A member that gets no answers any more is found, although the others get theirs.
func TestEveryMemberGoesOn(t *testing.T) {
	self := Member{0, "m0", 1}
	h := &history{process: "m0#1", ended: true, events: []Event{
		{Type: evView, At: 1, View: 1, Members: []Member{self}, Self: &self},
		{Type: evCall, At: 2 * settled, Op: 1, Key: 1},
		{Type: evReturn, At: 2*settled + 1, Op: 1, Key: 1},
		{Type: evEnd, At: 2*settled + 2},
	}}
	if v := check([]*history{h}, memory, nil, new(summary)); len(v) > 0 {
		t.Error(v)
	}
	h.events = slices.Delete(h.events, 2, 3)
	if v := check([]*history{h}, memory, nil, new(summary)); len(v) != 1 || v[0].rule != "the group recovers" {
		t.Error(v)
	}
}
