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

// fakeGroup is the machine of a member as tests set it.
type fakeGroup struct {
	view        membership.View
	state       membership.State
	stuck       bool
	unreachable []protocol.Rank
}

func (g *fakeGroup) View() membership.View            { return g.view }
func (g *fakeGroup) State() (membership.State, error) { return g.state, nil }
func (g *fakeGroup) Quorum() (reachable, needed int, ok bool) {
	return 1, 2, g.state != membership.NoQuorum
}
func (g *fakeGroup) Unreachable() []protocol.Rank    { return g.unreachable }
func (g *fakeGroup) Decisions() membership.Decisions { return membership.Decisions{} }
func (g *fakeGroup) Stuck() bool                     { return g.stuck }
func (g *fakeGroup) Behind(v *membership.View) (behind, removed bool) {
	behind = g.stuck && v.Number > g.view.Number
	return behind, behind && !v.Holds(0, 1)
}

// memberDriver carries actions of a Member out: requests wait for the replies of a test.
type memberDriver struct {
	t       *testing.T
	m       *Member
	g       *fakeGroup
	now     protocol.Time
	asks    []Ask
	actions []Action
}

// driveMember returns the driver of member "a" of view 7 with "b" and "c", which has one seed.
func driveMember(t *testing.T, change func(*MemberConfig)) *memberDriver {
	v := three(7, 50)
	d := &memberDriver{t: t, g: &fakeGroup{view: v, state: membership.Active}, now: 1}
	c := MemberConfig{Self: *v.Members.At(0), Group: d.g}
	if change != nil {
		change(&c)
	}
	d.m = NewMember(d.now, c)
	d.m.SetSeeds([]string{"s:1"})
	d.settle()
	return d
}

// lose takes the quorum of the member.
func (d *memberDriver) lose() { d.g.state, d.g.stuck = membership.NoQuorum, true }

// settle takes all actions. After that, the machine waits.
func (d *memberDriver) settle() {
	d.t.Helper()
	for range 1000 {
		switch a := d.m.Next(d.now).(type) {
		case nil:
			if due := d.m.Deadline(); due <= d.now {
				d.t.Fatalf("the deadline %d is over at %d, and there is nothing to do", due, d.now)
			}
			return
		case Ask:
			d.asks = append(d.asks, a)
		default:
			d.actions = append(d.actions, a)
		}
	}
	d.t.Fatal("the actions do not end")
}

// pass lets time pass, from deadline to deadline.
func (d *memberDriver) pass(length protocol.Time) {
	d.t.Helper()
	until := d.now + length
	for d.m.Deadline() <= until {
		d.now = d.m.Deadline()
		d.settle()
	}
	d.now = until
	d.settle()
}

// reply answers the oldest request.
func (d *memberDriver) reply(r Reply) {
	d.t.Helper()
	if len(d.asks) == 0 {
		d.t.Fatal("there is no request to answer")
	}
	a := d.asks[0]
	d.asks = d.asks[1:]
	d.m.Replied(d.now, a.Token, r)
	d.settle()
}

// take returns the requests and actions since the last look. Requests stay to be answered.
func (d *memberDriver) take() string {
	var text []string
	for _, a := range d.asks {
		text = append(text, fmt.Sprintf("%T to %s", a.Request, a.Address))
	}
	for _, a := range d.actions {
		switch a := a.(type) {
		case Learn:
			text = append(text, "learn of "+a.From)
		case Remove:
			text = append(text, fmt.Sprintf("removed by view %d of %s", a.View, a.From))
		case Move:
			text = append(text, "move to "+a.Address)
		case Ended:
			text = append(text, fmt.Sprintf("ended, successor: %t", a.Successor != nil))
		}
	}
	d.actions = nil
	return strings.Join(text, ", ")
}

