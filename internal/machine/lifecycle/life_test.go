package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// The member that begins is one of those with the highest number, and of them the lowest rank.
// It is known when all members of the view have offered, and not before.
func TestElection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []membership.Member
		for r := range protocol.Rank(rapid.IntRange(1, 5).Draw(t, "size")) {
			members = append(members, named(2*r+1, fmt.Sprint("p", r), 1, 1))
		}
		v := viewOf(4, members...)
		var e election
		e.begin(nil)
		if e.number() != 0 || e.offer(0, 1, 1) != nil {
			t.Fatal("an election without a view")
		}
		e.begin(&v)
		if e.number() != 4 {
			t.Fatal("no election")
		}
		if e.offer(3, 1, 9) != nil || e.offer(5, 1, 9) != nil || e.offer(4, 2, 9) != nil {
			t.Fatal("an offer of another view, or of no member, counts")
		}
		order := rapid.Permutation(members).Draw(t, "order")
		offers := map[protocol.Rank]uint64{}
		for i, m := range order {
			offers[m.Rank] = uint64(rapid.IntRange(0, 2).Draw(t, "number"))
			e.offer(4, order[0].Rank, offers[order[0].Rank]) // again
			chosen := e.offer(4, m.Rank, offers[m.Rank])
			if last := i == len(order)-1; (chosen != nil) != last {
				t.Fatalf("chosen after %d of %d: %v", i+1, len(order), chosen)
			}
			if chosen == nil {
				continue
			}
			for _, o := range members {
				if offers[o.Rank] > offers[chosen.Rank] || offers[o.Rank] == offers[chosen.Rank] && o.Rank < chosen.Rank {
					t.Fatalf("%v: chosen is %d", offers, chosen.Rank)
				}
			}
		}
	})
}

// A restarted voter that has moved to a view has votes there: it does not begin in that view again, without
// votes, when another process tells of it.
func TestRestartedVoterThatMovedKeepsItsVotes(t *testing.T) {
	d := restartedDriver(t)
	later := three(8, 50)
	d.m.Moved(d.now, &later, membership.Decisions{})
	d.introduce("b:1", of("b", control.RestartedVoter, &later, 11))
	d.expect("a view that the restarted voter has", "lifecycle.Trust ")
	latest := three(9, 50)
	d.introduce("b:1", of("b", control.RestartedVoter, &latest, 11))
	d.expect("a later view", "lifecycle.Hold ")
	if got := d.m.place.View.Number; got != 9 {
		t.Errorf("it holds its place in view %d", got)
	}
	without := viewOf(10, named(1, "b", 1, 11))
	d.m.Moved(d.now, &without, membership.Decisions{})
	if got := d.m.place.View.Number; got != 9 {
		t.Errorf("it has no place in view %d", got)
	}
}

// A restarted voter whose place is over is a candidate. One that is a candidate already goes on.
func TestPlaceThatIsOver(t *testing.T) {
	d := restartedDriver(t)
	d.m.Over(d.now)
	d.settle()
	d.expect("the place is over", "lifecycle.Stand ")
	if d.m.stage != joining || d.m.place != nil {
		t.Error("it is no candidate")
	}
	var asked []string
	for range 3 {
		joins := pending[control.Join](d)
		asked = append(asked, addresses(joins)...)
		d.reply(joins[0], Reply{Err: errors.New("busy")})
	}
	if !slices.Equal(asked, []string{"s:1", "b:1", "c:1"}) {
		t.Errorf("it asks %v", asked)
	}
	d.m.Over(d.now)
	d.m.Moved(d.now, &membership.View{}, membership.Decisions{})
	d.m.Admitted(d.now, &membership.Answer{})
	d.settle()
	d.expect("a candidate", "")
}

// What a process does that learns of a later view depends on whether the view has its place,
// and on whether a member tells of it, which could let it join.
func TestLaterViews(t *testing.T) {
	stays, other := three(9, 50), viewOf(9, named(0, "a", 1, 77), named(1, "b", 1, 11))
	admitted := viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11))
	again := viewOf(9, named(0, "a", 9, 50), named(1, "b", 1, 11))
	for _, c := range []struct {
		what string
		role control.Role
		view membership.View
		want string
	}{
		{"a member has a view with the place", control.Member, stays, "lifecycle.Hold "},
		{"a member has a view with another process in the place", control.Member, other, "lifecycle.Stand "},
		{"a member has a view with the same process again", control.Member, again, "lifecycle.Stand "},
		{"a restarted voter has a view with the place", control.RestartedVoter, stays, "lifecycle.Hold "},
		{"a restarted voter has a view that admits the process", control.RestartedVoter, admitted, "lifecycle.Hold "},
		{"a candidate knows a view that admits the process", control.Candidate, admitted, "lifecycle.Hold "},
		{"a restarted voter has a view with another process in the place", control.RestartedVoter, other, "lifecycle.Trust "},
		{"a restarted voter has the view of the place", control.RestartedVoter, three(7, 50), "lifecycle.Trust "},
		{"a restarted voter has an earlier view", control.RestartedVoter, three(6, 50), "lifecycle.Trust "},
	} {
		d := restartedDriver(t)
		d.introduce("b:1", of("b", c.role, &c.view, 11))
		d.expect(c.what, c.want)
	}
}

