package founding

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// candidateOf returns a candidate whose address is its name.
func candidateOf(id string) Candidate {
	return Candidate{ID: id, Nonce: uint64(id[0]), Address: id + ":1", Version: 5}
}

// machine returns that of candidate m, which expects so many, and has the seeds.
func machine(expect int, seeds ...string) *Machine {
	return New(Config{Self: candidateOf("m"), Expect: expect, Seeds: seeds, Interval: 100 * millisecond})
}

// round returns the requests of one round, and lets the next one begin after the interval.
func (m *Machine) round(now protocol.Time) (asked []string) {
	for address, _, ok := m.Next(now); ok; address, _, ok = m.Next(now) {
		asked = append(asked, address)
	}
	return asked
}

// answer has the candidate at its address answer a question.
func (m *Machine) answer(now protocol.Time, c Candidate, term uint64, free bool) {
	m.HandleReply(now, c.Address, &Reply{From: c, Term: term, Free: free})
}

// promiseOf is the request of a candidate that is promised to m.
func promiseOf(m *Machine, c Candidate) *Request {
	return &Request{From: c, Expect: m.config.Expect, Promise: m.config.Self.Nonce, Term: m.term}
}

// A candidate that has waited only for a seed promises itself as soon as the seed is known to be gone.
func TestGoneSeedIsNotWaitedFor(t *testing.T) {
	a := candidateOf("a")
	m := machine(2, a.Address, "z:1")
	m.round(1)
	m.answer(2, a, 1, true)
	if _, founder := m.Known(); founder != (Candidate{}) {
		t.Errorf("it is promised to %v, and there may be a group", founder)
	}
	m.HandleFailure(3, "z:1", true)
	if _, founder := m.Known(); founder != a {
		t.Errorf("it is promised to %v", founder)
	}
}

// Candidates and replies that make no sense are refused, and what is within the limits is taken.
func TestLimits(t *testing.T) {
	long := strings.Repeat("x", maxText)
	for what, change := range map[string]func(*Candidate){
		"":                       func(*Candidate) {},
		"a long ID":              func(c *Candidate) { c.ID = long },
		"a long address":         func(c *Candidate) { c.Address = long },
		"a long domain":          func(c *Candidate) { c.Domain = long },
		"! no ID":                func(c *Candidate) { c.ID = "" },
		"! no address":           func(c *Candidate) { c.Address = "" },
		"! no nonce":             func(c *Candidate) { c.Nonce = 0 },
		"! an ID that is longer": func(c *Candidate) { c.ID = long + "x" },
		"! a longer address":     func(c *Candidate) { c.Address = long + "x" },
		"! a domain that is too": func(c *Candidate) { c.Domain = long + "x" },
	} {
		c := candidateOf("a")
		change(&c)
		refused := strings.HasPrefix(what, "!")
		request := Request{From: c, Expect: 3, Group: "g:1"}
		if _, err := DecodeRequest(request.Encode(nil)); err != nil != refused {
			t.Errorf("a request with %s: %v", what, err)
		}
		reply := Reply{From: c}
		if _, err := DecodeReply(reply.Encode(nil)); err != nil != refused {
			t.Errorf("a reply with %s: %v", what, err)
		}
		reply.Member = true // members may have no nonce
		if _, err := DecodeReply(reply.Encode(nil)); err != nil {
			t.Errorf("a member with %s: %v", what, err)
		}
		reply.Began = []Candidate{candidateOf("b"), c}
		b := reply.Encode(nil)
		if _, err := DecodeReply(b); err != nil != refused {
			t.Errorf("a first view with %s: %v", what, err)
		}
		for cut := range len(b) {
			if _, err := DecodeReply(b[:cut]); err == nil {
				t.Fatalf("%d of %d bytes are taken", cut, len(b))
			}
		}
	}
	m := machine(3)
	for i := range maxContacts + 9 {
		id := fmt.Sprint("z", i)
		m.Handle(1, &Request{From: Candidate{ID: id, Address: id, Nonce: 1}, Expect: 4})
	}
	if len(m.contacts) != maxContacts || len(m.differing) != maxContacts || len(m.order) != maxContacts {
		t.Errorf("%d contacts, %d in order, %d differ", len(m.contacts), len(m.order), len(m.differing))
	}
}

