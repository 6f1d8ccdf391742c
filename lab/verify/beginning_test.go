package main

import (
	"slices"
	"testing"
)

// begun returns the histories of two processes that begin a group with different states, and of one
// that joins them.
func begun() []*history {
	a, b, c := Member{0, "m0", 1}, Member{1, "m1", 1}, Member{2, "m2", 2}
	began := func(process string, version int, self Member, view uint64) *history {
		return &history{process: process, events: []Event{
			{Type: evOffer, At: 1, Seq: version},
			{Type: evView, At: 2, View: view, Members: []Member{a, b, c}[:1+view], Self: &self},
			{Type: evBegin, At: 3, Seq: 4, From: "m1#1"},
		}}
	}
	return []*history{began("m0#1", 2, a, 1), began("m1#1", 4, b, 1), began("m2#1", 7, c, 2)}
}

// Members that begin a group have one state, the newest of theirs. One that joins later has it, too.
func TestRulesOfBeginnings(t *testing.T) {
	for rule, contradict := range map[string]func(h []*history){
		"":                                     func([]*history) {},
		"a group begins with one state":        func(h []*history) { find(h[2], evBegin, 0).From = "m2#1" },
		"a group begins with the newest state": func(h []*history) { find(h[0], evOffer, 0).Seq = 5 },
	} {
		h := begun()
		contradict(h)
		c := &checker{histories: h}
		n := c.checkBeginnings()
		if found := slices.ContainsFunc(c.violations, func(v violation) bool { return v.rule == rule }); n != 3 ||
			found != (rule != "") || rule == "" && len(c.violations) > 0 {
			t.Errorf("%q: %d states compared, %v", rule, n, c.violations)
		}
	}
}

// A process with a newer state that dies before another one has its state does not count.
func TestNewestStateIsLostWithItsProcess(t *testing.T) {
	for name, c := range map[string]struct {
		last       uint64 // view of the process with the newest state
		violations int
	}{"dies before": {1, 0}, "lives": {2, 1}} {
		h := begun()[:2]
		for i := range h {
			later := h[i].events[1]
			later.View = 2
			h[i].events = slices.Insert(h[i].events, 2, later)
		}
		self := Member{2, "m2", 1}
		newest := &history{process: "m2#1", events: []Event{{Type: evOffer, At: 1, Seq: 9}}}
		for view := range c.last {
			newest.events = append(newest.events, Event{Type: evView, At: 2, View: view + 1, Self: &self})
		}
		checked := &checker{histories: append(h, newest)}
		checked.checkBeginnings()
		if len(checked.violations) != c.violations {
			t.Errorf("%s: %v, want %d violations", name, checked.violations, c.violations)
		}
	}
}

// A key that was written is found, and a read is not older than what was written before it.
func TestRulesOfKeys(t *testing.T) {
	keys := func() []*history {
		return []*history{{process: "client-0-0", ended: true, events: []Event{
			{Type: evCall, At: 1, Op: 1, Key: 3},
			{Type: evReturn, At: 2, Op: 1, Key: 3},
			{Type: evCall, At: 3, Op: 2, Key: 3, Write: true, Value: "x"},
			{Type: evReturn, At: 4, Op: 2, Key: 3, Write: true, Value: "x"},
			{Type: evCall, At: 5, Op: 3, Key: 3, Write: true, Value: "y"},
			{Type: evReturn, At: 6, Op: 3, Key: 3, Write: true, Value: "y"},
			{Type: evCall, At: 7, Op: 4, Key: 3},
			{Type: evReturn, At: 8, Op: 4, Key: 3, Value: "y"},
		}}}
	}
	for read, rule := range map[string]string{
		"y": "", "x": "registers are linearizable",
		"": "keys outlive gated restarts",
	} {
		h := keys()
		find(h[0], evReturn, 3).Value = read
		v := check(h, agents, nil, new(summary))
		if rule == "" && len(v) > 0 || rule != "" && (len(v) == 0 || v[0].rule != rule) {
			t.Errorf("a read of %q: %v", read, v)
		}
	}
}

// Registers in memory are others after a stop of all, and tokens of locks are not.
func TestGroupsOfStateInMemory(t *testing.T) {
	play := func(process string, at int64, token uint64, read string) *history {
		a := Member{0, "m0", 1}
		return &history{process: process, events: []Event{
			{Type: evView, At: at, View: 1, Members: []Member{a}, Self: &a},
			{Type: evCall, At: at + 1, Op: 1, Key: 3},
			{Type: evReturn, At: at + 2, Op: 1, Key: 3, Value: read},
			{Type: evCall, At: at + 3, Op: 2, Key: 3, Write: true, Value: process},
			{Type: evReturn, At: at + 4, Op: 2, Key: 3, Write: true, Value: process},
			{Type: evHold, At: at + 5, Until: at + 6, Token: token},
		}}
	}
	for token, rule := range map[uint64]string{8: "", 6: "tokens of locks rise"} {
		stop := []Event{{Type: evFault, At: 50, Until: 60, Err: killAll}}
		v := check([]*history{play("m0#1", 1, 7, ""), play("m0#2", 100, token, "")}, memory, stop, new(summary))
		// nobody has ended in order
		v = slices.DeleteFunc(v, func(v violation) bool { return v.rule == "the group recovers" })
		if rule == "" && len(v) > 0 || rule != "" && (len(v) != 1 || v[0].rule != rule) {
			t.Errorf("token %d: %v", token, v)
		}
	}
}