// A candidate that has met a member lately joins it rather than take a place that a restarted voter knows;
// unless the restarted voter's view is later, or the member has not been met for a while.
func TestCandidateJoinsRatherThanTakesAPlace(t *testing.T) {
	admitted := viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11))
	for _, c := range []struct {
		what     string
		memberIn uint64
		after    protocol.Time
		want     string
	}{
		{"at once", 9, 0, ""},
		{"after a while", 9, patience + interval, "lifecycle.Hold "},
		{"the member knows an earlier view", 8, 0, "lifecycle.Hold "},
		{"the member knows a later view", 10, 0, ""},
	} {
		d := drive(t, nil)
		d.take()
		d.m.Requested(d.now, control.Introduce{Question: control.Question{From: control.Contact{ID: "b", Address: "b:1"}}})
		d.settle()
		v := viewOf(c.memberIn, named(1, "b", 1, 11), named(2, "c", 1, 12))
		d.introduce("b:1", of("b", control.Member, &v, 11))
		d.expect("a member", "")
		met := d.now
		d.m.Requested(d.now, control.Introduce{Question: control.Question{From: control.Contact{ID: "c", Address: "c:1"}}})
		d.settle()
		if c.after > 0 {
			d.m.search.joinable = met - c.after
		}
		d.introduce("c:1", of("c", control.RestartedVoter, &admitted, 12))
		d.expect(c.what, c.want)
	}
}

// Processes that have lost the nonces of members cannot vote for them. If those that are left
// cannot decide, the place is given up.
func TestVotesThatAreLost(t *testing.T) {
	d := restartedDriver(t)
	d.introduce("b:1", of("b", control.Candidate, nil, 99))
	if len(d.actions) != 1 || d.actions[0] != (Suspect{1, 1}) {
		t.Errorf("a process without the nonce of the member: %v", d.actions)
	}
	d.take()
	d.introduce("b:1", of("b", control.Candidate, nil, 99, 11))
	if len(d.actions) != 1 || d.actions[0] != (Trust{1, 1}) {
		t.Errorf("a process with the nonce of the member: %v", d.actions)
	}
	d.take()
	d.introduce("b:1", of("x", control.Candidate, nil, 99))
	d.expect("a process that is no member", "")
	d.introduce("b:1", of("b", control.Candidate, nil))
	d.take()
	d.introduce("c:1", of("c", control.Candidate, nil))
	d.expect("a majority has lost its votes", "lifecycle.Forget lifecycle.Stand ")
	if d.m.search.former != nil || d.m.search.place != nil {
		t.Error("the view of the place is worth nothing")
	}
}

// With an arbiter, half of the voters keeps its place, since the arbiter may let it decide. If the arbiter
// has let the others, and their votes are lost, the place is over. A view of half of them is no beginning.
func TestPlaceOfHalf(t *testing.T) {
	two := viewOf(7, named(0, "a", 1, 50), named(1, "b", 1, 11))
	lost := of("b", control.Candidate, nil)
	for _, c := range []struct {
		arbiter, refused bool
		self             int
		over             bool
	}{
		{false, false, 0, false},
		{false, false, 1, true},
		{true, false, 0, false},
		{true, false, 1, false},
		{true, true, 0, true},
	} {
		v := two
		if c.self == 1 {
			v = viewOf(7, named(0, "b", 1, 11), named(1, "a", 1, 50))
		}
		d := drive(t, func(f *Config) {
			f.Place = membership.NewSavedVote(*v.Members.At(c.self), v, membership.Decisions{})
			f.Arbiter = c.arbiter
		})
		d.take()
		d.m.Refused(c.refused)
		d.introduce("b:1", lost)
		if over := d.m.place == nil; over != c.over {
			t.Errorf("%+v: the place is over: %t", c, over)
		}
	}
	for _, arbiter := range []bool{false, true} {
		d := drive(t, func(f *Config) { f.Place, f.Arbiter = place(two), arbiter })
		if d.m.mayDecide() == arbiter {
			t.Errorf("arbiter %t: half begins: %t", arbiter, !arbiter)
		}
	}
}

