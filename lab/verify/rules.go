package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// violation is a promise of docs/guarantees.md that a history contradicts.
type violation struct {
	rule, text string
	at         int64
	processes  []string
}

// checker has what several rules need.
type checker struct {
	histories  []*history
	kind       string              // of the round
	views      map[uint64][]Member // as all processes saw them
	identity   map[identity]*history
	violations []violation
}

// identity is a membership of a process.
type identity struct {
	id          string
	incarnation uint64
}

// check checks histories by all rules.
func check(histories []*history, kind string, faults []Event, s *summary) []violation {
	c := &checker{histories: histories, kind: kind, views: map[uint64][]Member{}, identity: map[identity]*history{}}
	s.faults += len(faults)
	if kind == agents {
		c.checkKeys()
		calls, undecided := c.checkRegisters()
		s.calls += calls
		s.keyCalls += calls
		s.undecided += undecided
		return c.violations
	}
	c.numberGroups(faults)
	s.processes += len(histories)
	s.begun += c.checkBeginnings()
	c.checkViews()
	s.views += len(c.views)
	unsent := c.unsent()
	for _, h := range histories {
		s.deliveries += c.checkDelivery(h, unsent)
	}
	s.receipts += c.checkReceipts()
	c.checkSynchrony()
	s.serves += c.checkOwners()
	calls, undecided := c.checkRegisters()
	changes, vacant := c.checkLocks()
	s.calls += calls
	for group := range c.groups() {
		s.calls += c.checkQueue(keyIn(group, queueKey))
	}
	s.undecided += undecided
	s.changes += changes
	s.vacant = append(s.vacant, vacant...)
	c.checkMinorities(faults)
	c.checkProgress()
	return c.violations
}

// groupViews is more than the views of one group.
const groupViews = 1 << 32

// numberGroups tells the groups apart that stops of all members end: those after the first have
// higher numbers of views and incarnations than they say. Registers and queues in memory are others
// in each.
func (c *checker) numberGroups(faults []Event) {
	for _, h := range c.histories {
		for _, f := range faults {
			if (f.Err == leaveAll || f.Err == killAll) && len(h.events) > 0 && h.events[0].At > f.At {
				h.group++
			}
		}
		number := func(m *Member) { m.Incarnation += uint64(h.group) * groupViews }
		for i := range h.events {
			e := &h.events[i]
			if c.kind == memory && (e.Type == evCall || e.Type == evReturn) {
				e.Key = keyIn(h.group, e.Key)
			}
			if e.View > 0 {
				e.View += uint64(h.group) * groupViews
			}
			if e.Self != nil {
				number(e.Self)
			}
			for j := range e.Members {
				number(&e.Members[j])
			}
		}
	}
}

// keyIn is the number of a register or queue of a group.
func keyIn(group, key int) int {
	if key == queueKey {
		return queueKey - group
	}
	return key + group*keys
}

func (c *checker) violated(rule string, at int64, processes []string, format string, args ...any) {
	c.violations = append(c.violations, violation{rule, fmt.Sprintf(format, args...), at, processes})
}

// checkViews: views of one number have the same members, numbers rise, and a process is in its
// views. No two processes have one ID and incarnation.
func (c *checker) checkViews() {
	for _, h := range c.histories {
		last := uint64(0)
		for _, e := range h.events {
			if e.Type != evView {
				continue
			}
			if e.View < last {
				c.violated("views rise", e.At, []string{h.process}, "%s: view %d after %d", h.process, e.View, last)
			}
			last = e.View
			if known, ok := c.views[e.View]; ok && !slices.Equal(known, e.Members) {
				c.violated("views agree", e.At, []string{h.process}, "%s: view %d has %v, elsewhere %v", h.process, e.View,
					e.Members, known)
			}
			c.views[e.View] = e.Members
			self := identity{e.Self.ID, e.Self.Incarnation}
			if other := c.identity[self]; other != nil && other != h {
				c.violated("one process for each ID", e.At, []string{h.process, other.process}, "%s and %s are both %v", h.process,
					other.process, self)
			}
			c.identity[self] = h
		}
	}
}

// sender is the incarnation of a member by its rank in a view; 0: the view is not known.
func (c *checker) sender(view uint64, rank int) uint64 {
	for _, m := range c.views[view] {
		if m.Rank == rank {
			return m.Incarnation
		}
	}
	return 0
}

// position is how far a receiver is with a sender.
type position struct {
	seq         int
	incarnation uint64
}

