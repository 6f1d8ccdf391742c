package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// right returns the histories of two processes that saw what they should, and of a third that
// was killed.
func right() []*history {
	a, b := Member{0, "a", 1}, Member{1, "b", 1}
	both, alone := []Member{a, b}, []Member{a, b, {2, "c", 2}}
	return []*history{
		{process: "a#1", ended: true, events: []Event{
			{Type: evView, At: 1, View: 1, Members: both, Self: &a},
			{Type: evSend, At: 2, Seq: 1},
			{Type: evSend, At: 3, Seq: 2},
			{Type: evReceipt, At: 4, Seq: 2, View: 1, Members: both},
			{Type: evCall, At: 5, Op: 1, Key: 3, Write: true, Value: "x"},
			{Type: evServe, At: 6, Until: 7, Partition: 3, Token: 1},
			{Type: evReturn, At: 8, Op: 1, Key: 3, Write: true, Value: "x"},
			{Type: evView, At: 9, View: 2, Members: alone, Self: &a},
			{Type: evCall, At: 10, Op: 3, Key: 3},
			{Type: evReturn, At: 14, Op: 3, Key: 3, Value: "x"},
			{Type: evEnd, At: 15},
		}},
		{process: "b#1", ended: true, events: []Event{
			{Type: evView, At: 1, View: 1, Members: both, Self: &b},
			{Type: evDeliver, At: 3, View: 1, Rank: 0, From: "a#1", Seq: 1},
			{Type: evDeliver, At: 4, View: 1, Rank: 0, From: "a#1", Seq: 2},
			{Type: evView, At: 9, View: 2, Members: alone, Self: &b},
			{Type: evServe, At: 11, Until: 12, Partition: 3, Token: 2},
			{Type: evEnd, At: 15},
		}},
		{process: "c#1", events: []Event{{Type: evView, At: 10, View: 2, Members: alone, Self: &Member{2, "c", 2}}}},
	}
}

// find returns the event of a type in a history.
func find(h *history, kind string, nth int) *Event {
	for i := range h.events {
		if h.events[i].Type == kind {
			if nth == 0 {
				return &h.events[i]
			}
			nth--
		}
	}
	panic("no " + kind)
}

// A receipt covers what was sent in earlier memberships, unless an error has named it.
func TestReceiptsAcrossMemberships(t *testing.T) {
	a, again, b := Member{0, "a", 1}, Member{0, "a", 3}, Member{1, "b", 1}
	for since, violations := range map[int]int{0: 1, 3: 0} {
		c := &checker{identity: map[identity]*history{}, views: map[uint64][]Member{}}
		c.histories = []*history{
			{process: "a#1", ended: true, events: []Event{
				{Type: evView, View: 1, Members: []Member{a, b}, Self: &a},
				{Type: evSend, Seq: 1},
				{Type: evSend, Seq: 2},
				{Type: evSend, Seq: 3}, // it is cut off, and nobody receives this one
				{Type: evView, View: 3, Members: []Member{again, b}, Self: &again},
				{Type: evSend, Seq: 4},
				{Type: evSend, Seq: 5},
				{Type: evReceipt, Seq: 5, Since: since, View: 3, Members: []Member{again, b}},
			}},
			{process: "b#1", ended: true, events: []Event{
				{Type: evView, View: 1, Members: []Member{a, b}, Self: &b},
				{Type: evDeliver, View: 1, From: "a#1", Seq: 1},
				{Type: evDeliver, View: 1, From: "a#1", Seq: 2},
				{Type: evView, View: 2, Members: []Member{b}, Self: &b},
				{Type: evView, View: 3, Members: []Member{again, b}, Self: &b},
				{Type: evDeliver, View: 3, From: "a#1", Seq: 4},
				{Type: evDeliver, View: 3, From: "a#1", Seq: 5},
			}},
		}
		c.checkViews()
		c.checkReceipts()
		if len(c.violations) != violations || violations > 0 && c.violations[0].rule != "receipts cover all memberships" {
			t.Errorf("up to %d is excepted: %v", since, c.violations)
		}
	}
}

// A group that begins again after a planned stop of all counts its views from 1.
func TestGroupsAfterPlannedStops(t *testing.T) {
	stop := []Event{{Type: evFault, Err: leaveAll, At: 20, Until: 30}}
	h := right()
	for _, second := range right() {
		second.process += "2" // of the next start
		for i := range second.events {
			e := &second.events[i]
			e.At += 100
			e.Members = slices.Clone(e.Members)
			if e.Self != nil {
				self := *e.Self
				e.Self = &self
			}
			e.Until += 100
			if e.Type == evServe {
				e.Token += 10
			}
			e.From = strings.Replace(e.From, "#1", "#12", 1)
			e.Op += 10
		}
		h = append(h, second)
	}
	if v := check(h, disks, stop, new(summary)); len(v) > 0 {
		t.Errorf("%v", v)
	}
	find(h[4], evServe, 0).Token = 2
	if v := check(h, disks, nil, new(summary)); !slices.ContainsFunc(v,
		func(v violation) bool { return v.rule == "tokens rise" }) {
		t.Errorf("tokens fall: %v", v)
	}
}