// Questions go to candidates that were never asked, and to a few others in turn; to each one at a
// time, and never to the candidate itself.
func TestQuestions(t *testing.T) {
	m := New(Config{Self: candidateOf("m"), Expect: 20, Seeds: []string{"s:1", "m:1", "", "s:1"}})
	if m.config.Interval != 120*millisecond {
		t.Errorf("the interval is %d ms", m.config.Interval/millisecond)
	}
	if asked := m.round(1); !slices.Equal(asked, []string{"s:1", "m:1"}) { // it does not know yet that it is the second
		t.Errorf("it asks %v", asked)
	}
	if m.Deadline() != 1+m.config.Interval {
		t.Errorf("the next round is at %d", m.Deadline())
	}
	m.HandleReply(2, "m:1", &Reply{From: candidateOf("m")})
	if asked := m.round(m.Deadline()); len(asked) > 0 {
		t.Errorf("it asks %v before they have answered, or itself", asked)
	}
	others := []string{"n:1", "o:1", "p:1", "q:1", "r:1"}
	m.HandleReply(3, "s:1", &Reply{From: candidateOf("s"), Others: others})
	if asked := m.round(m.Deadline()); !slices.Equal(asked, append([]string{"s:1"}, others...)) &&
		!slices.Equal(asked, append(others, "s:1")) {
		t.Errorf("it asks %v", asked)
	}
	for _, address := range append(others, "s:1") {
		m.answer(m.now, candidateOf(address[:1]), 1, true)
	}
	count := map[string]int{}
	for range 6 {
		asked := m.round(m.Deadline())
		if len(asked) != fanout {
			t.Errorf("it asks %v", asked)
		}
		for _, address := range asked {
			count[address]++
			m.answer(m.now, candidateOf(address[:1]), 1, true)
		}
	}
	for _, address := range append(others, "s:1") {
		if count[address] != 3 {
			t.Errorf("it has asked %v", count)
		}
	}
}

// A candidate is promised to the one with the lowest ID that is free, when all seeds have answered
// or failed. The promise lasts until that one is gone, is another process, has ended it, or is in
// a group.
func TestPromises(t *testing.T) {
	promised := func(t *testing.T) *Machine {
		m := machine(3, "a:1", "z:1")
		m.round(1)
		m.answer(2, candidateOf("a"), 7, true)
		if m.founder != (promise{}) {
			t.Fatal("it has promised before all seeds have answered")
		}
		m.HandleFailure(3, "z:1", false)
		m.round(m.Deadline())
		if m.founder.to != candidateOf("a") || m.founder.term != 7 {
			t.Fatalf("it has promised %v", m.founder)
		}
		if _, group := m.Outcome(); group != "" {
			t.Fatal("a group")
		}
		return m
	}
	m := machine(3, "a:1")
	m.round(1)
	m.answer(2, candidateOf("a"), 7, true)
	if m.founder.to != candidateOf("a") {
		t.Error("it promises in the next round, and not at once")
	}
	m = promised(t)
	now := m.now + 1
	m.HandleReply(now, "a:1", &Reply{From: candidateOf("a"), Term: 7})
	m.HandleReply(now, "0:1", &Reply{From: candidateOf("0"), Term: 1, Free: true})
	m.contact("0:1")
	m.answer(now, candidateOf("0"), 1, true)
	m.HandleFailure(now, "a:1", false)
	if m.founder.to != candidateOf("a") {
		t.Errorf("it is promised to %v", m.founder.to)
	}
	if reply := m.Handle(now, promiseOf(m, candidateOf("p"))); reply.Free || len(m.promised) > 0 {
		t.Error("one that is promised takes a promise, or says that it is free")
	}
	for address, r, ok := m.Next(m.Deadline()); ok; address, r, ok = m.Next(m.now) {
		if to := address == "a:1"; (r.Promise == candidateOf("a").Nonce && r.Term == 7) != to || !to && r.Promise != 0 {
			t.Errorf("%s is told %+v", address, r)
		}
	}
	for what, release := range map[string]func(*Machine){
		"gone":                  func(m *Machine) { m.HandleFailure(m.now, "a:1", true) },
		"another process":       func(m *Machine) { c := candidateOf("a"); c.Nonce++; m.answer(m.now, c, 7, false) },
		"a later term":          func(m *Machine) { m.answer(m.now, candidateOf("a"), 8, false) },
		"! an earlier term":     func(m *Machine) { m.answer(m.now, candidateOf("a"), 6, false) },
		"! silent":              func(m *Machine) { m.HandleFailure(m.now, "a:1", false) },
		"! another one is gone": func(m *Machine) { m.HandleFailure(m.now, "z:1", true) },
		"! another is a member": func(m *Machine) {
			m.HandleReply(m.now, "z:1", &Reply{From: candidateOf("z"), Member: true})
		},
		"a member of a group": func(m *Machine) {
			m.HandleReply(m.now, "a:1", &Reply{From: candidateOf("a"), Member: true})
		},
	} {
		m := promised(t)
		term := m.term
		release(m)
		if kept := m.founder.to.Nonce != 0; kept != strings.HasPrefix(what, "!") {
			t.Errorf("%s: promised %t", what, kept)
		}
		if _, group := m.Outcome(); (group != "") != (what == "a member of a group") {
			t.Errorf("%s: the outcome is the group at %q", what, group)
		}
		if strings.Contains(what, "member") && (m.group == "" || m.term == term) {
			t.Errorf("%s: it does not know of the group, or has not ended promises", what)
		}
	}
}

