package backfill

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pleach-go/pleach/agent/retention"
)

// The origin of a message to a fleet, and its number there, name the message at all agents of all
// zones. So an agent knows by the next message of an origin which ones it lacks, and by the
// positions at which it has come back which ones it lacks of origins that are silent (ADR 76).

// Origin is a start of a process that sends to a fleet.
type Origin struct {
	Zone        string `json:"zone"`
	ID          string `json:"id"`
	Incarnation uint64 `json:"incarnation"`
}

// Sent is up to where the messages of an origin go.
type Sent struct {
	Origin
	Seq uint64 `json:"seq"`
}

// SentOf names a message to a fleet.
func SentOf(m *retention.Message) Sent { return Sent{Origin{m.Zone, m.FromID, m.Incarnation}, m.Index} }

// Hole is messages of an origin that an agent lacks. It is empty if Last is before First.
type Hole struct {
	Origin
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// maxOrigins is how many origins an agent remembers that its fleet does not know any longer.
const maxOrigins = 1 << 14

// OriginsState is what an agent has of its fleet, as its files have it.
type OriginsState struct {
	Fleet string `json:"fleet"`
	Born  uint64 `json:"born"`
	Have  []Sent `json:"have,omitempty"`
}

// Origins is what an agent has of its fleet: the messages of each origin up to a number. The zero
// value was in no fleet.
type Origins struct {
	fleet string
	born  uint64 // the last life of the agent's zone of which the agent knows all that was sent before
	now   uint64 // the present life of the zone; 0: the agent was not in the fleet since it was started
	have  map[Origin]uint64
}

// Restore begins with a state.
func (o *Origins) Restore(s *OriginsState) {
	*o = Origins{fleet: s.Fleet, born: s.Born, have: make(map[Origin]uint64)}
	for _, sent := range s.Have {
		o.Reached(sent)
	}
}

// Fleet returns the name of the fleet, or "" if the agent was in none.
func (o *Origins) Fleet() string { return o.fleet }

// State returns the present state.
func (o *Origins) State() OriginsState { return OriginsState{o.fleet, o.born, o.sent()} }

func (o *Origins) sent() (list []Sent) {
	for origin, seq := range o.have {
		list = append(list, Sent{origin, seq})
	}
	slices.SortFunc(list, func(a, b Sent) int { return compareOrigins(a.Origin, b.Origin) })
	return list
}

func compareOrigins(a, b Origin) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Incarnation, b.Incarnation))
}

// Reached notes that the agent has an origin's messages up to a number, as far as they can be had.
func (o *Origins) Reached(s Sent) {
	if o.have == nil {
		o.have = make(map[Origin]uint64)
	}
	o.have[s.Origin] = max(o.have[s.Origin], s.Seq)
}

// Has reports whether the agent has a message.
func (o *Origins) Has(s Sent) bool { return s.Seq <= o.have[s.Origin] }

// Before returns what is missing before a message, of which lost ones are lost to the zone. Of an
// origin that the agent does not know, only those are.
func (o *Origins) Before(s Sent, lost uint64) Hole {
	first := s.Seq - lost
	if have, known := o.have[s.Origin]; known {
		first = have + 1
	}
	return Hole{s.Origin, first, s.Seq - 1}
}

// Enter notes that the agent is in a fleet, by a zone that was born at some time, and gets what
// follows some positions. It returns how to fill what the agent lacks before them, or nil if that
// is nothing. A fleet that it enters for the first time begins there.
//
// A zone that has restarted from scratch may not have met the others yet: its positions are not all, and the
// agent lacks what others know beyond its own.
func (o *Origins) Enter(fleet string, born uint64, before []Sent, limits retention.Limits) *FleetFill {
	if o.fleet != fleet {
		o.Restore(&OriginsState{fleet, born, before})
		o.now = born
		return nil
	}
	o.now = born
	var holes []Hole
	listed := make(map[Origin]bool)
	for _, s := range before {
		listed[s.Origin] = true
		if have := o.have[s.Origin]; s.Seq > have {
			holes = append(holes, Hole{s.Origin, have + 1, s.Seq})
		}
	}
	if len(o.have) > maxOrigins {
		maps.DeleteFunc(o.have, func(of Origin, _ uint64) bool { return !listed[of] })
	}
	if o.born == born && len(holes) == 0 {
		return nil
	}
	fill := NewFleetFill(holes, limits)
	fill.born = born
	if o.born != born {
		fill.unsure, fill.request.Beyond, fill.request.Have = true, true, o.sent()
	}
	return fill
}

// Filled notes what a fill has come to.
func (o *Origins) Filled(r FleetResult) {
	for _, s := range r.Ends {
		o.Reached(s)
	}
	if !r.Uncertain && r.Born > 0 {
		o.born = r.Born
	}
}