// Other processes get the answer that fits what this one is.
func TestAnswers(t *testing.T) {
	answer := func(d *driver, r control.Request) string {
		b := d.m.Requested(d.now, r)
		if _, ok := r.(control.Founding); ok {
			if reply, err := founding.DecodeReply(b); err == nil {
				return fmt.Sprintf("founding %s %t", reply.From.ID, reply.Member)
			}
		}
		_, err := control.Open(b)
		refusal, again := new(control.Refusal), new(control.Restarted)
		switch {
		case errors.As(err, &again):
			return fmt.Sprintf("restarted %d %d", again.Rank, again.Incarnation)
		case errors.As(err, &refusal) && refusal.Status == control.Retry:
			return "retry"
		case err != nil:
			return "refused"
		}
		return "accepted"
	}
	confirm := func(id string, nonce uint64) control.Request {
		return control.Confirm{Candidate: membership.Member{Identity: id, Nonce: nonce}}
	}
	request := control.Founding{Request: founding.Request{
		From:   founding.Candidate{ID: "b", Address: "b:1", Nonce: 3},
		Expect: 3,
	}}
	candidate, founder, seat := drive(t, nil), drive(t, func(c *Config) { c.Expect = 3 }), restartedDriver(t)
	begins := restartedDriver(t)
	begins.m.Admitted(1, &membership.Answer{View: viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11))})
	for _, c := range []struct {
		d       *driver
		what    string
		request control.Request
		want    string
	}{
		{candidate, "a candidate is asked for its view", control.View{}, "retry"},
		{candidate, "a candidate confirms", confirm("a", 1), "accepted"},
		{candidate, "a candidate does not confirm another ID", confirm("b", 1), "refused"},
		{candidate, "a candidate does not confirm another nonce", confirm("a", 2), "refused"},
		{candidate, "a candidate begins no group", request, "retry"},
		{founder, "a founder answers", request, "founding a false"},
		{founder, "a founder is asked for its view", control.View{}, "retry"},
		{seat, "a restarted voter is asked for its view", control.View{}, "restarted 0 1"},
		{seat, "a restarted voter confirms nothing", confirm("a", 1), "restarted 0 1"},
		{seat, "a restarted voter knows a group", request, "founding a true"},
		{begins, "a process that begins a view", control.View{}, "retry"},
		{begins, "a process that begins a view knows a group", request, "founding a true"},
	} {
		if got := answer(c.d, c.request); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// A process that introduces itself shows the nonces that it has, the view that the other lacks,
// and some of the processes that it has met.
func TestIntroductions(t *testing.T) {
	ask := func(d *driver, from control.Contact, view uint64) *control.Introduction {
		t.Helper()
		body, err := control.Open(d.m.Requested(d.now, control.Introduce{Question: control.Question{From: from, View: view}}))
		if err != nil {
			t.Fatal(err)
		}
		i, err := control.DecodeIntroduction(body)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	d := restartedDriver(t)
	x := control.Contact{ID: "x", Address: "x:1"}
	i := ask(d, x, 6)
	if i.Role != control.RestartedVoter || i.View == nil || i.View.Number != 7 ||
		!slices.Equal(i.Marks, []uint64{control.Mark("a", 1), control.Mark("a", 50)}) {
		t.Errorf("a restarted voter: %+v", i)
	}
	if len(i.Others) != 0 {
		t.Errorf("the process that asks is told of itself: %v", i.Others)
	}
	if ask(d, x, 7).View != nil {
		t.Error("a view that the other knows")
	}
	d.m.Over(d.now)
	if i := ask(d, x, 0); i.Role != control.Candidate || i.View == nil || len(i.Marks) != 1 {
		t.Errorf("a candidate that was a restarted voter: %+v", i)
	}
	if former := drive(t, func(c *Config) { c.Former = place(three(7, 50)) }); ask(former, x, 0).View == nil {
		t.Error("a process does not tell of the view that it was in")
	}
	for n := range maxOthers + 3 {
		ask(d, control.Contact{ID: fmt.Sprint("p", n), Address: fmt.Sprint("p:", n)}, 7)
	}
	for _, strange := range []control.Contact{
		{ID: "a", Address: "elsewhere"},
		{ID: "", Address: "none"},
		{ID: "none", Address: ""},
	} {
		ask(d, strange, 7)
	}
	if i := ask(d, x, 7); len(i.Others) != maxOthers {
		t.Errorf("%d others", len(i.Others))
	}
	for _, id := range []string{"a", "", "none"} {
		if _, ok := d.m.search.address(id); ok {
			t.Errorf("%q is known", id)
		}
	}
}

// Processes are asked again at a pace: soon if they answer, later and later if they do not; and
// not all at once.
func TestPaceOfQuestions(t *testing.T) {
	for _, answers := range []bool{true, false} {
		d := drive(t, nil)
		var times []protocol.Time
		for range 8 {
			asked := pending[control.Introduce](d)
			if len(asked) != 1 || asked[0].Address != "s:1" || asked[0].Timeout != askTimeout {
				t.Fatalf("at %d it asks %v", d.now, asked)
			}
			times = append(times, d.now)
			r := Reply{Err: errors.New("silent")}
			if answers {
				i := of("s", control.Candidate, nil)
				r = Reply{Body: i.Encode(nil)}
			}
			d.reply(asked[0], r)
			d.pass(d.m.Deadline())
		}
		for i := 1; i < len(times); i++ {
			want := interval
			if !answers {
				want = min(interval<<(i-1), maxInterval)
			}
			if got := times[i] - times[i-1]; got != want {
				t.Errorf("answers %t: pause %d is %d ms, want %d", answers, i, got/millisecond, want/millisecond)
			}
		}
	}
	var seeds []string
	for i := range 3 * maxAsked {
		seeds = append(seeds, fmt.Sprint("s:", i+1))
	}
	d := drive(t, func(c *Config) { c.Seeds = append(seeds, self.Address, "s:1", "") })
	most := pending[control.Introduce](d)
	if len(most) != maxAsked {
		t.Fatalf("%d questions at once", len(most))
	}
	i := of("s", control.Candidate, nil)
	i.Others = []control.Contact{{ID: "y", Address: "y:1"}, {ID: "a", Address: self.Address}}
	d.reply(most[0], Reply{Body: i.Encode(nil)})
	if next := pending[control.Introduce](d); len(next) != 1 {
		t.Errorf("%d questions after an answer", len(next))
	}
	if got := d.m.search.contacts["s:1"].pause; got != 3*maxAsked*spacing {
		t.Errorf("a pause of %d ms with %d others", got/millisecond, 3*maxAsked)
	}
	d.m.Replied(d.now, most[1].Token, Reply{Body: []byte("nonsense")})
	if got := d.m.search.contacts[most[1].Address].pause; got != interval {
		t.Errorf("a pause of %d ms after nonsense", got/millisecond)
	}
	for n := range 2 * maxContacts {
		d.m.search.meet(control.Contact{ID: fmt.Sprint(n), Address: fmt.Sprint(n, ":1")})
	}
	if len(d.m.search.contacts) != maxContacts || len(d.m.search.found) != maxContacts {
		t.Errorf("%d contacts, %d found", len(d.m.search.contacts), len(d.m.search.found))
	}
	d.m.search.meet(control.Contact{ID: "0", Address: "moved:1"})
	if d.m.search.found["0"] != "moved:1" {
		t.Error("a process that has moved is not known at its address")
	}
	if targets := d.m.targets(); !slices.Contains(targets, "moved:1") {
		t.Error("a process that has moved is not asked")
	}
}

// admission returns the reply to a request to join.
func admission(v membership.View, rank protocol.Rank) Reply {
	a := control.Admission{View: v, Rank: rank}
	return Reply{Body: a.Encode()[1:]}
}

// A process asks one member after the other to let it join, then all again after a pause that
// doubles, until one does or all refuse for good.
func TestJoins(t *testing.T) {
	seeds := func(c *Config) { c.Durable, c.Seeds = false, []string{"s:1", "s:2"} }
	joins := func(d *driver) Ask {
		t.Helper()
		asked := pending[control.Join](d)
		if len(asked) != 1 {
			t.Fatalf("%d requests to join", len(asked))
		}
		return asked[0]
	}
	fails := func(d *driver, why string) {
		t.Helper()
		if f, ok := d.actions[len(d.actions)-1].(Fail); !ok || !strings.Contains(f.Err.Error(), why) ||
			d.m.Deadline() != protocol.Never {
			t.Errorf("%v, want the failure %q", d.actions, why)
		}
	}
	d := drive(t, seeds)
	var rounds []protocol.Time
	for range 9 {
		rounds = append(rounds, d.now)
		a := joins(d)
		if a.Address != "s:1" || a.Timeout != joinTimeout {
			t.Fatalf("it asks %v", a)
		}
		d.reply(a, Reply{Err: errors.New("for good"), Permanent: true})
		a = joins(d)
		if a.Address != "s:2" || d.now != rounds[len(rounds)-1] {
			t.Fatalf("it asks %v", a)
		}
		d.reply(a, Reply{Err: errors.New("busy")})
		if d.m.Waiting() == nil {
			t.Error("it does not say why it waits")
		}
		d.pass(d.m.Deadline())
	}
	for i := 1; i < len(rounds); i++ {
		if got, want := rounds[i]-rounds[i-1], min(minPause<<(i-1), maxPause); got != want {
			t.Errorf("round %d after %d ms, want %d", i, got/millisecond, want/millisecond)
		}
	}
	d.reply(joins(d), admission(viewOf(3, named(4, "a", 3, 1), named(1, "b", 1, 1)), 5))
	d.expect("an admission of another rank", "lifecycle.Stand ")
	d.reply(joins(d), admission(viewOf(3, named(4, "a", 3, 1), named(1, "b", 1, 1)), 4))
	if b, ok := d.actions[0].(Become); !ok || b.Self.Rank != 4 || b.View.Number != 3 {
		t.Errorf("admitted: %v", d.actions)
	}
	d.m.Over(d.now)
	d.m.Replied(d.now, 1, Reply{})
	d.take()
	if d.m.Next(d.now) != nil || d.m.Deadline() != protocol.Never {
		t.Error("it goes on after it is a member")
	}

	d = drive(t, seeds)
	d.reply(joins(d), Reply{Err: errors.New("busy")})
	d.reply(joins(d), Reply{Err: errors.New("for good"), Permanent: true})
	d.pass(d.m.Deadline())
	if d.m.stage != joining {
		t.Error("it fails although one may let it join later")
	}
	d.reply(joins(d), Reply{Err: errors.New("for good"), Permanent: true})
	d.reply(joins(d), Reply{Err: errors.New("for good, too"), Permanent: true})
	fails(d, "for good, too")

	d = drive(t, seeds)
	d.reply(joins(d), Reply{Err: errors.New("everywhere"), Final: true, Permanent: true})
	fails(d, "everywhere")
	d = drive(t, func(c *Config) { c.Durable, c.Seeds = false, nil })
	fails(d, "the only seed")
	d = drive(t, func(c *Config) { seeds(c); c.Self.Version = 9 })
	newer := viewOf(3, named(4, "a", 3, 1))
	newer.Version, newer.Members = 9,
		membership.MembersOf(membership.Member{Rank: 4, Identity: "a", Address: "a:1", Incarnation: 3, Nonce: 1, Version: 9})
	d.reply(joins(d), admission(newer, 4))
	fails(d, "not spoken")
}

// A process that a view has admitted at another address than its own holds the place, and asks
// for one with its address.
func TestAdmittedElsewhere(t *testing.T) {
	moved := named(4, "a", 3, 1)
	moved.Address = "old:1"
	for _, durable := range []bool{true, false} {
		d := drive(t, func(c *Config) { c.Durable = durable })
		d.take()
		d.reply(pending[control.Join](d)[0], admission(viewOf(3, moved), 4))
		if !durable {
			d.expect("without a disk", "lifecycle.Become ")
			continue
		}
		h, ok := d.actions[0].(Hold)
		if !ok || h.Candidate.Nonce == 1 || h.Place.Self.Nonce != 1 {
			t.Errorf("with a disk: %v", d.actions)
		}
	}
}

// A restarted voter that a view has admitted begins the view if no member has messages, and enters it
// at one that has.
func TestAdmittedVoter(t *testing.T) {
	view := viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11), named(2, "c", 9, 12), named(3, "d", 1, 13))
	begin := func() (*driver, []Ask) {
		d := restartedDriver(t)
		pending[control.Introduce](d)
		d.m.Admitted(d.now, &membership.Answer{View: view, Rank: 0})
		d.settle()
		asked := pending[control.View](d)
		if got := addresses(asked); !slices.Equal(got, []string{"b:1", "d:1"}) || asked[0].Timeout != viewTimeout ||
			d.m.Waiting() == nil {
			t.Fatalf("it asks %v", got)
		}
		return d, asked
	}
	gone, silent := Reply{Err: errors.New("refused"), Gone: true}, Reply{Err: errors.New("silent")}
	d, asked := begin()
	d.reply(asked[0], gone)
	d.expect("one is dead", "")
	d.reply(asked[1], Reply{Err: &control.Restarted{Rank: 3, Incarnation: 1}})
	d.expect("the others are dead, or restarted voters", "lifecycle.Become ")

	for _, other := range []control.Restarted{{Rank: 3, Incarnation: 2}, {Rank: 2, Incarnation: 1}} {
		d, asked = begin()
		d.reply(asked[0], gone)
		at := d.now
		d.reply(asked[1], Reply{Err: &other})
		d.expect("a restarted voter of another place", "")
		d.pass(at + viewPause)
		if again := pending[control.View](d); !slices.Equal(addresses(again), []string{"d:1"}) {
			t.Errorf("it asks %v again", again)
		}
	}

	d, asked = begin()
	d.reply(asked[0], silent)
	d.reply(asked[1], Reply{})
	d.expect("one has messages", "lifecycle.Stand ")
	joins := map[string]int{}
	for at := d.now; d.now < at+enterTimeout-millisecond; {
		for asked := pending[control.Join](d); len(asked) > 0; asked = pending[control.Join](d) {
			joins[asked[0].Address]++
			d.reply(asked[0], silent)
		}
		d.pass(min(d.m.joiner.due, at+enterTimeout-millisecond))
		d.expect("it waits", "")
	}
	if len(joins) != 4 || joins["d:1"] < 2 {
		t.Errorf("it asks %v", joins)
	}
	d.pass(d.now + millisecond)
	d.expect("no member lets it in", "lifecycle.Hold ")

	d, asked = begin()
	for try := 1; ; try++ {
		for _, a := range asked {
			d.reply(a, silent)
		}
		d.pass(d.now + viewPause - 1)
		if len(pending[control.View](d)) > 0 {
			t.Fatal("it asks again at once")
		}
		d.pass(d.now + 1)
		asked = pending[control.View](d)
		if len(asked) == 0 {
			if try != viewTries {
				t.Errorf("it has tried %d times", try)
			}
			break
		}
	}
	d.expect("members are silent", "lifecycle.Hold ")
}

