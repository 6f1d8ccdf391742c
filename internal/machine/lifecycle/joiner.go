package lifecycle

import (
	"errors"
	"slices"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

const (
	// joinTimeout bounds a request to join, and findingTimeout one to a group that was
	// found, whose members are asked in findingRounds. After that the process looks again:
	// the group may have ended meanwhile, or only have restarted voters.
	joinTimeout    = 30_000 * millisecond
	findingTimeout = 5000 * millisecond
	findingRounds  = 4
	// The pause between two rounds doubles.
	minPause, maxPause = 50 * millisecond, 2000 * millisecond
)

// joiner asks one member after the other to let this process join.
type joiner struct {
	stages   uint64 // how many stages have begun; see Machine.enter
	active   bool
	group    string // the address of a member of the group that was found; "": none
	targets  []string
	next     int // the target to ask next
	due      protocol.Time
	pause    protocol.Time // after this round
	rounds   int           // left; 0: any number
	possible bool          // a target of this round may let this process join later
	last     error         // why the last one has not
	compared string        // the target whose settings were compared last
}

// begin begins to ask.
func (j *joiner) begin(now protocol.Time, targets []string, rounds int) {
	*j = joiner{stages: j.stages, active: true, targets: targets, due: now, pause: minPause, rounds: rounds, last: j.last}
}

// runJoiner sends the request that is due.
func (m *Machine) runJoiner() {
	j := &m.joiner
	if !j.active || j.due > m.now {
		return
	}
	if len(j.targets) == 0 {
		m.fail(errNoSeed)
		return
	}
	timeout := joinTimeout
	if m.founder != nil {
		timeout = findingTimeout
	}
	j.due = protocol.Never // when it is answered
	if target := j.targets[j.next]; j.compared != target && len(m.config.Settings) > 0 {
		m.askSettings(target)
		return
	}
	j.compared = "" // the next attempt may meet another process there
	m.ask(j.targets[j.next], control.Join{Candidate: m.self, Replace: m.config.Replace}, timeout)
}

// joinReplied takes the answer of a member, and asks the next one if it is a refusal.
func (m *Machine) joinReplied(_ string, r Reply) {
	j := &m.joiner
	if r.Err == nil {
		a, err := control.DecodeAdmission(r.Body)
		self, ok := a.View.Member(a.Rank)
		if err == nil && ok {
			m.become(Membership{
				Self: self, View: a.View, Start: a.Start, Decisions: a.Decisions, Sends: m.settings.sends,
				SendsFor: m.settings.sendsFor,
			})
			return
		}
		r.Err = errors.Join(err, errors.New("an answer for another process"))
	}
	j.last = r.Err
	j.possible = j.possible || !r.Permanent
	if r.Final && m.stage == joining {
		m.fail(r.Err)
		return
	}
	j.next++
	if j.next < len(j.targets) {
		j.due = m.now
		return
	}
	possible := j.possible
	j.next, j.possible = 0, false
	switch {
	case m.stage == joining && m.founder == nil && !possible:
		m.fail(r.Err)
	case j.rounds == 1:
		j.active, j.due = false, protocol.Never
		m.founder.Lost(m.now)
	default:
		j.rounds--
		j.targets = m.targets() // it may have met others meanwhile
		j.due, j.pause = m.now+j.pause, min(2*j.pause, maxPause)
	}
}

// newFounder begins to look for other processes to begin a group with.
func (m *Machine) newFounder() {
	c := founding.Candidate{
		ID: m.self.Identity, Nonce: m.self.Nonce, Address: m.self.Address, Domain: m.self.Domain,
		Version: m.self.Version,
	}
	m.founder = founding.New(founding.Config{
		Self: c, Expect: m.config.Expect, Seeds: m.targets(),
		Starts: m.config.Starts,
	})
}

// runFounder sends the requests of the founder that are due, and takes its outcome.
func (m *Machine) runFounder() {
	if m.founder == nil || m.joiner.active {
		return
	}
	for {
		address, r, ok := m.founder.Next(m.now)
		if !ok {
			break
		}
		m.askFounding(address, &r)
	}
	switch began, group := m.founder.Outcome(); {
	case began != nil:
		m.begin(began)
	case group != "":
		m.joiner.begin(m.now, nil, findingRounds)
		m.joiner.group = group
		m.joiner.targets = m.targets()
	case len(m.config.Seeds) > 0 && len(m.hopeless) == len(m.config.Seeds):
		m.fail(m.hopeless[m.config.Seeds[0]])
	}
}

// foundingReplied takes the answer of another candidate.
func (m *Machine) foundingReplied(address string, r Reply) {
	delete(m.hopeless, address)
	reply, err := founding.Reply{}, r.Err
	if err == nil {
		reply, err = founding.DecodeReply(r.Body)
	}
	if err == nil {
		m.founder.HandleReply(m.now, address, &reply)
		return
	}
	m.founder.HandleFailure(m.now, address, r.Gone)
	if r.Permanent && slices.Contains(m.config.Seeds, address) {
		m.hopeless[address] = err
	}
}

// begin makes the candidates the first view, with the highest protocol version that all of
// them speak.
func (m *Machine) begin(began []founding.Candidate) {
	members := make([]membership.Member, len(began))
	for i, c := range began {
		members[i] = membership.Member{
			Identity: c.ID, Address: c.Address, Domain: c.Domain,
			Incarnation: member.FirstIncarnation, Nonce: c.Nonce, Version: c.Version,
		}
	}
	v, err := membership.FirstView(members)
	if err != nil {
		m.fail(err)
		return
	}
	m.become(Membership{Self: *v.Named(m.self.Identity), View: v, Began: began})
}