// Every rule finds what violates it, and nothing in histories that are right.
func TestRules(t *testing.T) {
	if v := check(right(), disks, nil, new(summary)); len(v) > 0 {
		t.Fatalf("right histories: %v", v)
	}
	for rule, contradict := range map[string]func(h []*history){
		"views agree":    func(h []*history) { find(h[1], evView, 1).Members = []Member{{0, "a", 1}} },
		"views rise":     func(h []*history) { h[1].events = append(h[1].events, h[1].events[0]) },
		"once, in order": func(h []*history) { find(h[1], evDeliver, 1).Seq = 1 },
		"no silent loss": func(h []*history) { find(h[1], evDeliver, 1).Seq = 3 },
		"receipts are true": func(h []*history) {
			h[1].events = slices.DeleteFunc(h[1].events, func(e Event) bool { return e.Type == evDeliver && e.Seq == 2 })
		},
		"view synchrony": func(h []*history) {
			a := h[0].events
			h[0].events = slices.Insert(a, 4, Event{Type: evDeliver, At: 4, View: 1, Rank: 2, From: "c#1", Seq: 1})
		},
		"one process for each ID":    func(h []*history) { find(h[2], evView, 0).Self = &Member{1, "b", 1} },
		"one owner for each token":   func(h []*history) { find(h[1], evServe, 0).Token = 1 },
		"one owner at a time":        func(h []*history) { find(h[0], evServe, 0).Until = 12 },
		"tokens rise":                func(h []*history) { find(h[0], evServe, 0).Token = 3 },
		"registers are linearizable": func(h []*history) { find(h[0], evReturn, 1).Value = "" },
		"the group recovers":         func(h []*history) { find(h[1], evView, 1).Err = "no quorum" },
	} {
		h := right()
		contradict(h)
		found := check(h, disks, nil, new(summary))
		if !slices.ContainsFunc(found, func(v violation) bool { return v.rule == rule }) {
			t.Errorf("%s: not found, but %v", rule, found)
		}
		if err := writeTimeline(filepath.Join(t.TempDir(), "timeline.html"), 1, h, nil, found); err != nil {
			t.Error(err)
		}
	}
}

// A job has the results that it has without a failure, and ends.
func TestJobs(t *testing.T) {
	result := Event{Type: evResult, Seq: 2, Value: jobResult(5, 2)}
	h := &history{process: "job#0", ended: true, events: []Event{result, {Type: evEnd}}}
	if v := checkJob(5, []*history{h, {killed: true, events: h.events[:1]}}, new(summary)); len(v) > 0 ||
		result.Value != "[20 5]" {
		t.Errorf("%s: %v", result.Value, v)
	}
	if v := checkJob(5, []*history{{events: []Event{result}}}, new(summary)); len(v) != 1 || v[0].rule != "jobs finish" {
		t.Errorf("%v", v)
	}
	h.events[0].Seq = 3
	if v := checkJob(5, []*history{h}, new(summary)); len(v) != 1 || v[0].rule != "results are right" {
		t.Errorf("%v", v)
	}
}

// A write without an answer may have been done, and need not.
func TestUnansweredWrites(t *testing.T) {
	for _, value := range []string{"x", "y"} {
		h := right()
		h[2].events = append(h[2].events, Event{Type: evCall, At: 9, Op: 9, Key: 3, Write: true, Value: "y"})
		find(h[0], evReturn, 1).Value = value
		if v := check(h, disks, nil, new(summary)); len(v) > 0 {
			t.Errorf("read %q: %v", value, v)
		}
	}
}

// The mutants are still in the code.
func TestMutantsApply(t *testing.T) {
	for _, m := range mutants {
		source, err := os.ReadFile(filepath.Join("../..", m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: its text occurs %d times in %s", m.name, n, m.file)
		}
	}
}

// The store refuses tokens below the highest.
func TestStoreFences(t *testing.T) {
	old, next := store{dir: t.TempDir(), cache: map[int]cached{}}, store{cache: map[int]cached{}}
	next.dir = old.dir
	for _, step := range []struct {
		s     *store
		r     request
		token uint64
		want  string
		err   error
	}{
		{&old, request{Key: 1, Write: true, Value: "a"}, 3, "a", nil},
		{&next, request{Key: 1}, 10, "a", nil},
		{&old, request{Key: 1, Write: true, Value: "b"}, 3, "", errNotDone},
		{&next, request{Key: 1, Write: true, Value: "c"}, 10, "c", nil},
		{&old, request{Key: 1}, 12, "c", nil},
	} {
		if got, err := step.s.do(step.r, step.token); got != step.want || err != step.err {
			t.Errorf("%+v by %d: %q, %v", step.r, step.token, got, err)
		}
	}
}
