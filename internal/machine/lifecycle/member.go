package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Group is the part of a [member.Machine] that a [Member] reads.
type Group interface {
	View() membership.View
	State() (membership.State, error)
	Quorum() (reachable, needed int, ok bool)
	Unreachable() []protocol.Rank
	Decisions() membership.Decisions
	// Stuck reports whether the member cannot install another view without help.
	Stuck() bool
	// Behind compares the view of another process with the view of a stuck member.
	Behind(v *membership.View) (behind, removed bool)
}

// MemberConfig describes a member.
type MemberConfig struct {
	// Self is the process in the view that has admitted it.
	Self membership.Member
	// Group is the member's machine.
	Group Group
	// Tell says that processes begin the group together: seeds outside the view get a message that
	// the group exists.
	Tell bool
	// Began has the candidates that the group began with, by agreement; nil: it has joined.
	Began []founding.Candidate
	// Elsewhere has the members that are not where the first view has them.
	Elsewhere Elsewhere
}

// Member decides how a member communicates with processes outside its view. It does no I/O, reads
// no clock, and is not safe for concurrent use.
//
// In:
//   - [Member.Requested] for the request of another process. It returns the reply.
//   - [Member.Replied] for the result of an [Ask], or its timeout.
//   - [Member.Learned] for the result of a [Learn].
//   - [Member.Early] when a peer refuses a connection because it does not know the view that has
//     admitted this process.
//   - [Member.Installed] for a new view.
//   - [Member.Evicted] when the membership has ended because the group has removed this process.
//   - [Member.SetSeeds] for other seeds.
//
// Out, after each of these and at [Member.Deadline]: [Member.Next] until it returns nil. The
// actions are [Ask], [Learn], [Remove], [Move] and, once, [Ended]. Those of one step are carried out
// in order, before the next input.
//
// # Seeds
//
// A member keeps asking the seeds that it has joined by. While it has no quorum, it asks them and
// the other members for their views, one every two seconds: all members that it knows may have
// removed it and may be gone. A later view shows whether it is behind ([Learn]) or has been removed
// ([Remove]). A member with a quorum tells seeds outside its view that there is a group, if
// processes begin the group together: a process that was started again there may know no other
// address.
//
// # Catching up
//
// A process may be the only live one that knows the view that has admitted it, because the member
// that let it in has died. A member that does not know this view refuses its connections. So the
// process asks that member to catch up, and the member requests the missing decisions at the
// address of the process. Only a stuck member does so. One with a quorum gets decisions from other
// members, and any process may ask in a group without TLS or a secret.
type Member struct {
	config    MemberConfig
	now       protocol.Time
	seeds     []string
	elsewhere Elsewhere

	turn    int           // counts the seeds asked so far
	due     protocol.Time // when to ask the next seed
	source  source
	removal removal

	actions []Action
	asks    map[uint64]Ask // requests without a reply
	token   uint64
}

const (
	// seedInterval is the time between the reply of a seed and the next question.
	seedInterval = 2000 * millisecond
	// ConfirmTimeout bounds the time that a candidate has to confirm its request to join.
	ConfirmTimeout = 2000 * millisecond
)

// NewMember returns the machine of a process that becomes a member now.
func NewMember(now protocol.Time, c MemberConfig) *Member {
	return &Member{
		config: c, now: now, elsewhere: c.Elsewhere, due: now + seedInterval,
		source: source{due: protocol.Never}, removal: removal{until: protocol.Never}, asks: make(map[uint64]Ask),
	}
}

// SetSeeds replaces the seeds. The member's own address is not one of them.
func (m *Member) SetSeeds(seeds []string) { m.seeds = slices.Clone(seeds) }

// Seeds returns the seeds and the addresses of the other members.
func (m *Member) Seeds() []string {
	seeds := slices.Clone(m.seeds)
	for _, address := range m.others() {
		if !slices.Contains(seeds, address) {
			seeds = append(seeds, address)
		}
	}
	return seeds
}

// Address returns where the process of a member is.
func (m *Member) Address(of *membership.Member) string { return m.elsewhere.Address(of) }

