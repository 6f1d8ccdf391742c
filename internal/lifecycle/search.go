package lifecycle

import (
	"slices"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

const (
	millisecond protocol.Time = 1e6

	// interval is how often a process is asked that answers, and maxInterval one that
	// does not.
	interval    = 200 * millisecond
	maxInterval = 2000 * millisecond
	// patience is how long a process that may join a member does not take a place that
	// a seat knows.
	patience = 1000 * millisecond
	// maxAsked bounds the questions on their way, maxContacts the known addresses, and
	// maxOthers those that are passed on.
	maxAsked, maxContacts, maxOthers = 16, 4096, 64
)

// Search is the search of a process for its place. See the package comment.
type Search struct {
	self  Contact
	place *membership.Seat // the place that the process has; nil: none
	nonce uint64           // the nonce under which the process asks to join
	gone  map[string]bool  // members of the place's view, by ID, whose votes are lost

	contacts map[string]*contact // by address
	order    []*contact          // in the order of asking
	asked    int                 // questions on their way
	found    map[string]string   // addresses by ID, as processes have told them

	joinable   protocol.Time // when a member was last met that lets this process join
	joinableIn uint64        // the view of that member
	finding    Finding
}

// contact is an address to ask.
type contact struct {
	address string
	asked   bool
	due     protocol.Time // of the next question
	pause   protocol.Time // until the question after it
}

// Finding is what a process should do next. The zero Finding is to go on as before.
type Finding struct {
	// Place, if not nil, is a place to hold from now on.
	Place *membership.Seat
	// Join says that the place that the process has is over: it asks members to join.
	Join bool
	// Alone says that the place is over, and that no later view is known: nothing of the
	// place is worth keeping.
	Alone bool
}

// New returns a search that begins at the seeds.
func New(self Contact, seeds []string) *Search {
	s := &Search{self: self, contacts: make(map[string]*contact), found: make(map[string]string)}
	for _, seed := range seeds {
		s.contact(seed)
	}
	return s
}

// Hold says which place the process has, which may be nil, and under which nonce it asks
// for another one.
func (s *Search) Hold(place *membership.Seat, nonce uint64) {
	s.place, s.nonce, s.gone, s.finding = place, nonce, make(map[string]bool), Finding{}
	if place != nil {
		for _, m := range place.View.Members.All() {
			s.contact(m.Address)
		}
	}
}

// Address returns where the process with an ID is, as far as that is known.
func (s *Search) Address(id string) (string, bool) {
	address, ok := s.found[id]
	return address, ok
}

// Finding returns what the process should do, once.
func (s *Search) Finding() Finding {
	f := s.finding
	s.finding = Finding{}
	return f
}

// Next returns the next question to send and its address, or false if there is none for
// now.
func (s *Search) Next(now protocol.Time) (address string, q Question, ok bool) {
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
		return k.address, Question{From: s.self, View: s.view()}, true
	}
	return "", q, false
}

// Deadline returns when Next must be called again if nothing else happens.
func (s *Search) Deadline() protocol.Time {
	due := protocol.Never
	for _, k := range s.order {
		if !k.asked {
			due = min(due, k.due)
		}
	}
	return due
}

// Failed says that the question to an address was not answered.
func (s *Search) Failed(now protocol.Time, address string) {
	if k := s.contacts[address]; k != nil {
		s.answered(k, now, min(2*max(k.pause, interval/2), maxInterval))
	}
}

// Introduce answers the question of another process.
func (s *Search) Introduce(q *Question) Introduction {
	s.meet(q.From)
	i := Introduction{Contact: s.self, Marks: []uint64{Mark(s.self.ID, s.nonce)}}
	for id, address := range s.found {
		if len(i.Others) < maxOthers && id != q.From.ID {
			i.Others = append(i.Others, Contact{id, address})
		}
	}
	if s.place != nil {
		i.Role, i.Marks = Seated, append(i.Marks, Mark(s.self.ID, s.place.Self.Nonce))
		if s.place.View.Number != q.View {
			i.View, i.Decisions = &s.place.View, s.place.Decisions()
		}
	}
	return i
}

// Handle takes the introduction of the process at an address.
func (s *Search) Handle(now protocol.Time, address string, i *Introduction) {
	if k := s.contacts[address]; k != nil {
		s.answered(k, now, interval)
	}
	if i.ID == s.self.ID {
		return
	}
	s.meet(Contact{i.ID, address})
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
func (s *Search) compare(now protocol.Time, i *Introduction) {
	self := i.View.Named(s.self.ID)
	admitted := self != nil && self.Nonce == s.nonce
	stays := self != nil && s.place != nil && self.Nonce == s.place.Self.Nonce && self.Incarnation == s.place.Self.Incarnation
	switch {
	case i.Role == Member:
		s.joinable, s.joinableIn = now, i.View.Number
		s.finding.Join = s.finding.Join || s.place != nil && !stays
	case !admitted && !stays:
		s.finding.Join = s.finding.Join || s.place != nil
	case s.joinable == 0 || now-s.joinable > patience || s.joinableIn < i.View.Number:
		s.finding.Place = membership.NewSeat(*self, *i.View, i.Decisions)
	}
}

// count notes whether a process still has the vote that it has in the view of the place.
func (s *Search) count(i *Introduction) {
	if s.place == nil {
		return
	}
	m := s.place.View.Named(i.ID)
	if m == nil {
		return
	}
	s.gone[i.ID] = !slices.Contains(i.Marks, Mark(i.ID, m.Nonce))
	if !s.place.View.CanDecideWithout(func(m *membership.Member) bool { return s.gone[m.Identity] }) {
		s.finding.Join, s.finding.Alone = true, true
	}
}

// view returns the number of the latest known view.
func (s *Search) view() uint64 {
	if s.place == nil {
		return 0
	}
	return s.place.View.Number
}

// meet notes where a process is.
func (s *Search) meet(c Contact) {
	if c.ID == "" || c.Address == "" || c.ID == s.self.ID || len(s.found) == maxContacts && s.found[c.ID] == "" {
		return
	}
	s.found[c.ID] = c.Address
	s.contact(c.Address)
}

// contact adds an address to ask.
func (s *Search) contact(address string) {
	if address == "" || address == s.self.Address || s.contacts[address] != nil || len(s.contacts) == maxContacts {
		return
	}
	k := &contact{address: address}
	s.contacts[address] = k
	s.order = append(s.order, k)
}

// answered ends a question to a contact.
func (s *Search) answered(k *contact, now, pause protocol.Time) {
	if k.asked {
		k.asked = false
		s.asked--
	}
	k.pause, k.due = pause, now+pause
}
