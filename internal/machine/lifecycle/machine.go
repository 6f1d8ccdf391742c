package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Config describes a process that wants to be a member.
type Config struct {
	// Self is the process as a candidate.
	Self membership.Member
	// Seeds are the addresses to begin with.
	Seeds []string
	// Expect is how many processes begin a group together. If zero, the process only joins. An
	// observer begins none: it joins when the others have.
	Expect int
	// Starts is how many processes have had the nonce of Self; see [founding.Config].
	Starts uint64
	// Replace says that the process takes the place of a live member with its identity.
	Replace bool
	// Durable says that the process has a disk, and Place is the place that it has there.
	Durable bool
	Place   *membership.SavedVote
	// Former, if not nil, has a view that the process before was not in any more: other
	// processes may want to know it.
	Former *membership.SavedVote
	// Arbiter says that the group has an arbiter: see [membership.Config].
	Arbiter bool
	// Settings are compared with those of other processes. If nil, they are not.
	Settings control.Settings
	// NewNonce draws a nonce.
	NewNonce func() uint64
	// Speaks returns an error if the process does not speak a protocol version.
	Speaks func(version uint16) error
}

const (
	// askTimeout bounds most requests, and viewTimeout the question whether a member has
	// messages.
	askTimeout  = 2000 * millisecond
	viewTimeout = 500 * millisecond
	// enterTimeout bounds how long a process asks the members of a view that has admitted
	// it to let it in. After that it holds its place as a restarted voter: no member may be left.
	enterTimeout = 2000 * millisecond
)

// stage is what a process does to become a member.
type stage uint8

const (
	joining   stage = iota // it asks members to join, or begins a group with others
	seated                 // it votes in its place
	beginning              // a view has admitted it: it looks for members that have messages
	entering               // it asks the members of that view to let it in
	ended                  // it is a member, or has failed
)

// Machine is a process until it is a member. See the package comment.
type Machine struct {
	config Config
	self   membership.Member
	now    protocol.Time

	stage    stage
	place    *membership.SavedVote // in stages seated, beginning and entering
	until    protocol.Time         // of entering
	search   *search
	founder  *founding.Machine // nil: no group is begun
	hopeless map[string]error  // seeds that the founder asks in vain, whatever happens
	joiner   joiner
	views    viewing
	settings settings
	pointed  protocol.Time // when an introduction may make a candidate ask to join again

	actions []Action
	asks    map[uint64]ask
	token   uint64
}

// ask is a request on its way, in a stage.
type ask struct {
	Ask
	epoch uint64
}

// New returns the machine of a process. Start begins it.
func New(c Config) *Machine {
	return &Machine{
		config: c, self: c.Self, asks: make(map[uint64]ask), hopeless: make(map[string]error),
		search: newSearch(control.Contact{ID: c.Self.Identity, Address: c.Self.Address}, c.Seeds),
	}
}

// Start begins.
func (m *Machine) Start(now protocol.Time) {
	m.now = now
	m.search.former = m.config.Former
	m.search.arbiter = m.config.Arbiter
	m.search.hold(nil, m.self.Nonce)
	if m.config.Place != nil {
		m.hold(m.config.Place)
	} else {
		m.stand()
	}
}

// Next returns the next action, or nil if there is none for now.
func (m *Machine) Next(now protocol.Time) Action {
	m.now = now
	m.tick()
	if len(m.actions) == 0 {
		return nil
	}
	a := m.actions[0]
	m.actions = m.actions[1:]
	return a
}

// Deadline returns when Next must be called again if nothing else happens.
func (m *Machine) Deadline() protocol.Time {
	due := protocol.Never
	if m.stage == ended {
		return due
	}
	if m.config.Durable {
		due = m.search.deadline()
	}
	switch m.stage {
	case joining:
		due = min(due, m.joiner.due)
		if m.founder != nil && !m.joiner.active {
			due = min(due, m.founder.Deadline())
		}
	case entering:
		due = min(due, m.joiner.due, m.until)
	case beginning:
		due = min(due, m.views.due)
	}
	return due
}

// tick runs the pending work of all timers.
func (m *Machine) tick() {
	if m.stage == ended {
		return
	}
	if m.config.Durable {
		for {
			address, q, ok := m.search.next(m.now)
			if !ok {
				break
			}
			m.ask(address, control.Introduce{Question: q}, askTimeout)
		}
	}
	switch m.stage {
	case joining:
		m.runFounder()
		m.runJoiner()
	case entering:
		if m.until <= m.now {
			m.hold(m.place)
			return
		}
		m.runJoiner()
	case beginning:
		m.runViews()
	}
}

// ask sends a request.
func (m *Machine) ask(address string, r control.Request, timeout protocol.Time) {
	m.token++
	a := Ask{m.token, address, r, timeout}
	m.asks[m.token] = ask{a, m.epoch()}
	m.actions = append(m.actions, a)
}

