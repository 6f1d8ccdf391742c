package logp

// beat is a send: how far to the right it goes, or, if negative, to the left.
type beat int32

// target is where it goes from a position, sender where from it reaches one.
func (b beat) target(position int) int { return position + int(b) }
func (b beat) sender(position int) int { return position - int(b) }

// from is the side from which it is heard, and distance how far away.
func (b beat) from() side       { return side(uint32(b) >> 31) }
func (b beat) distance() uint32 { return uint32(max(b, -b)) }

// lockstep is what correction looks like before anybody hears anything and
// where everybody does. It depends on the rule and on L and o alone.
//
// All who correct start at the same moment and send without a pause, so sends
// start in slots of length o. A message of slot k is heard in time for slot
// k + deaf at the earliest. Until then all do the same, and every receiver gets
// one message a slot.
type lockstep struct {
	deaf  int    // slots from a send to the first that its receiver may decide by it
	beats []beat // slots in which everybody does the same
	state stance // everybody's after those
	over  bool   // all are done then

	// In slot deaf, if it comes to that, those who have heard from the neighbor
	// that the first beat was for send as chorus says, if at all. Whoever has
	// two neighbors hears from the other one slot later, and is done.
	chorus beat
	sings  bool
	// all says that the others do the same in that slot.
	all bool

	scripted []beat   // those whose hearing is scripted
	scripts  []script // by neighborhood
	view     int      // how far to both sides a neighborhood goes
}

func newLockstep(r *rule, params Params) lockstep {
	l := lockstep{deaf: int(2 + ceilDiv(params.L, params.O)), state: r.begin()}
	patience := l.deaf
	if r.kind == SparseOpportunistic {
		patience = int(2 * r.size) // it never listens
	}
	for range patience {
		b, ok := r.next(&l.state)
		if !ok {
			l.over = true
			return l
		}
		l.beats = append(l.beats, b)
	}
	heard, others := l.state, l.state
	r.hear(&heard, l.beats[0])
	l.chorus, l.sings = r.next(&heard)
	b, ok := r.next(&others)
	l.all = ok == l.sings && b == l.chorus
	l.writeScripts(r)
	return l
}

// reach is the farthest distance of a beat or of the chorus.
func (l *lockstep) reach() int {
	reach := l.chorus.distance()
	for _, b := range l.beats {
		reach = max(reach, b.distance())
	}
	return int(reach)
}