// A founder begins with candidates that have answered at their addresses, and that have repeated
// their promises since there were enough.
func TestBegins(t *testing.T) {
	m := machine(3)
	p, q := candidateOf("p"), candidateOf("q")
	now := protocol.Time(1)
	promise := func(c Candidate) {
		now++
		m.Handle(now, promiseOf(m, c))
	}
	began := func() bool { b, _ := m.Outcome(); return b != nil }
	m.round(now)
	promise(p)
	if asked := m.round(now); len(m.promised) > 0 || !slices.Equal(asked, []string{"p:1"}) {
		t.Fatalf("a promise of a candidate that was not reached counts, or it is not asked at once: %v", asked)
	}
	m.answer(now, p, 1, true)
	m.contact("q:1")
	m.contacts["q:1"].candidate, m.contacts["q:1"].heard = candidateOf("x"), now
	promise(q)
	if len(m.promised) > 0 {
		t.Fatal("a promise of another candidate than the one that answers there counts")
	}
	m.answer(now, q, 1, true)
	for _, wrong := range []Request{
		{From: p, Expect: 4, Promise: m.config.Self.Nonce, Term: m.term},
		{From: p, Expect: 3, Promise: m.config.Self.Nonce + 1, Term: m.term},
		{From: p, Expect: 3, Promise: m.config.Self.Nonce, Term: m.term - 1},
		{From: p, Expect: 3},
		{From: Candidate{ID: "m", Nonce: 9, Address: "other:1"}, Expect: 3, Promise: m.config.Self.Nonce, Term: m.term},
	} {
		m.Handle(now, &wrong)
		if len(m.promised) > 0 {
			t.Errorf("%+v counts", wrong)
		}
	}
	m.note("p", 3)
	promise(p)
	if len(m.promised) != 1 || m.complete != 0 {
		t.Fatal("a promise does not count")
	}
	promise(q)
	if began() || m.complete == 0 {
		t.Fatal("it begins before the promises are repeated, or does not know that they are enough")
	}
	promise(p)
	if began() {
		t.Fatal("it begins before all promises are repeated")
	}
	others := m.others("q:1")
	if !slices.Equal(others, []string{"p:1"}) {
		t.Errorf("it tells of %v", others)
	}
	promise(q)
	b, _ := m.Outcome()
	if !slices.Equal(b, []Candidate{candidateOf("m"), p, q}) {
		t.Fatalf("it begins with %v", b)
	}
	reply := m.Handle(now, promiseOf(m, p))
	if !reply.Member || len(reply.Began) != 3 || m.Handle(now, &Request{From: candidateOf("r"), Expect: 3}).Began != nil {
		t.Errorf("it answers %+v", reply)
	}
	follower := machine(3, "m:1")
	follower.config.Self = p
	follower.round(1)
	follower.HandleReply(2, "m:1", &reply)
	if b, _ := follower.Outcome(); len(b) != 3 {
		t.Error("a follower does not begin")
	}
	follower.HandleReply(3, "m:1", &Reply{From: candidateOf("x"), Member: true})
	if follower.group != "" {
		t.Error("one that has begun finds a group")
	}
}