// A process that is to begin a group with others fails if all seeds refuse it for good, and not
// before.
func TestFounderWithoutHope(t *testing.T) {
	d := drive(t, func(c *Config) { c.Expect, c.Seeds, c.Durable = 3, []string{"s:1", "s:2"}, false })
	if d.m.Waiting() == nil {
		t.Error("it does not say what it waits for")
	}
	asked := pending[control.Founding](d)
	if len(asked) != 2 || asked[0].Timeout != askTimeout {
		t.Fatalf("it asks %v", asked)
	}
	hopeless := Reply{Err: errors.New("no way"), Permanent: true}
	d.reply(asked[0], hopeless)
	d.expect("one refuses", "lifecycle.Stand ")
	d.reply(asked[1], Reply{Err: errors.New("busy")})
	d.expect("one may change its mind", "")
	candidate := founding.Reply{From: founding.Candidate{ID: "s", Address: "s:1", Nonce: 5}, Term: 1}
	for _, s := range []struct {
		what          string
		first, second Reply
		want          string
	}{
		{"one has changed its mind", Reply{Body: candidate.Encode(nil)}, hopeless, ""},
		{"all refuse", hopeless, hopeless, "lifecycle.Fail "},
	} {
		answered := map[string]bool{}
		for len(answered) < 2 && d.m.stage != ended {
			d.pass(d.m.Deadline())
			asked := pending[control.Founding](d)
			slices.SortFunc(asked, func(a, b Ask) int { return strings.Compare(a.Address, b.Address) })
			for _, a := range asked {
				answered[a.Address] = true
				d.reply(a, map[string]Reply{"s:1": s.first, "s:2": s.second}[a.Address])
			}
		}
		d.expect(s.what, s.want)
	}
}

