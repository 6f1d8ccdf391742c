package engine

import (
	"strings"
	"testing"
)

// Limits that a program leaves open have their defaults, those that it sets are kept, and
// those below zero are refused.
func TestLimitsOfTheLog(t *testing.T) {
	for _, c := range []struct{ calls, bytes, wantCalls, wantBytes int }{{0, 0, 256, 256 << 20}, {7, 9, 7, 9}} {
		e, _ := newRecorded(t, Config{KeepCalls: c.calls, KeepBytes: c.bytes})
		if calls, bytes := e.Comm().LogLimits(); calls != c.wantCalls || bytes != c.wantBytes {
			t.Errorf("%d calls and %d bytes are %d and %d", c.calls, c.bytes, calls, bytes)
		}
	}
	for _, c := range []Config{{KeepCalls: -1}, {KeepBytes: -1}} {
		c.Size, c.Link = 1, &counter{}
		if _, err := New(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// The first process that revokes is the one that errors name.
func TestFirstRevocationCounts(t *testing.T) {
	e, _ := newRecorded(t, Config{Rank: 2})
	for _, by := range []int{0, 1} {
		if err := e.Receive(by, (&revocationNotice{by: by}).bytes()); err != nil {
			t.Fatal(err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.revokedBy != 0 {
		t.Errorf("revoked by %d, which was the second", e.revokedBy)
	}
}

// A connection to the process that replaces a failed one brings the failed one not back: its
// messages do not arrive. One that was only lost comes back.
func TestFailedPeersStayDown(t *testing.T) {
	e, _ := newRecorded(t, Config{Rank: 0, View: 1})
	down := func(rank int) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.peers.of(rank).down
	}
	e.Install(2, []int{0, 2})
	for _, rank := range []int{-1, 1, 2, 3} {
		e.PeerDown(rank)
	}
	if !down(1) || !down(2) {
		t.Error("a connection is lost, and nobody knows")
	}
	for _, rank := range []int{-1, 1, 2, 3} {
		e.PeerUp(rank)
	}
	if !down(1) || down(2) {
		t.Errorf("the failed one is down: %t, the other one: %t", down(1), down(2))
	}
	// Its task is another's now, and there are no others.
	for task, want := range map[int]bool{-1: false, 0: true, 2: false, 3: false} {
		if token, owned := e.Comm().FencingToken(task); owned != want || token != 2 {
			t.Errorf("task %d is owned: %t, in view %d", task, owned, token)
		}
	}
}

// Reports of progress may be late: what a process has said of more calls stays.
func TestProgressDoesNotGoBack(t *testing.T) {
	e, _ := newRecorded(t, Config{Rank: 0})
	for _, next := range []uint64{3, 5, 4} {
		p := progressReport{next: next, last: Signature{Kind: Barrier}}
		head, body := p.bytes()
		if err := e.Receive(1, append(head, body...)); err != nil {
			t.Fatal(err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.peers.of(1); s.next != 5 || s.last.Kind != Barrier || s.reports != 3 {
		t.Errorf("%+v", *s)
	}
}

// An error says of each missing process what is known of it.
func TestMissingProcesses(t *testing.T) {
	for want, m := range map[string]Missing{
		"never heard from": {Rank: 7, Silent: true}, "no call": {Rank: 7}, "call 4 was the last, Barrier": {
			Rank: 7, Calls: 5,
			Last: "Barrier",
		},
	} {
		if text := m.String(); !strings.Contains(text, want) || !strings.Contains(text, "rank 7") {
			t.Errorf("%+v is %q", m, text)
		}
	}
}