// Replied takes the result of a request.
func (m *Machine) Replied(now protocol.Time, token uint64, r Reply) {
	m.now = now
	a := m.asks[token] // without a request, if the token is none's
	delete(m.asks, token)
	if m.stage == ended {
		return
	}
	if _, ok := a.Request.(control.Introduce); ok {
		m.introduced(a.Address, r)
		return
	}
	if a.epoch != m.epoch() {
		return // of an earlier stage
	}
	switch a.Request.(type) {
	case control.Founding:
		m.foundingReplied(a.Address, r)
	case control.Join:
		m.joinReplied(a.Address, r)
	case control.View:
		m.viewReplied(a.Address, r)
	case control.Compare:
		m.compared(a.Address, r)
	}
}

// introduced takes the introduction of a process, and what follows from it.
func (m *Machine) introduced(address string, r Reply) {
	var i *control.Introduction
	if r.Err == nil {
		i, r.Err = control.DecodeIntroduction(r.Body)
	}
	if r.Err != nil {
		m.search.failed(m.now, address)
		return
	}
	m.search.handle(m.now, address, i)
	f := m.search.take()
	over := f.alone && (m.stage == seated || m.stage == beginning) // while entering, it has met a member
	if over {
		m.search.hold(nil, m.self.Nonce)
		m.actions = append(m.actions, Forget{})
	}
	switch {
	case f.place != nil:
		m.hold(f.place)
	case over, f.join && !f.alone && m.stage == seated:
		m.stand()
		if m.founder != nil && !f.alone { // a member has a later view: there is a group to join
			m.joiner.begin(m.now, m.targets(), findingRounds)
		}
	case i.Role == control.Member && m.stage == joining && m.founder != nil && !m.joiner.active && m.now >= m.pointed:
		// There is a group. The founder may never hear of it: its seeds are where the others were
		// when this process started. A group that does not let this process join must not keep it
		// from beginning one with others, so that it asks only now and then.
		m.pointed = m.now + findingTimeout
		m.joiner.begin(m.now, m.targets(), findingRounds)
	case f.gone != nil && m.stage == seated:
		m.actions = append(m.actions, Suspect{f.gone.Rank, f.gone.Incarnation})
	case f.back != nil && m.stage == seated:
		m.actions = append(m.actions, Trust{f.back.Rank, f.back.Incarnation})
	}
}

// hold makes the process the restarted voter of a place.
func (m *Machine) hold(place *membership.SavedVote) {
	if err := m.config.Speaks(place.View.Version); err != nil {
		m.fail(err)
		return
	}
	if place.Self.Nonce == m.self.Nonce { // the place that it has asked for
		m.self.Nonce = m.config.NewNonce()
	}
	m.enter(seated)
	m.place, m.search.former = place, nil
	m.search.hold(place, m.self.Nonce)
	m.actions = append(m.actions, Hold{place, m.self})
}

// stand makes the process a candidate. A place that it has had is over: the process has no
// vote there, but knows the view.
func (m *Machine) stand() {
	m.enter(joining)
	if place := m.search.place; place != nil {
		m.search.former = place
		m.search.hold(nil, m.self.Nonce)
	}
	m.place = nil
	if m.config.Expect > 0 && !m.self.Observer {
		m.newFounder()
	} else {
		m.joiner.begin(m.now, m.targets(), 0)
	}
	m.actions = append(m.actions, Stand{})
}

// enter begins a stage. Replies to requests of earlier ones do not count.
func (m *Machine) enter(s stage) {
	m.settings.agreed, m.settings.held = nil, nil
	m.stage, m.founder, m.joiner, m.views = s, nil, joiner{stages: m.joiner.stages + 1, due: protocol.Never},
		viewing{due: protocol.Never}
}

// epoch numbers the stages.
func (m *Machine) epoch() uint64 { return m.joiner.stages }

// Moved says that the restarted voter has installed a view in which it still has its place.
func (m *Machine) Moved(now protocol.Time, v *membership.View, d membership.Decisions) {
	m.now = now
	if m.stage == seated && v.Holds(m.place.Self.Rank, m.place.Self.Incarnation) {
		m.place = membership.NewSavedVote(m.place.Self, *v, d)
		m.search.hold(m.place, m.self.Nonce)
	}
}

// Refused says whether the arbiter has let other voters decide the view after the one that the
// restarted voter is in. If their votes are lost since, the place is over.
func (m *Machine) Refused(refused bool) { m.search.refused = refused && m.stage == seated }