// A founder that finds a group asks its members to let it join for a few rounds, and looks for
// the group again after that.
func TestFounderFindsAGroup(t *testing.T) {
	d := drive(t, func(c *Config) { c.Expect, c.Durable = 3, false })
	member := founding.Reply{From: founding.Candidate{ID: "b", Address: "b:1"}, Member: true}
	for range 2 {
		d.pass(d.now + second)
		for _, a := range pending[control.Founding](d) {
			d.reply(a, Reply{Body: member.Encode(nil)})
		}
		rounds := map[string]int{}
		for d.m.joiner.active {
			asked := pending[control.Join](d)
			if len(asked) == 0 {
				d.pass(d.m.Deadline())
				continue
			}
			if asked[0].Timeout != findingTimeout {
				t.Fatalf("a timeout of %d", asked[0].Timeout)
			}
			rounds[asked[0].Address]++
			d.reply(asked[0], Reply{Err: errors.New("no member"), Permanent: true})
		}
		if rounds["b:1"] != findingRounds || rounds["s:1"] != findingRounds {
			t.Errorf("it has asked %v", rounds)
		}
	}
	d.take()
	d.pass(d.now + second)
	if len(pending[control.Founding](d)) == 0 {
		t.Error("it looks no further")
	}
}

// A process without seeds that was told of a group asks the member that told it again.
func TestFounderWithoutSeedsIsTold(t *testing.T) {
	d := drive(t, func(c *Config) { c.Expect, c.Seeds, c.Durable = 3, nil, false })
	told := founding.Request{From: founding.Candidate{ID: "b", Nonce: 3, Address: "b:1"}, Group: "b:1"}
	d.m.Requested(d.now, control.Founding{Request: told})
	d.pass(d.now + second)
	member := founding.Reply{From: founding.Candidate{ID: "b", Address: "b:1"}, Member: true}
	for _, a := range pending[control.Founding](d) {
		d.reply(a, Reply{Body: member.Encode(nil)})
	}
	for range findingRounds {
		d.pass(d.now + second)
		asked := pending[control.Join](d)
		if len(asked) != 1 || asked[0].Address != "b:1" {
			t.Fatalf("it asks %v", asked)
		}
		d.reply(asked[0], Reply{Err: errors.New("not yet")})
	}
	d.expect("a member that has not let it join yet", "lifecycle.Stand ")
}