// checkDelivery: each message once, those of one sender in order, and none left out without a
// notice. It returns how many there were.
func (c *checker) checkDelivery(h *history, unsent map[message]bool) (n int) {
	last := map[string]position{}
	for _, e := range h.events {
		switch e.Type {
		case evNotice: // from here on messages may be missing, but none comes again
			for from, p := range last {
				last[from] = position{p.seq, 0}
			}
		case evDeliver:
			n++
			p, known := last[e.From]
			incarnation := c.sender(e.View, e.Rank)
			if known && e.Seq <= p.seq {
				c.violated("once, in order", e.At, []string{h.process, e.From}, "%s has delivered %d of %s after %d", h.process,
					e.Seq, e.From, p.seq)
			}
			if known && p.incarnation != 0 && p.incarnation == incarnation {
				for seq := p.seq + 1; seq < e.Seq; seq++ {
					if !unsent[message{e.From, seq}] {
						c.violated("no silent loss", e.At, []string{h.process, e.From}, "%s has delivered %d of %s after %d, without %d",
							h.process, e.Seq, e.From, p.seq, seq)
					}
				}
			}
			last[e.From] = position{e.Seq, incarnation}
		}
	}
	return n
}

// message is a broadcast.
type message struct {
	from string
	seq  int
}

// unsent returns messages that their sender knows, or may think, were not sent: Broadcast has
// returned an error.
func (c *checker) unsent() map[message]bool {
	unsent := map[message]bool{}
	for _, h := range c.histories {
		for _, e := range h.events {
			if e.Type == evSend && e.Err != "" {
				unsent[message{h.process, e.Seq}] = true
			}
		}
	}
	return unsent
}

// broadcast is a message that a process has sent, and the view that it had then.
type broadcast struct {
	seq     int
	members []Member
	self    Member
}

// checkReceipts: the members of a receipt have all messages that the process has sent before, also
// in earlier memberships, since they are members, if they have lived to deliver them. Excepted are
// messages that an error has named before.
func (c *checker) checkReceipts() (n int) {
	delivered := map[*history]map[message]bool{}
	for _, h := range c.histories {
		delivered[h] = map[message]bool{}
		for _, e := range h.events {
			if e.Type == evDeliver {
				delivered[h][message{e.From, e.Seq}] = true
			}
		}
	}
	for _, h := range c.histories {
		var view, before Event // the last view, and the last before the message
		var sent []broadcast
		checked := map[Member]int{} // the last message that a receipt has named a member for
		for _, e := range h.events {
			switch {
			case e.Type == evView:
				view = e
			case e.Type == evSend:
				if e.Err == "" && before.Self != nil {
					sent = append(sent, broadcast{e.Seq, before.Members, *before.Self})
				}
				before = view
			case e.Type == evReceipt && e.Err == "":
				n++
				for _, m := range e.Members {
					c.checkReceipt(h, e, m, sent, max(checked[m], e.Since), delivered)
					checked[m] = e.Seq
				}
			}
		}
	}
	return n
}

// checkReceipt checks one member of a receipt, for the messages after one that was checked.
func (c *checker) checkReceipt(h *history, e Event, m Member, sent []broadcast, after int,
	delivered map[*history]map[message]bool,
) {
	other := c.identity[identity{m.ID, m.Incarnation}]
	if other == nil || other == h || !other.ended {
		return
	}
	for i := len(sent) - 1; i >= 0 && sent[i].seq > after; i-- {
		b := sent[i]
		if b.seq != e.Seq && !slices.Contains(b.members, m) || delivered[other][message{h.process, b.seq}] {
			continue
		}
		rule := "receipts are true"
		if b.self != sent[len(sent)-1].self {
			rule = "receipts cover all memberships"
		}
		c.violated(rule, e.At, []string{h.process, other.process},
			"%s has a receipt of view %d for messages up to %d by %s, which never delivered %d", h.process, e.View, e.Seq,
			other.process, b.seq)
		return
	}
}

// checkSynchrony: two members that continue from a view to the next deliver the same messages
// in it.
func (c *checker) checkSynchrony() {
	type in struct {
		h    *history
		view uint64
	}
	got := map[in]map[message]bool{}
	for _, h := range c.histories {
		for _, e := range h.events {
			if e.Type == evDeliver {
				k := in{h, e.View}
				if got[k] == nil {
					got[k] = map[message]bool{}
				}
				got[k][message{e.From, e.Seq}] = true
			}
		}
	}
	for view, members := range c.views {
		var stay []*history
		for _, m := range members {
			h := c.identity[identity{m.ID, m.Incarnation}]
			if h != nil && h.ended && slices.Contains(c.views[view+1], m) {
				stay = append(stay, h)
			}
		}
		for _, a := range stay {
			for _, b := range stay {
				for msg := range got[in{a, view}] {
					if msg.from != b.process && !got[in{b, view}][msg] {
						c.violated("view synchrony", a.events[0].At, []string{a.process, b.process},
							"%s has delivered %v of view %d, %s has not, and both continue", a.process, msg, view, b.process)
					}
				}
			}
		}
	}
}

