package sequencer

// How a member of a shared order learns the order. It asks another member, which has the leader
// broadcast a mark. Where the mark comes in their messages, the one takes a snapshot and the other
// begins to keep what it receives: together they are the order.

import (
	"errors"
	"slices"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Time is the driver's time.
type Time = protocol.Time

// Limits of joining.
const (
	maxHeld          = 64 << 20 // bytes kept behind the mark during a transfer; beyond it, a new round begins
	maxAsked         = 64       // snapshots that are taken for others, and members that are asked, at a time
	stateWait   Time = 5e9      // for a short reply, and for a mark after its snapshot
	markWait    Time = 10e9     // for a mark at the member that takes the snapshot
	markRetry   Time = 1e9      // after which it asks the leader for the mark again: marks get lost with views
	minPause    Time = 20e6     // between two rounds, doubled after each up to maxPause
	maxPause    Time = 1e9
	membersEach      = 3 // members that are asked in a round
)

// Errors of requests between members.
var (
	errNoMark     = errors.New("ordered: the mark has not come: the view may have changed")
	errTooMany    = errors.New("ordered: too many members ask for the state")
	errMalformed  = errors.New("ordered: malformed request")
	errNoSnapshot = errors.New("ordered: the snapshot is gone: ask for another one")
	errFetching   = errors.New("ordered: the state is being transferred to this member")
)

// Joining is one member's part in giving the order to members that do not know it. In: View,
// Receive, Replied, StateAsked, TransferAsked, MarkAsked, Captured, Canceled, Leave, and Tick at
// Deadline. After each, the driver carries out what Take returns, before it gives the next
// broadcast in.
type Joining struct {
	order   *Machine
	random  func() uint64
	knows   bool
	view    uint64
	members []Member // of the view; none: there is no quorum
	round
	entry
	transfers
	heirs
	asked  []asked
	asks   map[uint64]func(now Time, r Reply) // by token: what follows a reply
	tokens uint64
	out    []Action
}

// round is what a member that does not know the order does next.
type round struct {
	then  func(now Time)
	due   Time // of then; Never: a reply comes first
	pause Time // before the next round
	from  []int
}

// entry is what has come for a member that does not know the order.
type entry struct {
	name     uint64 // of the mark that it waits for
	leader   int    // whose mark has come; -1: not yet
	markView uint64 // the view of that mark
	held     []received
	bytes    int    // of held
	snapshot []byte // nil: not yet
}

// received is a message of the group behind the mark.
type received struct {
	view uint64
	from int
	body []byte
}

// asked is a snapshot that another member waits for.
type asked struct {
	id, name uint64
	until    Time
	retry    Time     // when the leader is asked for the mark again
	opening  *opening // nil: the member is of an earlier version, and gets the whole snapshot in one reply
}

// NewJoining returns the part of a member whose order is a machine's. Random returns random bits.
func NewJoining(order *Machine, knows bool, random func() uint64) *Joining {
	j := &Joining{order: order, random: random, knows: knows, asks: make(map[uint64]func(Time, Reply))}
	j.expect(0)
	j.round = round{then: j.begin, pause: minPause}
	j.heirs.due = protocol.Never
	return j
}

// Knows reports whether this member knows the order.
func (j *Joining) Knows() bool { return j.knows }

// View tells the view of the group, with its members, those that vote first, or none if there is no
// quorum.
func (j *Joining) View(number uint64, members []Member) { j.view, j.members = number, members }

// Tick has time pass.
func (j *Joining) Tick(now Time) {
	for len(j.asked) > 0 && now >= j.asked[0].until {
		j.refuse(j.asked[0].id, errNoMark)
	}
	j.retryMarks(now)
	j.expire(now)
	if !j.knows && now >= j.round.due {
		j.round.due = protocol.Never
		j.then(now)
	}
	if now >= j.heirs.due {
		j.findHeir(now)
	}
}

// Deadline is when Tick has something to do.
func (j *Joining) Deadline() Time {
	due := min(j.heirs.due, j.expiry())
	if !j.knows {
		due = min(due, j.round.due)
	}
	for i := range j.asked {
		due = min(due, j.asked[i].until, j.asked[i].retry)
	}
	return due
}

// wait does something at a time.
func (j *Joining) wait(due Time, then func(now Time)) { j.round.due, j.then = due, then }

// rest ends a round, and begins the next one after a pause.
func (j *Joining) rest(now Time) {
	j.wait(now+j.pause, j.begin)
	j.pause = min(2*j.pause, maxPause)
}

// begin begins a round: this member asks the leader, and then some others. A leader does not know
// the order after a restart, if it has got its old rank.
func (j *Joining) begin(now Time) {
	switch {
	case len(j.members) == 0:
		j.rest(now)
	case j.members[0] == j.order.config.Self:
		p := &poll{view: j.view, knowing: -1}
		for _, m := range j.members[1:] {
			p.left = append(p.left, m.Rank)
		}
		j.poll(now, p)
	default:
		j.from = []int{j.members[0].Rank}
		for range membersEach {
			if m := j.members[j.random()%uint64(len(j.members))]; m != j.order.config.Self {
				j.from = append(j.from, m.Rank)
			}
		}
		j.fetch(now)
	}
}

// fetch gets the order from the next member of a round.
func (j *Joining) fetch(now Time) {
	j.transfer = nil
	switch {
	case j.knows:
		return
	case len(j.from) == 0:
		j.rest(now)
		return
	}
	j.expect(1 + j.random()>>1)
	from := j.from[0]
	j.from = j.from[1:]
	j.open(from, j.name)
}

// fetchWhole gets the order in one reply, from a member of an earlier version.
func (j *Joining) fetchWhole(from int, name uint64) {
	j.ask(from, StateRequest, wire.AppendUint64(nil, name), func(now Time, r Reply) {
		if r.Err != nil || len(r.Body) == 0 {
			j.fetch(now)
			return
		}
		j.fetched(now, name, r.Body)
	})
}

// fetched takes the snapshot at a mark. It is of no use if messages behind the mark are missing.
func (j *Joining) fetched(now Time, name uint64, snapshot []byte) {
	if j.name == name {
		j.snapshot = snapshot
		j.enter()
	}
	if j.name == name {
		j.wait(now+stateWait, j.fetch) // for the mark
	} else {
		j.wait(now+minPause, j.fetch)
	}
}

// poll is how a leader asks all members whether they know the order.
type poll struct {
	view    uint64
	left    []int
	asked   int // members that have not replied
	knowing int // rank of one that knows it; -1: none
	silent  int // members that did not reply
}

// poll asks the next members. If no member knows the order, it restarts at [Fresh]. A member that takes no
// part has no handler.
func (j *Joining) poll(now Time, p *poll) {
	for ; len(p.left) > 0 && p.asked < maxAsked; p.left = p.left[1:] {
		p.asked++
		rank := p.left[0]
		j.ask(rank, StateRequest, askKnows(), func(now Time, r Reply) {
			p.asked--
			switch {
			case r.Err == nil && len(r.Body) > 0:
				p.knowing = rank
			case r.Err != nil && !r.NoPart:
				p.silent++
			}
			j.poll(now, p)
		})
	}
	switch {
	case p.asked > 0 || j.knows:
	case p.knowing >= 0:
		j.from = []int{p.knowing}
		j.fetch(now)
	case p.silent == 0 && j.order.AcceptMark(Mark{p.view, Fresh}) == nil:
		j.wait(now+stateWait, j.rest)
	default:
		j.rest(now)
	}
}

// Receive takes a broadcast of the order, as [Machine.Receive] does.
func (j *Joining) Receive(view uint64, from int, body []byte) {
	mark, marked := DecodeMark(body)
	switch {
	case marked && mark.View == view: // otherwise its sender has led until it was sent
		j.reach(mark, from)
	case j.knows:
		j.deliver(received{view, from, body})
	case j.leader >= 0:
		j.hold(received{view, from, body})
	}
}

// Lost says that broadcasts of a member are missing, as [Machine.Lost] does. What is kept behind a
// mark has a gap then.
func (j *Joining) Lost(view uint64, from int) {
	if j.knows {
		j.order.Lost(view, from)
	} else {
		j.expect(0)
	}
}

// reach handles a mark, where it comes in the messages. All restart at [Fresh]: a member that
// has come to know the order since the leader has asked it would be the only one.
func (j *Joining) reach(mark Mark, leader int) {
	switch {
	case mark.Name == Fresh:
		j.order.Begin(mark, leader)
		j.entered()
		j.out = append(j.out, Reset{mark.View})
	case j.knows:
		if i := slices.IndexFunc(j.asked, func(a asked) bool { return a.name == mark.Name }); i >= 0 {
			j.capture(&j.asked[i])
			j.asked = slices.Delete(j.asked, i, i+1)
		}
	case mark.Name == j.name && j.leader < 0:
		j.leader, j.markView = leader, mark.View
		j.enter()
	}
}

// expect waits for a mark.
func (j *Joining) expect(name uint64) { j.entry = entry{name: name, leader: -1} }

// hold keeps a message behind the mark.
func (j *Joining) hold(b received) {
	j.held = append(j.held, b)
	j.bytes += len(b.body)
	if j.bytes > maxHeld {
		j.expect(0)
	}
}

// enter continues with the order after the mark, when both the mark and the snapshot are there.
func (j *Joining) enter() {
	if j.leader < 0 || j.snapshot == nil {
		return
	}
	program, err := RestoreState(j.snapshot, j.order)
	if err == nil && j.order.view != j.markView {
		j.expect(0) // the snapshot is from a mark of an earlier view, which has not come here
		return
	}
	j.out = append(j.out, Restore{program, err})
	if err != nil {
		return
	}
	j.order.Follow(j.leader)
	held := j.held
	j.entered()
	for _, b := range held {
		j.deliver(b)
	}
}

// entered ends joining: this member knows the order.
func (j *Joining) entered() {
	j.expect(0)
	j.knows, j.transfer, j.blocks = true, nil, nil
}

// deliver gives a message to the order, and what follows to the program. Bytes that are no frame
// come from a program that broadcasts to the topic itself.
func (j *Joining) deliver(b received) {
	if messages, _ := j.order.Receive(b.view, b.from, b.body); len(messages) > 0 {
		j.out = append(j.out, Deliver{messages})
	}
}

// StateAsked takes a member's request for the state at a mark, in one reply. If it names no mark, it
// asks whether this member knows the order. The reply is empty if not, and has a second byte if this
// member is about to leave.
func (j *Joining) StateAsked(now Time, id uint64, body []byte) {
	d := wire.NewDecoder(body)
	name, answer := d.Uint64(), Answer{ID: id}
	switch {
	case d.Finish() != nil:
		answer.Err = errMalformed
	case name != 0:
		j.takeFor(now, asked{id: id, name: name})
		return
	case j.knows && j.leaving:
		answer.Body = []byte{1, 1}
	case j.knows:
		answer.Body = []byte{1}
	case j.transfer != nil || j.snapshot != nil:
		answer.Err = errFetching // it may know the order soon: do not begin a new one
	}
	j.out = append(j.out, answer)
}

// takeFor takes a snapshot for another member when its mark comes.
func (j *Joining) takeFor(now Time, a asked) {
	answer := Answer{ID: a.id}
	switch {
	case !j.knows:
	case len(j.asked)+len(j.captures) >= maxAsked:
		answer.Err = errTooMany
	default:
		a.until, a.retry = now+markWait, now+markRetry
		j.asked = append(j.asked, a)
		j.requestMark(a.id, a.name)
		return
	}
	j.out = append(j.out, answer)
}

// retryMarks asks for marks again that have not come. A mark that comes twice in one view counts once.
func (j *Joining) retryMarks(now Time) {
	for _, a := range slices.Clone(j.asked) {
		if now < a.retry {
			continue
		}
		if i := slices.IndexFunc(j.asked, func(b asked) bool { return b.id == a.id }); i >= 0 {
			j.asked[i].retry = now + markRetry
		}
		j.requestMark(a.id, a.name)
	}
}

// requestMark has the leader broadcast a mark.
func (j *Joining) requestMark(id, name uint64) {
	switch view, leader, _ := j.order.Place(); {
	case leader == j.order.config.Self.Rank:
		if err := j.order.AcceptMark(Mark{view, name}); err != nil {
			j.refuse(id, err)
		}
	case leader >= 0:
		body := wire.AppendUint64(wire.AppendUint64(nil, view), name)
		j.ask(leader, MarkRequest, body, func(_ Time, r Reply) {
			if r.Err != nil {
				j.refuse(id, r.Err)
			}
		})
	}
}

// refuse answers a request for the state, if it is not answered yet.
func (j *Joining) refuse(id uint64, err error) {
	if j.Canceled(id) {
		j.out = append(j.out, Answer{ID: id, Err: err})
	}
}

// Canceled says that a member does not wait for the state any more. It reports whether it did.
func (j *Joining) Canceled(id uint64) bool {
	n := len(j.asked)
	j.asked = slices.DeleteFunc(j.asked, func(a asked) bool { return a.id == id })
	return len(j.asked) < n
}

// MarkAsked takes a member's request for a mark.
func (j *Joining) MarkAsked(body []byte) error {
	d := wire.NewDecoder(body)
	mark := Mark{d.Uint64(), d.Uint64()}
	if d.Finish() != nil {
		return errMalformed
	}
	return j.order.AcceptMark(mark)
}