// A process that is expected alone begins, and one that cannot be a member fails.
func TestFounderBegins(t *testing.T) {
	d := drive(t, func(c *Config) { c.Expect, c.Seeds = 1, nil })
	b, ok := d.actions[len(d.actions)-1].(Become)
	if !ok || len(b.Began) != 1 || b.View.Number != 1 || b.Self.Identity != "a" || b.Self.Nonce != 1 {
		t.Errorf("%v", d.actions)
	}
	d = drive(t, func(c *Config) { c.Expect, c.Seeds, c.Self.Identity = 1, nil, strings.Repeat("x", 300) })
	d.expect("a name that is too long", "lifecycle.Stand lifecycle.Fail ")
	d = drive(t, func(c *Config) { c.Expect, c.Seeds = 2, nil })
	d.pass(d.now + second)
	d.expect("another process is expected", "lifecycle.Stand ")
}

// A founder says which process it waits for.
func TestFounderWaits(t *testing.T) {
	d := drive(t, func(c *Config) { c.Expect, c.Durable = 2, false })
	lower := founding.Reply{From: founding.Candidate{ID: "Z", Address: "s:1", Nonce: 5}, Term: 1, Free: true}
	d.reply(pending[control.Founding](d)[0], Reply{Body: lower.Encode(nil)})
	if err := d.m.Waiting(); err == nil || !strings.Contains(err.Error(), `"Z"`) {
		t.Errorf("it waits: %v", err)
	}
}