func (d *memberDriver) expect(what, want string) {
	d.t.Helper()
	if got := d.take(); got != want {
		d.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// requested returns the body of the reply to a request.
func (d *memberDriver) requested(r control.Request) ([]byte, error) {
	d.t.Helper()
	b, ok := d.m.Requested(d.now, r)
	if !ok {
		d.t.Fatalf("%T is not answered", r)
	}
	d.settle()
	return control.Open(b)
}

// introduction is the reply of a process that introduces itself.
func introduction(id string, role control.Role, v *membership.View) Reply {
	i := of(id, role, v)
	return Reply{Body: i.Encode(nil)}
}

var errSilent = errors.New("no reply in time")

// A member without a quorum asks one seed after the other, and then the other members, one at a time.
func TestMemberWithoutQuorumAsksSeeds(t *testing.T) {
	d := driveMember(t, nil)
	d.pass(10 * seedInterval)
	d.expect("with a quorum", "")
	d.lose()
	d.m.turn = 0
	for _, address := range []string{"s:1", "b:1", "c:1", "s:1"} {
		d.pass(seedInterval - 1)
		d.expect("before its time", "")
		d.pass(1)
		d.expect("without a quorum", "control.Introduce to "+address)
		d.pass(10 * seedInterval)
		d.expect("before the reply", "control.Introduce to "+address)
		d.reply(Reply{Err: errSilent})
	}
	d.g.state = membership.Active
	d.pass(10 * seedInterval)
	d.expect("with a quorum again", "")
}

// The seeds of the next membership have no address twice.
func TestMemberSeedsAreDifferent(t *testing.T) {
	d := driveMember(t, nil)
	d.m.SetSeeds([]string{"c:1", "s:1"})
	if got, want := d.m.Seeds(), []string{"c:1", "s:1", "b:1"}; !slices.Equal(got, want) {
		t.Errorf("the seeds are %v, want %v", got, want)
	}
}

// A member tells seeds outside its view of the group, if processes begin the group together.
func TestMemberTellsSeedsOfTheGroup(t *testing.T) {
	d := driveMember(t, func(c *MemberConfig) { c.Tell = true })
	d.m.SetSeeds([]string{"s:1", "b:1"})
	d.pass(seedInterval)
	d.expect("a seed outside the view", "control.Founding to s:1")
	if r := d.asks[0].Request.(control.Founding); r.Group != "a:1" || r.From.ID != "a" {
		t.Errorf("it says %+v", r)
	}
	d.reply(Reply{Err: errSilent})
	d.pass(2*seedInterval - 1)
	d.expect("a seed in the view", "")
	d.pass(1)
	d.expect("the first one again", "control.Founding to s:1")
}

// What a member does with the latest view that a seed knows.
func TestMemberComparesViews(t *testing.T) {
	later, same, older := three(9, 50), three(7, 50), viewOf(5, named(1, "b", 1, 11))
	without := viewOf(9, named(0, "x", 9, 60), named(1, "b", 1, 11))
	replaced := viewOf(9, named(1, "b", 1, 11), named(3, "a", 9, 70))
	for _, c := range []struct {
		name string
		role control.Role
		view *membership.View
		want string
	}{
		{"no view", control.Member, nil, ""},
		{"the same view", control.Member, &same, ""},
		{"an older view without it", control.Member, &older, ""},
		{"a later view", control.Member, &later, "learn of s:1"},
		{"a later view of a restarted voter", control.RestartedVoter, &later, "learn of s:1"},
		{"a later view without it", control.Member, &without, "removed by view 9 of s:1"},
		{"a later view with its successor", control.Member, &replaced, "removed by view 9 of s:1"},
		{"the view of a candidate, without it", control.Candidate, &without, ""},
	} {
		d := driveMember(t, nil)
		d.lose()
		d.pass(seedInterval)
		d.reply(introduction("s", c.role, c.view))
		for _, a := range d.actions {
			if r, ok := a.(Remove); ok && (r.Holder != nil) != (c.view == &replaced) {
				t.Errorf("%s: its successor is %v", c.name, r.Holder)
			}
		}
		d.expect(c.name, c.want)
	}
}

// A member that has lost its quorum learns where members are that it cannot reach.
func TestMemberMeetsProcessesElsewhere(t *testing.T) {
	d := driveMember(t, nil)
	d.lose()
	d.g.unreachable = []protocol.Rank{1}
	d.pass(seedInterval)
	i := of("c", control.RestartedVoter, nil)
	i.Address, i.Others = "c:9", []control.Contact{{ID: "b", Address: "b:9"}}
	d.reply(Reply{Body: i.Encode(nil)})
	d.expect("a reachable member and one that is not", "move to b:9")
	for _, want := range []string{"b:9", "b:1"} {
		if v := d.g.view; d.m.Address(v.Members.At(1)) != want {
			t.Errorf("b is at %s, want %s", d.m.Address(v.Members.At(1)), want)
		}
		d.g.view = viewOf(8, named(0, "a", 1, 50), named(1, "b", 8, 12))
	}
}

// A process that a peer does not know yet asks it to catch up.
func TestMemberAsksPeerToCatchUp(t *testing.T) {
	d := driveMember(t, nil)
	for range 3 {
		d.m.Early(d.now, 1)
		d.m.Early(d.now, 9)
		d.settle()
		d.expect("refused by rank 1 and an unknown one", "control.CatchUp to b:1")
	}
	if r := d.asks[0].Request.(control.CatchUp); r.View != 1 || r.Address != "a:1" {
		t.Errorf("it says %+v", r)
	}
	d.reply(Reply{})
	d.m.Early(d.now, 1)
	d.settle()
	d.expect("refused after the reply", "control.CatchUp to b:1")
}

// A member catches up only if it is stuck, with one process at a time, until it has its view.
func TestMemberCatchesUp(t *testing.T) {
	good := Reply{Body: membership.Decisions{}.Encode(nil)}
	begin := func() *memberDriver {
		d := driveMember(t, nil)
		d.g.stuck = true
		if _, err := d.requested(control.CatchUp{View: 9, Address: "j:1"}); err != nil {
			t.Error(err)
		}
		d.expect("a stuck member", "control.Decisions to j:1")
		return d
	}
	t.Run("a member that is not stuck refuses", func(t *testing.T) {
		d := driveMember(t, nil)
		if _, err := d.requested(control.CatchUp{View: 9, Address: "j:1"}); err == nil {
			t.Error("it accepts")
		}
		d.expect("a member with a quorum", "")
	})
	t.Run("it asks again, but not forever", func(t *testing.T) {
		d := begin()
		for try := range catchUpTries {
			if _, err := d.requested(control.CatchUp{View: 12, Address: "k:1"}); err != nil {
				t.Error(err)
			}
			d.expect("another process", "control.Decisions to j:1")
			d.reply(good)
			d.expect("decisions", "learn of j:1")
			d.m.Learned(d.now, "s:1", errSilent) // of another process
			d.pass(catchUpInterval - 1)
			d.expect("right after that", "")
			d.pass(1)
			if try == catchUpTries-1 {
				d.expect("after the last try", "")
			}
		}
		_, _ = d.requested(control.CatchUp{View: 12, Address: "k:1"})
		d.expect("another process", "control.Decisions to k:1")
	})
	for _, end := range []struct {
		name string
		act  func(*memberDriver)
	}{
		{"the process does not answer", func(d *memberDriver) { d.reply(Reply{Err: errSilent}) }},
		{"it answers something else", func(d *memberDriver) { d.reply(Reply{Body: []byte{1}}) }},
		{"the member has its quorum back", func(d *memberDriver) { d.g.stuck = false; d.reply(good) }},
		{"the view is installed", func(d *memberDriver) {
			d.reply(good)
			d.expect("decisions", "learn of j:1")
			d.g.view = three(9, 50)
			d.m.Installed(&d.g.view)
			d.settle()
		}},
		{"the decisions are not taken", func(d *memberDriver) {
			d.reply(good)
			d.expect("decisions", "learn of j:1")
			d.m.Learned(d.now, "j:1", errSilent)
			d.settle()
		}},
	} {
		t.Run("it ends if "+end.name, func(t *testing.T) {
			d := begin()
			end.act(d)
			d.expect(end.name, "")
			d.g.stuck = true
			if _, err := d.requested(control.CatchUp{View: 12, Address: "k:1"}); err != nil {
				t.Error(err)
			}
			d.expect("another process, right after that", "control.Decisions to k:1")
			d.reply(Reply{Err: errSilent})
			d.pass(10 * catchUpInterval)
			d.expect("after both", "")
		})
	}
}

// A process that was removed asks other members whether another process has its ID.
func TestMemberLooksForSuccessor(t *testing.T) {
	view := func(number uint64, successor bool) Reply {
		v := viewOf(number, named(1, "b", 1, 11))
		if successor {
			v = viewOf(number, named(1, "b", 1, 11), named(3, "a", 9, 70))
		}
		b, _ := control.Open((&control.ViewReply{View: v}).Encode())
		return Reply{Body: b}
	}
	const asked = "control.View to b:1, control.View to c:1"
	for _, c := range []struct {
		name    string
		replies []Reply
		want    string
	}{
		{"a successor", []Reply{view(10, true)}, "control.View to c:1, ended, successor: true"},
		{"a successor in that view", []Reply{view(8, true)}, "control.View to c:1, ended, successor: true"},
		{"none", []Reply{view(10, false)}, "control.View to c:1, ended, successor: false"},
		{"an old view, then a successor", []Reply{view(7, false), view(10, true)}, "ended, successor: true"},
		{"no answers", []Reply{{Err: errSilent}, {Err: errSilent}}, "ended, successor: false"},
		{"one answer, which is too old", []Reply{view(7, true)}, "control.View to c:1"},
	} {
		d := driveMember(t, nil)
		d.g.state = membership.Evicted
		d.m.Evicted(d.now, 8)
		d.m.Evicted(d.now, 8)
		d.settle()
		d.expect(c.name, asked)
		for _, r := range c.replies {
			d.reply(r)
		}
		d.expect(c.name, c.want)
		d.pass(successorTimeout - 1)
		ended := strings.Contains(c.want, "ended")
		d.pass(1)
		if ended {
			d.actions = append(d.actions, Ended{})
		}
		d.asks = nil
		d.expect(c.name+", at the timeout", "ended, successor: false")
		d.pass(100 * seedInterval)
		d.expect("after the end", "")
	}
	d := driveMember(t, nil)
	d.g.view = viewOf(7, named(0, "a", 1, 50))
	d.m.Evicted(d.now, 8)
	d.settle()
	d.expect("nobody to ask", "ended, successor: false")
}

// A member answers with the view that it has installed.
func TestMemberAnswers(t *testing.T) {
	d := driveMember(t, func(c *MemberConfig) { c.Began = []founding.Candidate{{ID: "z"}} })
	from := control.Contact{ID: "q", Address: "q:1"}
	introduce := func(view uint64) *control.Introduction {
		b, err := d.requested(control.Introduce{Question: control.Question{From: from, View: view}})
		if err != nil {
			t.Fatal(err)
		}
		i, err := control.DecodeIntroduction(b)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	marks := []uint64{control.Mark("a", 50)}
	if i := introduce(3); i.Role != control.Member || i.View == nil || i.View.Number != 7 || i.ID != "a" ||
		!slices.Equal(i.Marks, marks) {
		t.Errorf("it introduces itself as %+v", i)
	}
	if i := introduce(7); i.View != nil {
		t.Error("it sends a view that is known")
	}
	from = control.Contact{}
	if i := introduce(3); i.View == nil || i.View.Members.At(0).Nonce == 50 {
		t.Error("an observer gets a nonce")
	}
	view := func() control.ViewReply {
		b, err := d.requested(control.View{})
		r, err2 := control.DecodeView(b)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return r
	}
	if r := view(); r.View.Number != 7 || r.Lost != nil || r.View.Members.At(0).Nonce == 50 {
		t.Errorf("its view is %+v", r)
	}
	d.lose()
	d.g.unreachable = []protocol.Rank{1, 2}
	if r := view(); r.Lost == nil || r.Lost.Reachable != 1 || r.Lost.Needed != 2 || len(r.Lost.Unreachable) != 2 {
		t.Errorf("without a quorum, its view is %+v", r)
	}
	if b, err := d.requested(control.Decisions{}); err != nil || len(b) == 0 {
		t.Errorf("decisions %x, %v", b, err)
	}
	if _, err := d.requested(control.Confirm{}); err == nil {
		t.Error("it confirms the request of a candidate")
	}
	for _, first := range []bool{true, false} {
		d.g.view.Number = 7
		if first {
			d.g.view.Number = 1
		}
		request, self := &founding.Request{From: founding.Candidate{ID: "z"}}, founding.Candidate{ID: "a", Address: "a:1"}
		b, _ := d.m.Requested(d.now, control.Founding{Request: *request})
		want := founding.Answer(self, nil, request)
		if first {
			want = founding.Answer(self, []founding.Candidate{{ID: "z"}}, request)
		}
		if string(b) != string(want.Encode(nil)) {
			t.Errorf("first view %t: it answers a candidate %q", first, b)
		}
	}
	if _, ok := d.m.Requested(d.now, control.Progress{}); ok {
		t.Error("it answers a request of others")
	}
	d.g.state = membership.Evicted
	if _, err := d.requested(control.Introduce{}); err == nil {
		t.Error("it introduces itself after its end")
	}
}

// Whatever happens, a member asks others only, seeds one at a time and with a pause, learns and ends
// only if it is stuck and a view is later, and has an action or a deadline in the future.
func TestMemberKeepsRules(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := driveMember(t, func(c *MemberConfig) { c.Tell = rapid.Bool().Draw(r, "tell") })
		lastSeed, ended := d.now, 0
		number := rapid.Uint64Range(1, 12)
		replies := func() Reply {
			v := three(number.Draw(r, "view"), 50)
			if rapid.Bool().Draw(r, "without") {
				v = viewOf(v.Number, named(1, "b", 1, 11))
			}
			return introduction("s", control.Role(rapid.IntRange(0, 2).Draw(r, "role")), &v)
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			asked, late := len(d.asks), d.now
			switch rapid.IntRange(0, 8).Draw(r, "input") {
			case 0:
				d.lose()
			case 1:
				d.g.state, d.g.stuck = membership.Active, rapid.Bool().Draw(r, "stuck")
			case 2:
				d.m.Early(d.now, protocol.Rank(rapid.IntRange(0, 4).Draw(r, "peer")))
			case 3:
				_, _ = d.m.Requested(d.now, control.CatchUp{View: number.Draw(r, "admitted"), Address: "j:1"})
			case 4:
				d.g.view = three(max(d.g.view.Number, number.Draw(r, "next")), 50)
				d.m.Installed(&d.g.view)
			case 5:
				if asked > 0 {
					a := d.asks[0]
					reply := Reply{Err: errSilent}
					switch _, decisions := a.Request.(control.Decisions); {
					case decisions && rapid.Bool().Draw(r, "answers"):
						reply = Reply{Body: membership.Decisions{}.Encode(nil)}
					case !decisions && rapid.Bool().Draw(r, "answers"):
						reply = replies()
					}
					d.reply(reply)
					asked--
					if _, seed := a.Request.(control.Introduce); seed {
						lastSeed = d.now
					}
				}
			case 6:
				d.m.Replied(d.now, 1<<40, replies()) // to nothing
			case 7:
				if rapid.IntRange(0, 9).Draw(r, "evicted") == 0 {
					d.g.state = membership.Evicted
					d.m.Evicted(d.now, 8)
				}
			default:
				late += protocol.Time(rapid.Int64Range(0, int64(3*seedInterval)).Draw(r, "time"))
			}
			d.settle()
			for d.m.Deadline() <= late {
				d.now = d.m.Deadline()
				d.settle()
			}
			d.now = late
			for _, a := range d.asks[asked:] {
				if a.Address == "a:1" {
					r.Fatal("it asks itself")
				}
				switch a.Request.(type) {
				case control.Introduce, control.Founding:
					if d.now < lastSeed+seedInterval {
						r.Fatal("it asks a seed too early")
					}
				}
			}
			seeds := 0
			for _, a := range d.asks {
				if _, ok := a.Request.(control.Introduce); ok {
					seeds++
				}
			}
			if seeds > 1 {
				r.Fatal("it asks two seeds at a time")
			}
			for _, a := range d.actions {
				switch a := a.(type) {
				case Learn:
					if !d.g.stuck {
						r.Fatal("it learns although it is not stuck")
					}
				case Remove:
					if !d.g.stuck || a.View <= d.g.view.Number {
						r.Fatalf("it ends because of view %d", a.View)
					}
				case Ended:
					ended++
				}
			}
			d.actions = nil
			if ended > 1 {
				r.Fatal("it ends twice")
			}
		}
		if d.m.removal.began {
			d.pass(successorTimeout)
			if ended+len(d.actions) != 1 {
				r.Fatal("the search for a successor does not end")
			}
		}
	})
}