// others returns the addresses of the other members of the view.
func (m *Member) others() (addresses []string) {
	v := m.config.Group.View()
	for _, o := range v.Members.All() {
		if address := m.Address(o); o.Rank != m.config.Self.Rank && address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// Next returns the next action, or nil if there is none now.
func (m *Member) Next(now protocol.Time) Action {
	m.now = now
	if m.ended() {
		m.endRemoval()
	} else {
		m.askSource()
		m.askSeed()
	}
	if len(m.actions) == 0 {
		return nil
	}
	a := m.actions[0]
	m.actions = m.actions[1:]
	return a
}

// Deadline returns when Next must be called again if nothing else happens.
func (m *Member) Deadline() protocol.Time {
	if m.ended() {
		return m.removal.until
	}
	return min(m.due, m.source.due)
}

// ended reports whether the process is no longer a member.
func (m *Member) ended() bool {
	state, _ := m.config.Group.State()
	return m.removal.began || state == membership.Evicted || state == membership.Left
}

// Installed takes a new view.
func (m *Member) Installed(v *membership.View) {
	if v.Number >= m.source.view {
		m.source.end()
	}
}

// Requested answers a request of a process outside the view. It reports false for requests that
// are not answered here.
func (m *Member) Requested(now protocol.Time, request control.Request) (reply []byte, ok bool) {
	m.now = now
	group := m.config.Group
	switch r := request.(type) {
	case control.View:
		v := control.ViewReply{View: control.Observed(group.View())}
		if reachable, needed, quorum := group.Quorum(); !quorum {
			v.Lost = &control.Lost{Reachable: reachable, Needed: needed, Unreachable: group.Unreachable()}
		}
		return v.Encode(), true
	case control.Introduce:
		return m.introduce(&r.Question), true
	case control.Founding:
		began, v := m.config.Began, group.View()
		if v.Number > 1 {
			began = nil // a candidate of the first view cannot enter it any more
		}
		from := founding.Candidate{ID: m.config.Self.Identity, Address: m.config.Self.Address}
		answer := founding.Answer(from, began, &r.Request)
		return answer.Encode(nil), true
	case control.Decisions:
		return control.Accept(group.Decisions().Encode(nil)), true
	case control.CatchUp:
		return m.catchUp(&r), true
	case control.Confirm:
		return control.Refuse(fmt.Errorf("it is member %q of this group", m.config.Self.Identity)), true
	}
	return nil, false
}

// errEnded is the refusal of a process whose membership has ended.
var errEnded = errors.New("this process is no longer a member")

// introduce answers a process that asks what this one is in the group.
func (m *Member) introduce(q *control.Question) []byte {
	if m.ended() {
		return control.Refuse(errEnded)
	}
	self := &m.config.Self
	i := control.Introduction{
		Contact: control.Contact{ID: self.Identity, Address: self.Address}, Role: control.Member,
		Marks: []uint64{control.Mark(self.Identity, self.Nonce)},
	}
	m.meet(q.From)
	if v := m.config.Group.View(); v.Number != q.View {
		i.View, i.Decisions = &v, m.config.Group.Decisions()
	}
	if q.From == (control.Contact{}) {
		i = i.Observed()
	}
	return control.Accept(i.Encode(nil))
}

// meet notes the address that a process has given.
func (m *Member) meet(c control.Contact) {
	v := m.config.Group.View()
	next, changed := m.elsewhere.Met(&v, m.config.Group.Unreachable(), c)
	if changed {
		m.elsewhere = next
		m.actions = append(m.actions, Move{c, next})
	}
}

// ask sends a request.
func (m *Member) ask(address string, r control.Request, timeout protocol.Time) {
	m.token++
	a := Ask{m.token, address, r, timeout}
	m.asks[m.token] = a
	m.actions = append(m.actions, a)
}

// Replied takes the result of a request.
func (m *Member) Replied(now protocol.Time, token uint64, r Reply) {
	m.now = now
	a, ok := m.asks[token]
	if !ok {
		return
	}
	delete(m.asks, token)
	if _, ok := a.Request.(control.View); ok {
		m.viewReplied(r)
		return
	}
	if m.ended() {
		return
	}
	switch a.Request.(type) {
	case control.Founding:
		m.due = now + seedInterval
	case control.Introduce:
		m.due = now + seedInterval
		m.introduced(a.Address, r)
	case control.Decisions:
		m.decided(a.Address, r)
	}
}

// askSeed sends the request to a seed that is due.
func (m *Member) askSeed() {
	if m.due > m.now {
		return
	}
	m.due = m.now + seedInterval
	state, _ := m.config.Group.State()
	lost, seeds := state == membership.NoQuorum, m.seeds
	if lost {
		seeds = slices.Concat(seeds, m.others())
	}
	if len(seeds) == 0 {
		return
	}
	seed := seeds[m.turn%len(seeds)]
	m.turn++
	self, v := &m.config.Self, m.config.Group.View()
	switch {
	case lost:
		q := control.Question{From: control.Contact{ID: self.Identity, Address: self.Address}, View: v.Number}
		m.ask(seed, control.Introduce{Question: q}, askTimeout)
	case m.config.Tell && !slices.Contains(m.others(), seed):
		candidate := founding.Candidate{ID: self.Identity, Nonce: self.Nonce, Address: self.Address}
		m.ask(seed, control.Founding{Request: founding.Request{From: candidate, Group: self.Address}}, askTimeout)
	default:
		return
	}
	m.due = protocol.Never // until it is answered
}

// introduced takes the latest view that another process knows. If that is later, this member learns
// it, or ends because the group has removed it.
func (m *Member) introduced(address string, r Reply) {
	if r.Err != nil {
		return
	}
	i, err := control.DecodeIntroduction(r.Body)
	if err != nil {
		return
	}
	for _, c := range append(i.Others, i.Contact) {
		m.meet(c)
	}
	if i.View == nil {
		return
	}
	switch behind, removed := m.config.Group.Behind(i.View); {
	case removed && i.Role == control.Candidate: // its view may be that of another group of this name, which has ended
	case removed:
		m.actions = append(m.actions, Remove{address, i.View.Number, i.View.Successor(&m.config.Self)})
	case behind:
		m.actions = append(m.actions, Learn{address, i.Decisions})
	}
}
