package engine

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Headers that no process sends are refused: too short, of no type, of the type that stands in
// front of others, or between tasks that there are not.
func TestHeadersThatNoProcessSends(t *testing.T) {
	const tasks = 4
	for ty := range msgType(20) {
		h := header{msgType: ty, from: tasks - 1, to: tasks - 1}
		_, _, err := parseHeader(h.bytes(), tasks)
		valid := ty >= typeMessage && ty <= typeGeneration && ty != typeNested
		if (err == nil) != valid || err != nil && !errors.Is(err, ErrMessage) {
			t.Errorf("type %d: %v", ty, err)
		}
	}
	for _, h := range []header{{msgType: typeMessage, from: tasks}, {msgType: typeMessage, to: tasks}} {
		if _, _, err := parseHeader(h.bytes(), tasks); !errors.Is(err, ErrMessage) {
			t.Errorf("%+v: %v", h, err)
		}
	}
	b := (&header{msgType: typeMessage}).bytes()
	for n := range b {
		if _, _, err := parseHeader(b[:n], tasks); !errors.Is(err, ErrMessage) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Bodies that are cut short or continued are refused, whichever they are.
func TestBodiesCutShort(t *testing.T) {
	progress := progressReport{holds: true, firstHeld: 7}
	agreement := agreementMessage{phase: typeVote, number: 3, vote: vote{accepted: true, proposal: proposal{1, 2, 3}}}
	notice := generationNotice{view: 9, members: []Member{{0, 1}, {2, 9}}}
	for name, c := range map[string]struct {
		bytes func() (head, body []byte)
		parse func(h *header, body []byte) error
		whole []int // lengths at which another message of the type ends
	}{
		"progress": {
			progress.bytes, func(h *header, b []byte) error { _, err := h.progressReport(b); return err },
			[]int{0},
		},
		"agreement": {agreement.bytes, func(h *header, b []byte) error { _, err := h.agreementMessage(b); return err }, nil},
		"generation": {
			notice.bytes, func(h *header, b []byte) error { _, err := h.generationNotice(b, 3); return err },
			[]int{0, 12},
		},
		"mismatch": {
			(&abortNotice{err: &MismatchError{Rank: 1, What: "a", Other: 2, OtherWhat: "b"}}).bytes,
			func(h *header, b []byte) error { _, err := h.abortNotice(1, b); return err }, nil,
		},
		"diverged": {
			(&abortNotice{err: &DivergedError{What: "a", View: 3}}).bytes,
			func(h *header, b []byte) error { _, err := h.abortNotice(1, b); return err }, nil,
		},
		"hold": {
			(&abortNotice{err: &HoldError{What: "a", View: 3}}).bytes,
			func(h *header, b []byte) error { _, err := h.abortNotice(1, b); return err }, nil,
		},
		"other": {
			(&abortNotice{err: errors.New("a")}).bytes,
			func(h *header, b []byte) error { _, err := h.abortNotice(1, b); return err }, nil,
		},
	} {
		head, body := c.bytes()
		h, _, err := parseHeader(head, 4)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.parse(&h, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for n := range body {
			if err := c.parse(&h, body[:n:n]); err == nil && !slices.Contains(c.whole, n) {
				t.Errorf("%s: the first %d of %d bytes are taken", name, n, len(body))
			}
		}
		if err := c.parse(&h, append(slices.Clone(body), 0)); err == nil {
			t.Errorf("%s: a byte more is taken", name)
		}
	}
	for reason := range uint8(10) {
		h := header{msgType: typeAbort}
		if _, err := h.abortNotice(1, []byte{reason}); !errors.Is(err, ErrMessage) {
			t.Errorf("reason %d without more: %v", reason, err)
		}
	}
}

// A notice names members of the job in order of rank, that were there in its view.
func TestNoticesOfGenerations(t *testing.T) {
	for _, c := range []struct {
		members []Member
		valid   bool
	}{
		{nil, true},
		{[]Member{{0, 5}, {2, 5}}, true},
		{[]Member{{0, 6}}, false},
		{[]Member{{3, 5}}, false},
		{[]Member{{1, 5}, {1, 5}}, false},
		{[]Member{{1, 5}, {0, 5}}, false},
	} {
		n := generationNotice{view: 5, members: c.members}
		head, body := n.bytes()
		h, _, err := parseHeader(head, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.generationNotice(body, 3); (err == nil) != c.valid || c.valid &&
			!slices.Equal(got.members, c.members) {
			t.Errorf("%v: %v, %v", c.members, got.members, err)
		}
	}
}

// The members of every view since the first are known, whichever have come and gone since.
func TestMembersOfFormerViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 4
		first := uint64(10)
		var g generation
		c := Config{Size: size, View: first}
		g.init(c)
		now := map[int]Member{}
		for r := range size {
			now[r] = Member{r, first}
		}
		views := map[uint64][]Member{first: sorted(now)}
		view := first
		for range rapid.IntRange(1, 8).Draw(t, "views") {
			view += uint64(rapid.IntRange(1, 2).Draw(t, "step"))
			for r := 1; r < size; r++ { // rank 0 is this process
				switch rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					delete(now, r)
				case 1:
					now[r] = Member{r, view}
				}
			}
			g.install(view, sorted(now), c)
			views[view] = sorted(now)
		}
		for view, want := range views {
			if got := g.membersIn(view); !slices.Equal(got, want) {
				t.Fatalf("view %d had %v, not %v", view, want, got)
			}
		}
		for r := range size + 1 {
			got, ok := memberAt(g.members, r)
			if want, there := now[r]; got != want || ok != there {
				t.Fatalf("rank %d: %v, %v, want %v", r, got, ok, want)
			}
		}
		for up := first; up <= view; up++ {
			old, young := ranksUpTo(g.members, up), newcomers(g.members, up)
			for r, m := range now {
				if slices.Contains(old, r) != (m.Incarnation <= up) || slices.Contains(young, r) != (m.Incarnation > up) {
					t.Fatalf("up to view %d: %v, and %v after it, of %v", up, old, young, now)
				}
			}
		}
	})
}

