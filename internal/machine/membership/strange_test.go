package membership

import (
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// Frames that no correct member sends: a process with a fault of its own may, or one that is
// not what it says.

// strange returns frames like f that are wrong in one way each, and what is wrong. Ignored
// ones are of senders that have no say.
func strange(m *Machine, f *frame) (refused, ignored map[string]*frame) {
	refused, ignored = map[string]*frame{}, map[string]*frame{}
	wrong := func(list map[string]*frame, what string, change func(*frame)) {
		g := *f
		g.members = slices.Clone(f.members)
		if f.value != nil {
			v := *f.value
			v.removed, v.added, v.changed = slices.Clone(v.removed), slices.Clone(v.added), slices.Clone(v.changed)
			g.value = &v
		}
		change(&g)
		list[what] = &g
	}
	if f.kind != Commit {
		wrong(ignored, "another incarnation of its sender", func(g *frame) { g.incarnation++ })
	}
	if f.kind == Prepare || f.kind == Cancel || f.kind == Propose {
		wrong(refused, "a ballot of no member", func(g *frame) { g.ballot.Rank = m.view.Slots + 1 })
		wrong(refused, "a ballot of the receiver", func(g *frame) { g.ballot.Rank = m.config.Self.Rank })
	}
	if f.members != nil {
		wrong(refused, "a set that is too long", func(g *frame) { g.members = append(g.members, 0) })
		wrong(refused, "a member that is none", func(g *frame) { g.members = append(g.members, 1) })
	}
	if len(f.reports) > 0 {
		wrong(refused, "a report by no member", func(g *frame) {
			g.reports = append(slices.Clone(g.reports), report{by: m.view.Slots + 1})
		})
	}
	if f.kind == Prepare {
		wrong(refused, "a ballot without its receiver", func(g *frame) { g.members.remove(m.self) })
		wrong(refused, "a ballot without its owner", func(g *frame) {
			if i, ok := m.view.index(g.ballot.Rank); ok {
				g.members.remove(i)
			}
		})
	}
	if f.value != nil && m.takesValue(f) {
		strangeValues(m, f, func(what string, change func(*value)) {
			wrong(refused, what, func(g *frame) { change(g.value) })
		})
	}
	return refused, ignored
}

// takesValue reports whether a machine looks at the value of a frame, rather than answers what it
// has answered before.
func (m *Machine) takesValue(f *frame) bool {
	p := m.acceptor.current
	return f.kind == Commit || m.acceptor.decided == nil && p != nil && p.ballot == f.ballot && p.proposal == nil &&
		!f.ballot.less(m.acceptor.promised)
}

// strangeValues lists what is wrong with values that follow the view of m.
func strangeValues(m *Machine, f *frame, wrong func(what string, change func(*value))) {
	newcomer := Member{
		Rank: f.value.slots, Identity: "newcomer", Address: "somewhere", Incarnation: f.value.number,
		Nonce: 1 << 40, Version: m.view.Version,
	}
	add := func(v *value, change func(*Member)) {
		v.slots += 2
		n := newcomer
		change(&n)
		v.added = append(v.added, n)
	}
	if f.kind != Commit { // of which any number makes sense
		wrong("a view that is not the next", func(v *value) { v.number++ })
	}
	wrong("no slots", func(v *value) { v.slots = 0 })
	wrong("too many slots", func(v *value) { v.slots = MaxSlots + 1 })
	wrong("fewer slots than ranks", func(v *value) {
		v.slots = m.view.Members.At(m.view.Members.Len() - 1).Rank
		v.removed, v.reasons, v.added = newSet(m.view.Members.Len()), nil, nil
	})
	wrong("nobody stays", func(v *value) {
		v.removed, v.reasons, v.added, v.changed = set(nil).complement(m.view.Members.Len()), nil, nil, nil
	})
	wrong("removed members of another view", func(v *value) { v.removed, v.reasons = append(v.removed, 0), nil })
	wrong("a member that was admitted by another view", func(v *value) { add(v, func(n *Member) { n.Incarnation-- }) })
	wrong("a member without a rank", func(v *value) { add(v, func(n *Member) { n.Rank = protocol.NoRank }) })
	wrong("a member beyond the slots", func(v *value) { add(v, func(n *Member) { n.Rank = v.slots }) })
	wrong("a member twice", func(v *value) { add(v, func(*Member) {}); add(v, func(n *Member) { n.Rank++ }) })
	wrong("two members of a rank",
		func(v *value) { add(v, func(*Member) {}); add(v, func(n *Member) { n.Identity = "other" }) })
	wrong("a member in the place of one that stays", func(v *value) {
		add(v, func(n *Member) { n.Rank = m.config.Self.Rank })
		v.removed, v.reasons = newSet(m.view.Members.Len()), nil
	})
	wrong("a member with the identity of one that stays", func(v *value) {
		add(v, func(n *Member) { n.Identity = m.view.Members.At(m.self).Identity })
		v.removed, v.reasons = newSet(m.view.Members.Len()), nil
	})
	wrong("a member without an identity", func(v *value) { add(v, func(n *Member) { n.Identity = "" }) })
	wrong("a change of no member", func(v *value) { v.changed = append(v.changed, newcomer) })
	changed := func(v *value, change func(*Member), times int) {
		v.removed, v.reasons, v.added, v.changed = newSet(m.view.Members.Len()), nil, nil, nil
		of := *m.view.Members.At(0)
		change(&of)
		v.slots, v.changed = m.view.Slots, slices.Repeat([]Member{of}, times)
	}
	wrong("a change twice", func(v *value) { changed(v, func(of *Member) { of.Meta += "x" }, 2) })
	wrong("a change of more than attributes", func(v *value) { changed(v, func(of *Member) { of.Address += "x" }, 1) })
	wrong("an earlier version", func(v *value) { v.version = m.view.Version - 1 })
}

// essence is what a frame must not change: what the machine has promised, knows, is asked for
// and sends.
func (m *Machine) essence() any {
	r := &m.acceptor
	return &struct {
		view                         uint64
		done                         bool
		promised, accepted, proposed Ballot
		value, decided               *value
		holds                        []Ballot
		frozen, leaving              bool
		current                      *ballotState
		later                        *frame
		suspicions                   suspicions
		requests                     requests
		outbox, waiting              []send
		answers                      int
	}{
		m.view.Number, m.done != nil, r.promised, r.accepted, r.proposed, r.value, r.decided, r.holds, r.frozen, m.leaving,
		r.current, m.later,
		m.suspicions, m.requests, m.outbox[m.sent:], m.waiting, len(m.answers),
	}
}

// checkStrange hands copies of a machine frames that are wrong, made from one that it is about
// to get. It refuses or ignores them: they are no more than a sign of life.
func (n *network) checkStrange(seed maphash.Seed, h *host, from protocol.Rank, b []byte) (tried int) {
	f, err := parse(from, b)
	if err != nil || h.m.done != nil || f.kind != Commit &&
		(f.view != h.m.view.Number || !h.m.view.Holds(from, f.incarnation)) {
		return 0
	}
	if f.kind == Commit && (f.value.number != h.m.view.Number+1 || h.m.acceptor.decided != nil) {
		return 0
	}
	after := func(do func(*Machine)) uint64 {
		c := deepCopy(h.m)
		c.now = n.now
		do(c)
		return fingerprint(seed, c.essence())
	}
	alive := func(c *Machine) {
		if f.kind != Commit {
			c.heard(from)
			c.holderShown(from)
		}
	}
	same := []uint64{
		after(func(c *Machine) { c.consider(n.now) }),
		after(func(c *Machine) { alive(c); c.consider(n.now) }),
		after(func(c *Machine) { alive(c); c.answered(from, nil); c.consider(n.now) }),
		after(func(c *Machine) { alive(c); c.answered(from, f.members); c.consider(n.now) }),
		after(func(c *Machine) { alive(c); c.attempts(f.ballot.Rank); c.consider(n.now) }),
	}
	refused, ignored := strange(h.m, f)
	try := func(what string, f *frame, refuse bool) {
		tried++
		var err error
		got := after(func(c *Machine) { err = c.Receive(n.now, from, f.append(nil)) })
		if !slices.Contains(same, got) {
			n.t.Errorf("%v with %s changes %s: %v", f.kind, what, who(h.self), err)
		}
		if refuse && !errors.Is(err, ErrFrame) {
			n.t.Errorf("%v with %s is not refused by %s: %v", f.kind, what, who(h.self), err)
		}
	}
	for what, g := range refused {
		try(what, g, true)
	}
	for what, g := range ignored {
		try(what, g, false)
	}
	return tried
}

// A frame that no correct member sends is refused, or has no effect, whatever the state of its
// receiver.
func TestStrangeFramesHaveNoEffect(t *testing.T) {
	hash, rng := maphash.MakeSeed(), rand.New(rand.NewPCG(1, 1))
	tried := 0
	for seed := range uint64(60) {
		s := newSchedule(t, seed)
		s.n.strange = func(h *host, from protocol.Rank, b []byte) {
			if kind := Kind(b[0]); (kind >= Prepare || rng.IntN(20) == 0) && rng.IntN(10) == 0 && !t.Failed() {
				tried += s.n.checkStrange(hash, h, from, b)
			}
		}
		if err := s.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d strange frames", tried)
	if tried < 1000 {
		t.Error("the schedules exercise little")
	}
}

// What comes from outside has limits, and what is within them is taken.
func TestLimitsOfCandidatesAndViews(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	for name, set := range map[string]func(m *Member, longer string){
		"identity": func(m *Member, longer string) { m.Identity = long + longer },
		"address":  func(m *Member, longer string) { m.Address = long + longer },
		"domain":   func(m *Member, longer string) { m.Domain = long + longer },
		"meta":     func(m *Member, longer string) { m.Meta = strings.Repeat("x", MaxMeta) + longer },
		"nothing but no identity": func(m *Member, longer string) {
			if longer != "" {
				m.Identity = ""
			}
		},
	} {
		for _, longer := range []string{"", "y"} {
			v := firstView(3)
			joiner := Member{Rank: 3, Identity: "d", Address: "d", Nonce: 9, Incarnation: 1}
			set(&joiner, longer)
			self := *v.Members.At(0)
			m, err := New(Config{Self: self, View: v, Log: newTestLog(self, v)})
			if err != nil {
				t.Fatal(err)
			}
			m.Join(1, 1, joiner, false)
			if a, refused := m.Answers(); refused != (longer != "") {
				t.Errorf("a candidate with %s and %d more: %v", name, len(longer), a.Err)
			}
			v.Slots, v.Members = 4, v.Members.change(nil, joiner)
			if _, err := DecodeView(v.Encode(nil)); err != nil != (longer != "") {
				t.Errorf("a view with %s and %d more: %v", name, len(longer), err)
			}
			if err := v.check(); err != nil != (longer != "") {
				t.Errorf("a view with %s and %d more: %v", name, len(longer), err)
			}
		}
	}
}

// A view that no group has is refused.
func TestStrangeViews(t *testing.T) {
	former := Member{Rank: 3, Identity: "former", Address: "x", Incarnation: 1}
	valid := func() View {
		v := firstView(3)
		v.Slots, v.Former = 5, MembersOf(former)
		return v
	}
	for what, change := range map[string]func(*View){
		"":                              func(*View) {},
		"as many slots as ranks":        func(v *View) { v.Slots = 4 },
		"as many slots as there may be": func(v *View) { v.Slots = MaxSlots },
		"! no slots":                    func(v *View) { v.Slots = 0 },
		"! too many slots":              func(v *View) { v.Slots = MaxSlots + 1 },
		"! no members":                  func(v *View) { v.Members = Members{} },
		"! a rank beyond the slots":     func(v *View) { v.Slots, v.Former = 2, Members{} },
		"! a former one beyond them":    func(v *View) { v.Slots = 3 },
		"! an identity twice": func(v *View) {
			v.Members = v.Members.change(nil,
				Member{Rank: 4, Identity: "p0", Address: "x"})
		},
		"! a member that is former": func(v *View) {
			v.Members = v.Members.change(nil,
				Member{Rank: 4, Identity: "former", Address: "x"})
		},
		"! a former one of a member's rank": func(v *View) {
			v.Members = v.Members.change(nil, Member{Rank: 3, Identity: "p3", Address: "x"})
		},
		"! a member of an earlier version": func(v *View) { v.Version = 1 },
		"! a former one without identity":  func(v *View) { v.Former = MembersOf(Member{Rank: 3}) },
	} {
		v := valid()
		change(&v)
		if _, err := DecodeView(v.Encode(nil)); err != nil != strings.HasPrefix(what, "!") {
			t.Errorf("%q: %v", what, err)
		}
	}
}
