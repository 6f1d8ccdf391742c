package sequencer

import "errors"

// A mark is a place between two broadcasts of a leader, which every member comes to. A process
// that joins a group without the group's help gets the order as it is at a mark: another member
// takes a snapshot there, and the process begins with what it receives behind it.

// Fresh marks the place where members start a new order, if none of them knows one.
const Fresh = 0

// Mark is a place in the order. Name is [Fresh], or chosen by the process that asks for it.
type Mark struct {
	View uint64
	Name uint64
}

// DecodeMark reports whether a broadcast is a mark, and which.
func DecodeMark(body []byte) (Mark, bool) {
	if len(body) == 0 || kind(body[0]) != kindMark {
		return Mark{}, false
	}
	f, err := decode(body)
	if err != nil {
		return Mark{}, false
	}
	return Mark{f.view, f.count}, true
}

// maxMarks is how many marks wait to be broadcast.
const maxMarks = 1024

// errKnown is returned by AcceptMark for [Fresh] if a member knows the order: it has forwarded
// something.
var errKnown = errors.New("ordered: a member knows the order")

// AcceptMark has the leader of a view broadcast a mark. If that fails, the mark is lost, and is
// asked for again.
func (m *Machine) AcceptMark(mark Mark) error {
	switch {
	case m.leading == 0 || mark.View != m.leading || len(m.marks) >= maxMarks:
		return ErrNotLeader
	case mark.Name == Fresh && m.accepted:
		return errKnown
	}
	m.marks = append(m.marks, mark.Name)
	return nil
}

// Begin begins an order without messages at a mark. Messages of this process that are not numbered
// are the first ones.
func (m *Machine) Begin(mark Mark, leader int) {
	m.order = order{view: mark.View, last: make(map[Member]uint64)}
	m.seq, m.highest, m.acked = uint64(len(m.pending)), 0, 0
	m.Follow(leader)
}

// Follow continues after a mark, at which the order was restored, with the broadcasts of the
// leader of its view.
func (m *Machine) Follow(leader int) { m.leader, m.forwarded = leader, 0 }