func sorted(members map[int]Member) (list []Member) {
	for _, r := range slices.Sorted(maps.Keys(members)) {
		list = append(list, members[r])
	}
	return list
}

// A count of finished calls ends where the first call is held that matters, to the call.
func TestHoldsEndCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h holds
		for range rapid.IntRange(0, 4).Draw(t, "holds") {
			first := rapid.Uint64Range(0, 10).Draw(t, "first")
			end := first + rapid.Uint64Range(0, 6).Draw(t, "calls")
			if rapid.Bool().Draw(t, "held") {
				end = notReleased
			}
			h = append(h, heldCalls{first, end})
		}
		inside := func(n uint64) bool {
			return slices.ContainsFunc(h, func(one heldCalls) bool { return one.first < n && n < one.end })
		}
		lowest := uint64(notReleased)
		for _, one := range h {
			if one.end == notReleased {
				lowest = min(lowest, one.first)
			}
		}
		if call, held := h.first(); call != lowest || held != (lowest != notReleased) {
			t.Fatalf("%v: first %d, %v", h, call, held)
		}
		for completed := range uint64(20) {
			want := completed
			for inside(want) {
				want--
			}
			if got := h.finished(completed); got != want {
				t.Fatalf("%v: of %d calls %d count, want %d", h, completed, got, want)
			}
		}
		low := rapid.Uint64Range(0, 16).Draw(t, "low")
		left := slices.Clone(h)
		left.trim(low)
		for _, one := range h {
			if slices.Contains(left, one) != (one.end > low) {
				t.Fatalf("%v: trimmed to %d: %v", h, low, left)
			}
		}
	})
}

// A mailbox has one slot for each envelope, however many there are, and none after it was
// cleared. A duplicate is dropped and its memory returned, and one that differs is found out.
func TestMailboxLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &callState{}
		for range 3 {
			digests := map[envelope]uint64{}
			slots := map[envelope]*slot{}
			for range rapid.IntRange(0, 40).Draw(t, "messages") {
				k := envelope{
					rapid.IntRange(0, 3).Draw(t, "step"), rapid.IntRange(0, 2).Draw(t, "from"),
					rapid.IntRange(0, 1).Draw(t, "to"),
				}
				digest := rapid.Uint64Range(1, 2).Draw(t, "digest")
				s := o.mailbox.slot(k)
				if before := slots[k]; before != nil && before != s || before == nil && s.here {
					t.Fatalf("%v has two slots, or one in use", k)
				}
				slots[k] = s
				before, here := digests[k]
				if differs := o.put(k, Payload{}, digest); differs != (here && before != digest) {
					t.Fatalf("%v: %d after %d, differs: %v", k, digest, before, differs)
				}
				if !here {
					digests[k] = digest
				}
			}
			if len(o.mailbox.all()) != len(slots) {
				t.Fatalf("%d slots for %d messages", len(o.mailbox.all()), len(slots))
			}
			o.mailbox.clear()
			if n := len(o.mailbox.all()) + len(o.mailbox.index); n != 0 {
				t.Fatalf("%d slots after clear", n)
			}
		}
	})
}