// Admitted says that a view has admitted the process in the place that it holds.
func (m *Machine) Admitted(now protocol.Time, a *membership.Answer) {
	m.now = now
	if m.stage != seated {
		return
	}
	self, _ := a.View.Member(a.Rank)
	m.enter(beginning)
	m.place = membership.NewSavedVote(self, a.View, a.Decisions)
	m.search.hold(m.place, m.self.Nonce)
	m.views.begin(m.now, &a.View)
}

// Over says that the place which the process holds is not in the latest view.
func (m *Machine) Over(now protocol.Time) {
	m.now = now
	if m.stage == seated {
		m.stand()
	}
}

// Address returns where the process of a member is: its address in the view, unless the
// process has introduced itself elsewhere.
func (m *Machine) Address(of *membership.Member) string {
	if address, ok := m.search.address(of.Identity); ok {
		return address
	}
	return of.Address
}

// targets are the addresses of processes that may let this one join: that of a group that a candidate
// has named, the seeds, the members that it knows, and the processes that it has met.
func (m *Machine) targets() (targets []string) {
	add := func(address string) {
		if address != m.self.Address && !slices.Contains(targets, address) {
			targets = append(targets, address)
		}
	}
	if m.joiner.group != "" {
		add(m.joiner.group)
	}
	targets = append(targets, m.config.Seeds...)
	known := m.search.place
	if known == nil {
		known = m.search.former
	}
	if known != nil {
		for _, o := range known.View.Members.All() {
			add(m.Address(o))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.search.found)) {
		add(m.search.found[id])
	}
	return targets
}

// Requested answers a request to a process that is not a member.
func (m *Machine) Requested(now protocol.Time, request control.Request) []byte {
	m.now = now
	switch r := request.(type) {
	case control.Introduce:
		i := m.search.introduce(&r.Question)
		return control.Accept(i.Encode(nil))
	case control.Compare:
		if d := m.config.Settings.Compare(r.Settings, r.From.ID); d != nil && m.founder != nil {
			m.settings.differ = d
		}
		return control.Accept(m.config.Settings.Encode(nil))
	case control.Founding:
		if m.founder != nil {
			reply := m.founder.Handle(now, &r.Request)
			return reply.Encode(nil)
		}
		if m.place != nil { // there is a group, or soon will be
			reply := founding.Answer(founding.Candidate{ID: m.self.Identity, Address: m.self.Address}, nil, &r.Request)
			return reply.Encode(nil)
		}
	case control.Confirm:
		if m.stage != seated && (r.Candidate.Identity != m.self.Identity || r.Candidate.Nonce != m.self.Nonce) {
			return control.Refuse(fmt.Errorf("%q did not ask to join as %q", m.self.Identity, r.Candidate.Identity))
		}
		if m.stage != seated {
			return control.Accept(nil)
		}
	}
	if m.stage == seated {
		return control.Refuse(&control.Restarted{Rank: m.place.Self.Rank, Incarnation: m.place.Self.Incarnation})
	}
	// It is a seed of another candidate, and may be a member soon.
	return control.Refuse(&control.Refusal{Status: control.Retry, Text: m.self.Identity + " is not a member yet"})
}

// become ends the search: the process is a member. If the view has admitted a process
// before this one, at another address, nobody finds this one there. It holds the place, and
// asks for one with its own address.
func (m *Machine) become(b Membership) {
	if b.Self.Address != m.self.Address && m.config.Durable {
		m.hold(membership.NewSavedVote(b.Self, b.View, b.Decisions))
		return
	}
	if err := m.config.Speaks(b.View.Version); err != nil {
		m.fail(err)
		return
	}
	m.enter(ended)
	m.actions = append(m.actions, Become{b})
}

func (m *Machine) fail(err error) {
	m.enter(ended)
	m.actions = append(m.actions, Fail{err})
}

// Waiting returns what the process waits for, for people.
func (m *Machine) Waiting() error {
	switch {
	case m.founder != nil && !m.joiner.active:
		known, founder := m.founder.Known()
		if id, expect, ok := m.founder.Disagrees(); ok {
			return fmt.Errorf("%d processes found, and they cannot begin: %q expects %d, and this process %d", known, id, expect,
				m.config.Expect)
		}
		if m.settings.differ != nil {
			return fmt.Errorf("processes cannot begin a group together: %w", m.settings.differ)
		}
		if founder.Nonce != 0 {
			return fmt.Errorf("%d of %d expected processes found, and waiting for %q at %s to begin", known, m.config.Expect,
				founder.ID, founder.Address)
		}
		return fmt.Errorf("%d of %d expected processes found", known, m.config.Expect)
	case m.stage == beginning:
		return fmt.Errorf("members of view %d do not answer", m.place.View.Number)
	case m.joiner.last != nil:
		return fmt.Errorf("last: %w", m.joiner.last)
	}
	return nil
}

var errNoSeed = errors.New("the only seed is this process itself: name another member, or Create a group")
