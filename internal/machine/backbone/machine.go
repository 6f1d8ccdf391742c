package backbone

import (
	"maps"
	"slices"
)

const (
	millisecond Time = 1e6
	second           = 1e3 * millisecond
)

// Never is the deadline of a machine that waits for an input.
const Never = Time(1<<63 - 1)

// askTimeout bounds a question to another zone, and siblingTimeout one within the zone, whose
// members are near.
const (
	askTimeout     = 5 * second
	siblingTimeout = second
)

// Config describes a process.
type Config struct {
	// Zone is the zone of the process, and Delegates how many members of a zone are in the backbone.
	Zone      string
	Delegates int
}

// Zone is a view of the zone of a process.
type Zone struct {
	// Index is the position of the process among the members, by age.
	Index int
	// Lead is the address in the backbone that the oldest member announces; "": none.
	Lead string
	// Others are the addresses that other members than this process announce.
	Others []string
}

// Machine decides which backbone a process is in while it is a delegate of its zone. It does no
// I/O, reads no clock, and is not safe for concurrent use.
//
// In:
//   - [Machine.SetZone] for a view of the zone, and [Machine.SetSeeds] for the zones with seeds.
//   - [Machine.Found] for each answer to an [AskZone] or [AskDelegates].
//   - [Machine.Entered] or [Machine.Failed] for the result of a [Join] or [Create].
//   - [Machine.Installed] for each view of the backbone, also when its quorum is lost or regained.
//   - [Machine.Left] when this process is no longer in the backbone: after a [Leave], or because
//     the others have removed it.
//
// Out, after each of these and at [Machine.Deadline]: [Machine.Next] until it returns nil. An action
// is carried out before the next call. Questions of an earlier round than the last need no answer,
// nor do questions that come before a Join, Create or Leave.
type Machine struct {
	config Config
	now    Time
	zone   Zone
	seeded []string            // zones with seeds
	known  map[string][]string // addresses of delegates, by zone, that are or were in the backbone

	stage  stage
	entry  entry  // while this process is in no backbone
	inside inside // while it is in one
	better string // address of a delegate in the backbone that it leaves, or has left, the last one for; "": none
	vain   int    // times in a row that it could not enter that one
	round  round

	actions []Action // to be returned by Next
}

// stage is what a process is about.
type stage int

const (
	waiting  stage = iota // it is no delegate
	looking               // for a backbone to enter
	joining               // one
	creating              // one
	serving               // in one
	leaving               // it
	left                  // it, and its address is about to be retracted
)

// round is a set of questions that are asked together.
type round struct {
	number uint64
	open   int  // questions without an answer
	all    bool // zones are asked for a backbone to enter
	first  bool // no zone before this one, in the order of names, is reachable, and none announces a delegate

	smaller string // the address of a member of a smaller backbone; "": none was found
}

// New returns the machine of a process that has yet to learn the view of its zone.
func New(c Config) *Machine {
	return &Machine{config: c, zone: Zone{Index: c.Delegates}, known: make(map[string][]string)}
}

// SetZone takes a view of the zone.
func (m *Machine) SetZone(now Time, z Zone) { m.now, m.zone = now, z }

// SetSeeds takes the names of the zones that have seeds.
func (m *Machine) SetSeeds(zones []string) { m.seeded = slices.Clone(zones) }

// delegate reports whether this process has a place in the backbone.
func (m *Machine) delegate() bool { return m.zone.Index < m.config.Delegates }

// lead reports whether this process looks for other zones.
func (m *Machine) lead() bool { return m.zone.Index == 0 }

// Next returns the next action, or nil if there is none now.
func (m *Machine) Next(now Time) Action {
	m.now = now
	if len(m.actions) == 0 {
		m.decide()
	}
	if len(m.actions) == 0 {
		return nil
	}
	a := m.actions[0]
	m.actions = m.actions[1:]
	return a
}

// decide does the pending work.
func (m *Machine) decide() {
	switch m.stage {
	case waiting:
		if m.delegate() {
			m.enter("")
			m.look()
		}
	case looking:
		m.look()
	case serving:
		m.serve()
	case left:
		m.enter(m.better)
		m.look()
	}
}

// Deadline returns when Next must be called again if nothing else happens.
func (m *Machine) Deadline() Time {
	switch m.stage {
	case looking:
		return m.entry.due
	case serving:
		return min(m.inside.due, m.inside.loses)
	}
	return Never
}

// act replaces the actions that have yet to be carried out: they are out of date.
func (m *Machine) act(s stage, actions ...Action) {
	m.stage, m.actions = s, actions
	m.round.open = 0
}

// begin begins a round of questions.
func (m *Machine) begin() {
	m.round = round{number: m.round.number + 1}
}

// askZones asks zones for their backbones at the same time, since some may not answer.
func (m *Machine) askZones(zones []string) {
	for _, zone := range zones {
		m.ask(AskZone{m.round.number, zone, m.known[zone], askTimeout})
	}
}

// askDelegates asks delegates for their backbone.
func (m *Machine) askDelegates(addresses []string, timeout Time) {
	m.ask(AskDelegates{m.round.number, addresses, timeout})
}

func (m *Machine) ask(question Action) {
	m.actions = append(m.actions, question)
	m.round.open++
}

// Found takes an answer.
func (m *Machine) Found(now Time, number uint64, f Found) {
	m.now = now
	if number != m.round.number || m.round.open == 0 {
		return
	}
	m.round.open--
	if m.stage == serving {
		m.foundElsewhere(&f)
	} else {
		m.foundToEnter(&f)
	}
}

// otherZones returns the zones that this process knows but its own, by its seeds or from a backbone,
// in the order of names.
func (m *Machine) otherZones() []string {
	zones := slices.AppendSeq(slices.Clone(m.seeded), maps.Keys(m.known))
	zones = slices.DeleteFunc(zones, func(zone string) bool { return zone == m.config.Zone })
	slices.Sort(zones)
	return slices.Compact(zones)
}
