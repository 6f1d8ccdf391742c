package lifecycle

import (
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

const (
	millisecond protocol.Time = 1e6

	// interval is how often a process is asked that answers, and maxInterval one that
	// does not. The process that asks has spacing between its questions, so that those of
	// many processes that look for each other do not hold them up.
	interval    = 200 * millisecond
	maxInterval = 2000 * millisecond
	spacing     = 10 * millisecond
	// patience is how long a process that may join a member does not take a place that
	// a restarted voter knows.
	patience = 1000 * millisecond
	// maxAsked bounds the questions on their way, maxContacts the known addresses, and
	// maxOthers those that are passed on.
	maxAsked, maxContacts, maxOthers = 16, 4096, 64
)

// search is the search of a process for its place. See the package comment.
type search struct {
	self   control.Contact
	place  *membership.SavedVote // the place that the process has; nil: none
	former *membership.SavedVote // a view that the process is not in any more; nil: none
	nonce  uint64                // the nonce under which the process asks to join
	gone   map[string]bool       // members of the place's view, by ID, whose votes are lost
	// arbiter says that there is one, and refused that it has let the other half decide the next view.
	arbiter, refused bool

	contacts map[string]*contact // by address
	order    []*contact          // in the order of asking
	asked    int                 // questions on their way
	found    map[string]string   // addresses by ID, from introductions
	marks    map[string][]uint64 // marks by ID, from introductions

	joinable   protocol.Time // when a member was last met that lets this process join
	joinableIn uint64        // the view of that member
	result     finding
}

// contact is an address to ask.
type contact struct {
	address string
	asked   bool
	due     protocol.Time // of the next question
	pause   protocol.Time // until the question after it
}

// finding is the next step of a process. The zero finding changes nothing.
type finding struct {
	// place, if not nil, is a place to hold from now on.
	place *membership.SavedVote
	// join says that the place that the process has is over: it asks members to join.
	join bool
	// alone says that the place is over, and that no later view is known: nothing of the
	// place is worth keeping.
	alone bool
	// gone, if not nil, is a member of the place's view that cannot vote any more, and back
	// one that can.
	gone, back *membership.Member
}

// newSearch returns a search that begins at the seeds.
func newSearch(self control.Contact, seeds []string) *search {
	s := &search{
		self: self, contacts: make(map[string]*contact), found: make(map[string]string),
		marks: make(map[string][]uint64),
	}
	for _, seed := range seeds {
		s.contact(seed)
	}
	return s
}

// hold says which place the process has, which may be nil, and under which nonce it asks
// for another one.
func (s *search) hold(place *membership.SavedVote, nonce uint64) {
	s.place, s.nonce, s.gone, s.result = place, nonce, make(map[string]bool), finding{}
	s.refused = false
	if place != nil {
		for _, m := range place.View.Members.All() {
			s.contact(m.Address)
		}
	}
}

// address returns where the process with an ID is, as far as that is known.
func (s *search) address(id string) (string, bool) {
	address, ok := s.found[id]
	return address, ok
}

// take returns what the process should do, once.
func (s *search) take() finding {
	f := s.result
	s.result = finding{}
	return f
}

// next returns the next question to send and its address, or false if there is none for
// now.
func (s *search) next(now protocol.Time) (address string, q control.Question, ok bool) {
	if s.asked == maxAsked {
		return "", q, false
	}
	for i, k := range s.order {
		if k.asked || k.due > now {
			continue
		}
		s.order = append(slices.Delete(s.order, i, i+1), k)
		k.asked = true
		s.asked++
		return k.address, control.Question{From: s.self, View: s.view()}, true
	}
	return "", q, false
}

// deadline returns when Next must be called again if nothing else happens.
func (s *search) deadline() protocol.Time {
	due := protocol.Never
	if s.asked == maxAsked {
		return due // an answer comes first
	}
	for _, k := range s.order {
		if !k.asked {
			due = min(due, k.due)
		}
	}
	return due
}

// failed says that the question to an address was not answered.
func (s *search) failed(now protocol.Time, address string) {
	if k := s.contacts[address]; k != nil {
		s.answered(k, now, min(2*max(k.pause, interval/2), maxInterval))
	}
}

// introduce answers the question of another process.
func (s *search) introduce(q *control.Question) control.Introduction {
	s.meet(q.From)
	i := control.Introduction{Contact: s.self, Marks: []uint64{control.Mark(s.self.ID, s.nonce)}}
	for _, id := range slices.Sorted(maps.Keys(s.found)) {
		if len(i.Others) < maxOthers && id != q.From.ID {
			i.Others = append(i.Others, control.Contact{ID: id, Address: s.found[id]})
		}
	}
	if s.place != nil {
		i.Role, i.Marks = control.RestartedVoter, append(i.Marks, control.Mark(s.self.ID, s.place.Self.Nonce))
	}
	known := s.place
	if known == nil {
		known = s.former
	}
	if known != nil && known.View.Number != q.View {
		i.View, i.Decisions = &known.View, known.Decisions()
	}
	if q.From == (control.Contact{}) {
		return i.Observed()
	}
	return i
}

// handle takes the introduction of the process at an address.
func (s *search) handle(now protocol.Time, address string, i *control.Introduction) {
	if k := s.contacts[address]; k != nil {
		s.answered(k, now, max(interval, protocol.Time(len(s.order))*spacing))
	}
	if i.ID == s.self.ID {
		return
	}
	s.meet(control.Contact{ID: i.ID, Address: address})
	if s.found[i.ID] != "" { // at most maxContacts
		s.marks[i.ID] = i.Marks
	}
	for _, other := range i.Others {
		s.contact(other.Address) // it introduces itself
	}
	if i.View != nil && i.View.Number > s.view() {
		s.compare(now, i)
		return
	}
	s.count(i)
}

// compare looks for the process in a later view than that of its place.
func (s *search) compare(now protocol.Time, i *control.Introduction) {
	self := i.View.Named(s.self.ID)
	admitted := self != nil && self.Nonce == s.nonce
	stays := self != nil && s.place != nil && self.Nonce == s.place.Self.Nonce
	switch {
	case i.Role == control.Member && stays && self.Incarnation == s.place.Self.Incarnation:
		s.result.place = membership.NewSavedVote(*self, *i.View, i.Decisions)
	case i.Role == control.Member:
		s.joinable, s.joinableIn = now, i.View.Number
		s.result.join = s.result.join || s.place != nil
	case !admitted && !stays:
		s.count(i) // the view may be of another group of this name, that is over
	case s.joinable == 0 || now-s.joinable > patience || s.joinableIn < i.View.Number:
		s.result.place = membership.NewSavedVote(*self, *i.View, i.Decisions)
	}
}

// votes reports whether the process of a member, which is another one than this, has shown
// that it has the member's nonce, and therefore its vote.
func (s *search) votes(m *membership.Member) bool {
	return slices.Contains(s.marks[m.Identity], control.Mark(m.Identity, m.Nonce))
}

// voter notes that a member has answered as a restarted voter, and therefore has its vote.
func (s *search) voter(m *membership.Member) {
	s.marks[m.Identity] = []uint64{control.Mark(m.Identity, m.Nonce)}
}

// tie returns what half of the voters of the place's view can decide.
func (s *search) tie() membership.Tie {
	switch {
	case !s.arbiter:
		return membership.LowestDecides
	case s.refused:
		return membership.NoneDecides
	}
	return membership.AnyMayDecide
}

// count notes whether a process still has the vote that it has in the view of the place.
func (s *search) count(i *control.Introduction) {
	if s.place == nil {
		return
	}
	m := s.place.View.Named(i.ID)
	if m == nil {
		return
	}
	s.gone[i.ID] = !slices.Contains(i.Marks, control.Mark(i.ID, m.Nonce))
	if s.gone[i.ID] {
		s.result.gone = m
	} else {
		s.result.back = m
	}
	if !s.place.View.CanDecideWithout(func(m *membership.Member) bool { return s.gone[m.Identity] }, s.tie()) {
		s.result.join, s.result.alone = true, true
	}
}

// view returns the number of the latest known view.
func (s *search) view() uint64 {
	if s.place == nil {
		return 0
	}
	return s.place.View.Number
}

// meet notes where a process is.
func (s *search) meet(c control.Contact) {
	if c.ID == "" || c.Address == "" || c.ID == s.self.ID || len(s.found) == maxContacts && s.found[c.ID] == "" {
		return
	}
	s.found[c.ID] = c.Address
	s.contact(c.Address)
}

// contact adds an address to ask.
func (s *search) contact(address string) {
	if address == "" || address == s.self.Address || s.contacts[address] != nil || len(s.contacts) == maxContacts {
		return
	}
	k := &contact{address: address}
	s.contacts[address] = k
	s.order = append(s.order, k)
}

// answered ends a question to a contact.
func (s *search) answered(k *contact, now, pause protocol.Time) {
	if k.asked {
		k.asked = false
		s.asked--
	}
	k.pause, k.due = pause, now+pause
}
