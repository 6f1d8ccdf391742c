package logp

// sendOffset is a send: how far it goes to the right or, if negative, to the left.
type sendOffset int32

// target is where it goes from a position, sender where from it reaches one.
func (b sendOffset) target(position int) int { return position + int(b) }
func (b sendOffset) sender(position int) int { return position - int(b) }

// from is the side from which it is heard, and distance how far away.
func (b sendOffset) from() side       { return side(uint32(b) >> 31) }
func (b sendOffset) distance() uint32 { return uint32(max(b, -b)) }

// lockstep is what all processes that correct do alike: their sends before any
// message has arrived, and their first reaction to one. It depends on the rule and on
// L and o alone.
//
// All start at the same moment and send without a pause, so sends start in slots of
// length o. A message of slot k is known from slot k + lag on, at the earliest.
// Until then all do the same, and every receiver gets one message a slot.
type lockstep struct {
	lag    int          // slots from a send to the first decision that it can influence
	common []sendOffset // sends of the slots in which all do the same
	state  progress     // of all processes after those
	over   bool         // all are done then

	// In slot lag, a process that has received the first common send of a neighbor
	// sends the reaction, if it reacts. A process with two colored neighbors
	// receives from the other one slot later, and is done.
	reaction sendOffset
	reacts   bool
	// all says that the other processes do the same in that slot.
	all bool

	scripted []sendOffset // common sends whose arrival is scripted
	scripts  []script     // by neighborhood
	view     int          // how far to both sides a neighborhood goes
}

func newLockstep(r *rule, params Params) lockstep {
	l := lockstep{lag: int(2 + ceilDiv(params.L, params.O)), state: r.begin()}
	horizon := l.lag
	if r.kind == SparseOpportunistic {
		horizon = int(2 * r.size) // it never listens
	}
	for range horizon {
		b, ok := r.next(&l.state)
		if !ok {
			l.over = true
			return l
		}
		l.common = append(l.common, b)
	}
	heard, others := l.state, l.state
	r.receive(&heard, l.common[0])
	l.reaction, l.reacts = r.next(&heard)
	b, ok := r.next(&others)
	l.all = ok == l.reacts && b == l.reaction
	l.writeScripts(r)
	return l
}

// reach is the farthest distance of a common send or of the reaction.
func (l *lockstep) reach() int {
	reach := l.reaction.distance()
	for _, b := range l.common {
		reach = max(reach, b.distance())
	}
	return int(reach)
}