// A member, or a process that has failed, does nothing more, whatever it hears.
func TestEnds(t *testing.T) {
	d := drive(t, nil)
	d.take()
	later := viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11))
	i := of("b", control.RestartedVoter, &later, 11)
	asked := pending[control.Introduce](d)
	d.reply(pending[control.Join](d)[0], admission(viewOf(3, named(4, "a", 3, 1)), 4))
	d.expect("admitted", "lifecycle.Become ")
	d.m.Replied(d.now, asked[0].Token, Reply{Body: i.Encode(nil)})
	d.m.Requested(d.now, control.Introduce{Question: control.Question{From: control.Contact{ID: "b", Address: "b:1"}}})
	d.now += second
	if d.m.Next(d.now) != nil || d.m.Deadline() != protocol.Never {
		t.Error("it goes on")
	}
	newer := three(7, 50)
	newer.Version = 9
	d = drive(t, func(c *Config) { c.Place = place(newer) })
	d.expect("a place whose version it does not speak", "lifecycle.Fail ")
}

// What was asked before the process held a place does not count any more.
func TestRepliesOfEarlierStages(t *testing.T) {
	d := drive(t, nil)
	join := pending[control.Join](d)[0]
	later := viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11))
	d.introduce("s:1", of("b", control.RestartedVoter, &later, 11))
	d.expect("a place", "lifecycle.Stand lifecycle.Hold ")
	d.reply(join, admission(later, 0))
	d.reply(Ask{Token: 999}, admission(later, 0))
	d.expect("an old admission", "")
}

// A process that has met others asks them where they are now, and finds others through them. It
// learns nothing from one with its own ID.
func TestMeets(t *testing.T) {
	d := restartedDriver(t)
	later := three(8, 50)
	d.introduce("s:1", of("a", control.RestartedVoter, &later, 50))
	d.expect("a process with the same ID", "")
	i := of("b", control.RestartedVoter, nil, 11)
	i.Others = []control.Contact{{ID: "y", Address: "y:1"}}
	d.introduce("s:1", i)
	d.expect("a member that has moved", "lifecycle.Trust ")
	if got := d.m.Address(d.m.place.View.Named("b")); got != "s:1" {
		t.Errorf("b is at %s", got)
	}
	d.introduce("y:1", of("y", control.Candidate, nil))
	d.m.Admitted(d.now, &membership.Answer{View: viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11)), Rank: 0})
	d.pass(d.now + second)
	asked := pending[control.Introduce](d)
	if q := asked[len(asked)-1].Request.(control.Introduce); q.View != 9 {
		t.Errorf("it says that it knows view %d", q.View)
	}
}

// A restarted voter that becomes a member knows on where the restarted voters of others are, until those have joined
// themselves.
func TestMemberKnowsWhereVotersAre(t *testing.T) {
	d := restartedDriver(t)
	for _, id := range []string{"b", "c"} {
		d.introduce("s:1", of(id, control.RestartedVoter, nil, map[string]uint64{"b": 11, "c": 12}[id]))
		d.expect("a member that has moved", "lifecycle.Trust ")
	}
	d.m.Admitted(d.now, &membership.Answer{View: viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11),
		named(2, "c", 9, 13)), Rank: 0})
	d.settle()
	asked := pending[control.View](d)
	d.reply(asked[0], Reply{Err: &control.Restarted{Rank: 1, Incarnation: 1}})
	became, ok := d.actions[len(d.actions)-1].(Become)
	if !ok {
		t.Fatalf("%v", d.actions)
	}
	later := named(1, "b", 10, 14)
	for i, want := range []string{"a:1", "s:1", "c:1"} {
		if got := became.Elsewhere.Address(became.View.Members.At(i)); got != want ||
			became.Elsewhere.Address(&later) != "b:1" {
			t.Errorf("rank %d is at %s, want %s", i, got, want)
		}
	}
}

// A founder whose place is over because there is a later view asks its members first; one whose
// place is worth nothing looks for others to begin with.
func TestFounderWhosePlaceIsOver(t *testing.T) {
	other := viewOf(9, named(0, "a", 1, 77), named(1, "b", 1, 11))
	for _, expect := range []int{0, 3} {
		d := drive(t, func(c *Config) { c.Expect, c.Place = expect, place(three(7, 50)) })
		d.introduce("b:1", of("b", control.Member, &other, 11))
		d.expect("a later view", "lifecycle.Hold lifecycle.Stand ")
		if !d.m.joiner.active {
			t.Error("it asks no member")
		}
		for range 30 { // rounds and rounds
			for asked := pending[control.Join](d); len(asked) > 0; asked = pending[control.Join](d) {
				d.reply(asked[0], Reply{Err: errors.New("busy")})
			}
			if founds := len(pending[control.Founding](d)) > 0; founds {
				if expect == 0 || d.m.joiner.active {
					t.Error("it begins a group")
				}
				break
			}
			if !d.m.joiner.active {
				break
			}
			d.pass(d.m.joiner.due)
		}
		if d.m.joiner.active != (expect == 0) {
			t.Errorf("expect %d: it asks members: %t", expect, d.m.joiner.active)
		}
	}
	d := drive(t, func(c *Config) { c.Expect, c.Place = 3, place(three(7, 50)) })
	d.introduce("b:1", of("b", control.Candidate, nil))
	d.introduce("c:1", of("c", control.Candidate, nil))
	if len(pending[control.Founding](d)) == 0 || len(pending[control.Join](d)) > 0 {
		t.Error("it does not begin a group")
	}
}