// checkOwners: no token of a partition names two processes, and no two processes serve a
// partition at the same time.
func (c *checker) checkOwners() (n int) {
	type owner struct {
		partition int
		token     uint64
	}
	type served struct {
		Event
		process string
	}
	owners := map[owner]string{}
	byPartition := map[int][]served{}
	for _, h := range c.histories {
		for _, e := range h.events {
			if e.Type != evServe {
				continue
			}
			n++
			o := owner{e.Partition, e.Token}
			if other, ok := owners[o]; ok && other != h.process {
				c.violated("one owner for each token", e.At, []string{h.process, other},
					"%s and %s have served partition %d by token %d", h.process, other, e.Partition, e.Token)
			}
			owners[o] = h.process
			byPartition[e.Partition] = append(byPartition[e.Partition], served{e, h.process})
		}
	}
	for p, list := range byPartition {
		slices.SortFunc(list, func(a, b served) int { return cmp.Compare(a.At, b.At) })
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			if b.At < a.Until && a.process != b.process {
				c.violated("one owner at a time", b.At, []string{a.process, b.process},
					"%s (token %d) and %s (token %d) serve partition %d at the same time", a.process, a.Token, b.process, b.Token, p)
			}
			if b.Token < a.Token {
				c.violated("tokens rise", b.At, []string{a.process, b.process},
					"partition %d: %s serves by token %d, and then %s by token %d", p, a.process, a.Token, b.process, b.Token)
			}
		}
	}
	return n
}

// behind is for how long a member that is cut off may take itself for one of the present view,
// while the others have continued. It knows that it has no quorum before they continue, unless its host is busy.
const behind = int64(2e9)

// checkMinorities: a member that is cut off knows about as soon as the others have continued.
func (c *checker) checkMinorities(faults []Event) {
	var views []Event
	for _, h := range c.histories {
		for _, e := range h.events {
			if e.Type == evView && e.Err == "" {
				views = append(views, e)
			}
		}
	}
	slices.SortFunc(views, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, f := range faults {
		for _, h := range c.histories {
			if (f.Err == "cut" || f.Err == "part") && slices.Contains(f.Hosts, h.host()) {
				c.checkMinority(h, f, views)
			}
		}
	}
}

// checkMinority checks one member during one cut, if it lives as long.
func (c *checker) checkMinority(h *history, f Event, views []Event) {
	var last Event // the view that it has when it is cut off
	told := f.Until
	for _, e := range h.events {
		switch {
		case e.Type == evView && e.At < f.At:
			last = e
		case e.Type == evView && e.At < told: // it has no quorum, or another view
			told = e.At
		}
	}
	if last.View == 0 || last.Err != "" || h.events[len(h.events)-1].At < f.Until {
		return
	}
	for _, v := range views {
		if v.At > f.At && v.At < told-behind && v.View > last.View && !slices.Contains(v.Members, *last.Self) {
			c.violated("a minority knows in time", v.At+behind, []string{h.process},
				"%s takes itself for a member of view %d for %v after view %d has begun without it", h.process, last.View,
				time.Duration(told-v.At), v.View)
			return
		}
	}
}

// settled is how long before the end of a round the group must have recovered.
const settled = int64(4e9)

// checkProgress: when the faults have ended, the group recovers. A majority of the processes
// that have ended in order is in one view with its quorum, and those that have been for a while
// have answers to their calls. What counts is the moment before the first one ends: the others
// see it leave.
func (c *checker) checkProgress() {
	in := map[uint64]int{}
	hosts, last, end := 0, 0, int64(math.MaxInt64)
	for _, h := range c.histories {
		last = max(last, h.group)
	}
	for _, h := range c.histories {
		if h.ended && h.group == last {
			hosts++
			end = min(end, h.events[len(h.events)-1].At)
		}
	}
	for _, h := range c.histories {
		var view Event
		answered := 0
		for _, e := range h.events {
			switch {
			case e.Type == evView && e.At < end:
				view = e
			case e.Type == evReturn && e.Err == "" && e.At > end-settled:
				answered++
			}
		}
		if !h.ended || h.group != last || view.Err != "" {
			continue
		}
		in[view.View]++
		if answered == 0 && view.At < end-settled {
			c.violated("the group recovers", end, []string{h.process},
				"%s is in view %d at the end, and has no answer in the last seconds", h.process, view.View)
		}
	}
	most := 0
	for _, n := range in {
		most = max(most, n)
	}
	if 2*most <= hosts {
		c.violated("the group recovers", end, nil, "of %d processes %d are in one view at the end", hosts, most)
	}
}