// Parts of tasks are found by task, and set without a second one.
func TestRuns(t *testing.T) {
	var r runs
	for i, c := range []struct {
		task int
		done bool
	}{{3, false}, {5, true}, {3, true}, {5, false}} {
		r.set(c.task, c.done)
		if done, begun := r.find(c.task); done != c.done || !begun || len(r) > min(i+1, 2) {
			t.Errorf("step %d: %v", i, r)
		}
	}
	if done, begun := r.find(4); done || begun {
		t.Error("task 4 has begun")
	}
}

// A process is ahead by calls or by bytes, and by one more than it may be; never below the
// low-water mark.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		number uint64
		bytes  int
		ahead  bool
	}{
		{10, 0, false},
		{13, 0, false},
		{14, 0, true},
		{11, 100, false},
		{11, 101, true},
		{10, 101, false},
		{9, 101, false},
	} {
		e := &Engine{revokedBy: -1}
		e.config.KeepCalls, e.config.KeepBytes = 4, 100
		e.log.lowWater, e.log.bytes = 10, c.bytes
		if got := e.ahead(c.number); got != c.ahead {
			t.Errorf("call %d, %d bytes: %v", c.number, c.bytes, got)
		}
		e.err = errors.New("over")
		if e.ahead(c.number) {
			t.Error("an engine that has ended waits")
		}
		e.err, e.revokedBy = nil, 0
		if e.ahead(c.number) {
			t.Error("a revoked engine waits")
		}
	}
}

// A log entry is released once, by its last user.
func TestLogEntries(t *testing.T) {
	poisoned := 0
	p := &logEntries{poison: func([]byte) { poisoned++ }}
	l := p.take()
	l.refs.Add(1)
	l.Release()
	if poisoned != 0 {
		t.Error("it is still in use")
	}
	l.Release()
	if poisoned != 1 {
		t.Error("it is not returned")
	}
	if size := (&logEntry{payload: Payload{Bytes: make([]byte, 10)}}).size(); size <= headerSize+10 {
		t.Errorf("an entry of 10 bytes counts as %d", size)
	}
	defer func() {
		if recover() == nil {
			t.Error("it is released twice")
		}
	}()
	l.Release()
}

// An entry that is released serves a later message, so that messages take no new memory.
func TestLogEntriesServeAgain(t *testing.T) {
	p := &logEntries{}
	for range 100 { // a pool may drop some
		l := p.take()
		l.Release()
		if p.take() == l {
			return
		}
	}
	t.Error("no entry is used again")
}

// A leader waits for the processes that have not voted in its view, or not accepted what they have
// voted for.
func TestWhomALeaderWaitsFor(t *testing.T) {
	e, _ := newRecorded(t, Config{Rank: 0, View: 4})
	now, before := vote{view: 4}, vote{view: 3}
	for what, c := range map[string]struct {
		agreement agreement
		want      []bool
	}{
		"no votes":       {agreement{votes: map[int]vote{0: now}}, []bool{false, true, true}},
		"votes":          {agreement{votes: map[int]vote{0: now, 1: now, 2: before}}, []bool{false, false, true}},
		"all have voted": {agreement{votes: map[int]vote{0: now, 1: now, 2: now}}, []bool{false, false, false}},
		"one has not accepted": {agreement{
			votes:      map[int]vote{0: now, 1: now, 2: now},
			acceptedBy: map[int]bool{0: true, 2: true},
		}, []bool{false, true, false}},
	} {
		waiting := make([]bool, 3)
		e.agreementWaitsFor(&c.agreement, waiting)
		if !slices.Equal(waiting, c.want) {
			t.Errorf("%s: it waits for %v, want %v", what, waiting, c.want)
		}
	}
}