// A process does not begin a view whose other members may have lost their votes: a decision can
// be found long after it was proposed.
func TestBeginsOnlyWithAQuorumOfVotes(t *testing.T) {
	view := viewOf(9, named(0, "a", 9, 11), named(1, "b", 9, 1))
	for what, votes := range map[string]bool{"has its vote": true, "has lost its vote": false, "does not answer": false} {
		d := drive(t, func(c *Config) { c.Expect, c.Place, c.Self = 2, place(three(7, 50)), named(1, "b", 0, 1) })
		d.take()
		d.m.Admitted(d.now, &membership.Answer{View: view, Rank: 1})
		d.settle()
		d.expect(what, "")
		switch what {
		case "has its vote":
			d.introduce("a:1", of("a", control.RestartedVoter, nil, 11))
		case "has lost its vote":
			d.introduce("a:1", of("a", control.Candidate, nil, 12))
			d.expect(what, "lifecycle.Forget lifecycle.Stand ")
			continue
		}
		d.pass(d.now + viewTries*viewPause)
		if votes {
			d.expect(what, "lifecycle.Become ")
		} else {
			d.expect(what, "lifecycle.Hold ")
		}
	}
}

// Two members of a view may have had the same address.
func TestTwoMembersOfOneAddress(t *testing.T) {
	b, c := named(1, "b", 1, 11), named(2, "c", 1, 12)
	c.Address = b.Address
	d := restartedDriver(t)
	d.m.Admitted(d.now, &membership.Answer{View: viewOf(9, named(0, "a", 9, 1), b, c, named(3, "d", 1, 13)), Rank: 0})
	d.settle()
	d.introduce("c:1", of("c", control.RestartedVoter, nil, 12))
	for i, a := range pending[control.View](d) {
		d.reply(a, Reply{Err: errors.New("refused"), Gone: i != 1})
	}
	d.expect("they are gone", "lifecycle.Become ")
}

// A member counts as met for exactly as long as patience.
func TestPatience(t *testing.T) {
	admitted := viewOf(9, named(0, "a", 9, 1), named(1, "b", 1, 11))
	i := of("b", control.RestartedVoter, &admitted, 11)
	for _, late := range []protocol.Time{0, 1} {
		s := newSearch(control.Contact{ID: "a", Address: "a:1"}, nil)
		s.hold(nil, 1)
		s.joinable, s.joinableIn = 1, 9
		s.compare(1+patience+late, &i)
		if (s.take().place != nil) != (late > 0) {
			t.Errorf("%d later than patience", late)
		}
	}
}

// Only of a member that cannot be reached it is believed that it is elsewhere, and only as long as
// it holds its place.
func TestMembersThatAreMetElsewhere(t *testing.T) {
	v := three(7, 50)
	b, c := v.Members.At(1), v.Members.At(2)
	at := func(id, address string) control.Contact { return control.Contact{ID: id, Address: address} }
	var e Elsewhere
	for what, contact := range map[string]control.Contact{
		"reachable": at("c", "x:1"), "where it is": at("b", "b:1"), "nowhere": at("b", ""), "no member": at("z", "x:1"),
	} {
		if next, changed := e.Met(&v, []protocol.Rank{1}, contact); changed || len(next) > 0 {
			t.Errorf("%s: %v", what, next)
		}
	}
	first, changed := e.Met(&v, []protocol.Rank{1}, at("b", "x:1"))
	if !changed || first.Address(b) != "x:1" || first.Address(c) != "c:1" {
		t.Errorf("%v", first)
	}
	second, changed := first.Met(&v, []protocol.Rank{1, 2}, at("c", "y:1"))
	if !changed || second.Address(b) != "x:1" || second.Address(c) != "y:1" || first.Address(c) != "c:1" {
		t.Errorf("%v, then %v", first, second)
	}
	if again, changed := second.Met(&v, []protocol.Rank{1, 2}, at("b", "z:1")); !changed || again.Address(b) != "z:1" ||
		again.Address(c) != "y:1" {
		t.Errorf("%v", again)
	}
	later := viewOf(8, named(0, "a", 1, 50), named(1, "b", 8, 13), named(2, "c", 1, 12))
	if third, _ := second.Met(&later, []protocol.Rank{2}, at("c", "z:1")); len(third) != 1 ||
		third.Address(later.Members.At(1)) != "b:1" {
		t.Errorf("%v", third)
	}
}
