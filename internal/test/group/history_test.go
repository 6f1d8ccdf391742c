package group_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What residents have told, taken together, says whether the promises about views
// and messages were kept.

// checkHistory checks what holds always: a view's number stands for one set of
// members; all who were in a view and went on to the next have the same messages
// of it; and at no resident did a message come twice, or before an earlier one of
// its root, or of a root outside its view. It returns how many messages came.
func checkHistory(t *testing.T, rs *residents) (delivered int) {
	t.Helper()
	for _, o := range rs.all { // they may still be telling something
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	views := agreedViews(t, rs)
	witnesses := map[uint64]*observed{}
	for _, o := range rs.all {
		delivered += len(o.have)
		checkOrder(t, o, views)
		for _, s := range o.spans {
			for v := first(s); v < last(s); v++ { // each view is decided in the one before
				if witnesses[v] == nil {
					witnesses[v] = o
				}
				checkSameView(t, v, witnesses[v], o)
			}
		}
	}
	return delivered
}

func first(s span) uint64 {
	if len(s) == 0 {
		return 0
	}
	return s[0].number
}

func last(s span) uint64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].number
}

// agreedViews returns the members of each view that somebody was seen in.
func agreedViews(t *testing.T, rs *residents) map[uint64][]int {
	t.Helper()
	views := map[uint64][]int{}
	for _, o := range rs.all {
		for _, v := range slices.Concat(o.spans...) {
			if known, ok := views[v.number]; ok && !slices.Equal(known, v.members) {
				t.Errorf("view %d is of %v, and at resident %d of %v", v.number, known, o.who, v.members)
			}
			views[v.number] = v.members
		}
	}
	return views
}

// checkOrder checks the messages of one resident.
func checkOrder(t *testing.T, o *observed, views map[uint64][]int) {
	t.Helper()
	next := map[int]int{}
	for _, a := range o.have {
		if a.number < next[a.root] {
			t.Errorf("resident %d: message %d of root %d came twice or late", o.who, a.number, a.root)
		}
		next[a.root] = a.number + 1
		if members, ok := views[a.view]; ok && !slices.Contains(members, a.root) {
			t.Errorf("resident %d: message %d of root %d came in view %d, which is of %v", o.who, a.number, a.root, a.view,
				members)
		}
	}
}

// checkSameView compares what two have delivered in a view, except for what they
// have sent themselves.
func checkSameView(t *testing.T, view uint64, a, b *observed) {
	t.Helper()
	if x, y := deliveredIn(view, a, b.who), deliveredIn(view, b, a.who); fmt.Sprint(x) != fmt.Sprint(y) {
		t.Errorf("same-view delivery: in view %d, resident %d has (root, number) %v, and %d has %v", view, a.who, minus(x, y),
			b.who, minus(y, x))
	}
}

// deliveredIn returns what a resident has of a view, except of a root, by root and
// number.
func deliveredIn(view uint64, o *observed, but int) (messages [][2]int) {
	for _, a := range o.have {
		if a.view == view && a.root != but {
			messages = append(messages, [2]int{a.root, a.number})
		}
	}
	slices.SortFunc(messages, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return messages
}

// minus returns what is in x and not in y.
func minus(x, y [][2]int) [][2]int {
	return slices.DeleteFunc(slices.Clone(x), func(m [2]int) bool { return slices.Contains(y, m) })
}

// checkStayed checks that some residents have stayed, and have all messages of each
// other.
func checkStayed(t *testing.T, rs *residents, some []int, patience time.Duration) {
	t.Helper()
	stayed := stayers(t, rs, some, patience)
	for _, who := range stayed {
		checkComplete(t, rs, rs.all[who], stayed)
	}
}

// stayers returns which of some residents have been members all the time. All
// should. A broadcast may have been held up for too long by a change of the view,
// but not have failed for another reason. Where the system is so busy that one of
// them did not get to run for longer than patience, some may have been taken for
// dead, which is only logged.
func stayers(t *testing.T, rs *residents, some []int, patience time.Duration) (stayed []int) {
	t.Helper()
	complain, late := t.Errorf, time.Duration(0)
	for _, who := range some {
		late = max(late, rs.all[who].latest())
	}
	if late > patience {
		t.Logf("this system is busy: it has let a resident wait for %v", late)
		complain = t.Logf
	}
	for _, who := range some {
		if over, failed := rs.all[who].troubles(); len(over) > 0 || slices.ContainsFunc(failed, notHeldUp) {
			complain("resident %d should have stayed: over %q, failed %q", who, over, failed)
		} else {
			stayed = append(stayed, who)
		}
	}
	return stayed
}

func notHeldUp(failure string) bool {
	return !strings.Contains(failure, context.DeadlineExceeded.Error())
}

// checkComplete checks that a resident has always had others in its view, and has
// all their messages.
func checkComplete(t *testing.T, rs *residents, o *observed, others []int) {
	t.Helper()
	has := map[[2]int]bool{}
	for _, a := range o.have {
		has[[2]int{a.root, a.number}] = true
	}
	for _, root := range others {
		for _, v := range slices.Concat(o.spans...) {
			if !slices.Contains(v.members, root) {
				t.Errorf("resident %d: view %d has lost %d", o.who, v.number, root)
			}
		}
		for _, number := range rs.all[root].sent {
			if root != o.who && !has[[2]int{root, number}] {
				t.Errorf("resident %d: message %d of root %d never came", o.who, number, root)
			}
		}
	}
}