// Promises that are not repeated do not count any more, and those of a candidate that has found a
// group end.
func TestPromisesEnd(t *testing.T) {
	m := machine(3)
	for i, id := range []string{"p", "q"} {
		m.contact(id + ":1")
		m.answer(protocol.Time(i+1), candidateOf(id), 1, true)
		m.Handle(protocol.Time(i+1), promiseOf(m, candidateOf(id)))
	}
	late := 1 + freshness*m.config.Interval
	m.now = late
	m.begin()
	if len(m.promised) != 2 || m.complete == 0 {
		t.Error("promises end too early")
	}
	if count, _ := m.Known(); count != 3 {
		t.Errorf("it knows %d", count)
	}
	m.now++
	m.begin()
	if len(m.promised) != 1 || m.complete != 0 {
		t.Errorf("%d promises count, complete %d", len(m.promised), m.complete)
	}
	if count, _ := m.Known(); count != 2 {
		t.Errorf("it knows %d", count)
	}
	term := m.term
	m.Handle(m.now, &Request{From: candidateOf("p"), Expect: 3, Group: "g:1"})
	if len(m.promised) != 0 || m.term != term+1 || m.contacts["g:1"] == nil {
		t.Error("the promises of a candidate that has found a group go on")
	}
}

// A candidate that has found a group tells others, and takes no promises, until the group does not
// let it join.
func TestFindsAGroup(t *testing.T) {
	m := machine(2, "g:1")
	m.round(1)
	m.HandleReply(2, "g:1", &Reply{From: Candidate{ID: "g"}, Member: true})
	if _, group := m.Outcome(); group != "g:1" {
		t.Errorf("the group is at %q", group)
	}
	reply := m.Handle(3, promiseOf(m, candidateOf("p")))
	if reply.Free || !slices.Equal(reply.Others, []string{"g:1"}) || len(m.promised) > 0 {
		t.Errorf("it answers %+v", reply)
	}
	m.contact("h:1")
	if m.contacts["h:1"] == nil {
		t.Fatal("no contact")
	}
	m.HandleReply(4, "h:1", &Reply{From: Candidate{ID: "h", Address: "h:2"}, Member: true})
	if m.group != "g:1" || m.contacts["h:2"] == nil {
		t.Errorf("the group is at %q, and h:2 is known: %t", m.group, m.contacts["h:2"] != nil)
	}
	for _, r, ok := m.Next(m.Deadline()); ok; _, r, ok = m.Next(m.now) {
		if r.Group != "g:1" {
			t.Errorf("it tells %+v", r)
		}
	}
	m.Lost(5)
	if _, group := m.Outcome(); group != "" || !m.Handle(6, &Request{From: candidateOf("p"), Expect: 2}).Free {
		t.Error("it is no candidate again")
	}
	m.HandleFailure(7, "h:1", true)
	m.HandleFailure(7, "g:1", true)
	if m.contacts["h:1"] != nil || slices.Contains(m.order, "h:1") || m.contacts["g:1"] == nil {
		t.Error("a seed that is gone is forgotten, or another address is not")
	}
}

// A candidate tells which others expect another number.
func TestDisagrees(t *testing.T) {
	m := machine(3)
	if _, _, ok := m.Disagrees(); ok {
		t.Error("it disagrees with none")
	}
	for id, expect := range map[string]int{"q": 4, "p": 5, "r": 3} {
		m.Handle(1, &Request{From: candidateOf(id), Expect: expect})
	}
	if id, expect, ok := m.Disagrees(); id != "p" || expect != 5 || !ok {
		t.Errorf("%s expects %d", id, expect)
	}
	m.Handle(2, &Request{From: candidateOf("p"), Expect: 3})
	if id, expect, _ := m.Disagrees(); id != "q" || expect != 4 {
		t.Errorf("%s expects %d", id, expect)
	}
}

// A process that is started again has higher terms, so that promises to the one before end.
func TestTerms(t *testing.T) {
	first, second := New(Config{Self: candidateOf("m"), Starts: 1}), New(Config{Self: candidateOf("m"), Starts: 2})
	first.term += 1000
	if second.term <= first.term || first.term == 0 {
		t.Errorf("terms %d and %d", first.term, second.term)
	}
	if reply := first.Handle(1, &Request{From: Candidate{ID: "m", Nonce: 77, Address: "x:1"}}); reply.Free ||
		reply.Term != first.term || len(first.contacts) > 0 {
		t.Errorf("a process with its ID: %+v", reply)
	}
}
