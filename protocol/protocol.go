package protocol

import "math"

// Rank is a position on the ring, 0 … P−1. It is wide enough for the largest
// group anybody has thought about (2^40), not only for those that run.
type Rank int64

// NoRank is the rank of nobody: the parent of a root, the answer of a search
// that found none.
const NoRank Rank = -1

// Time is a moment or a span on the driver's clock: steps of the LogP model in
// the simulator, nanoseconds between real processes. Machines only compare and
// add times they were given.
type Time int64

// Never is later than every moment.
const Never Time = math.MaxInt64

// Phase says what a message is for. Drivers use it to count messages and to
// aim faults ("dies when its correction starts"), never to decide anything.
type Phase uint8

// The phases of an operation.
const (
	// Dissemination is the fast first phase: along a tree or by gossip.
	Dissemination Phase = iota
	// Correction closes the gaps that dead processes left.
	Correction
	// Acknowledgment travels back towards the root.
	Acknowledgment

	// Phases is the number of phases.
	Phases = iota
)

// String returns the phase's name as it appears in traces and flags.
func (p Phase) String() string {
	switch p {
	case Dissemination:
		return "dissemination"
	case Correction:
		return "correction"
	case Acknowledgment:
		return "acknowledgment"
	default:
		return "unknown phase"
	}
}

// Message is what one process tells another. The body's type belongs to the
// protocol; drivers carry it unread.
type Message[B any] struct {
	From  Rank
	Phase Phase
	Body  B
}

// Verb is what a machine wants its driver to do next.
type Verb uint8

// The verbs of an [Action].
const (
	// WaitForMessage: ask again once something has been received.
	WaitForMessage Verb = iota
	// WaitUntil: ask again at [Action.At], or earlier if something is received.
	WaitUntil
	// Send: send [Action.Body] to [Action.To], then ask again.
	Send
	// Done: the machine will never send again, whatever arrives.
	Done
)

// Action is a machine's answer to [Machine.Next]. The driver lends the memory,
// and the machine fills it in by one of the methods below.
type Action[B any] struct {
	Verb  Verb
	Phase Phase
	// Queued marks a send that was already decided at an earlier moment,
	// given by At, and has been waiting for the port since: a tree's sends are
	// all decided when the process is colored. A receiver with several
	// messages waiting takes the one decided first.
	Queued bool
	To     Rank
	// At is the time to wait for (WaitUntil), or when a queued send was
	// decided.
	At   Time
	Body B
}

// Wait asks to be asked again after the next message.
func (a *Action[B]) Wait() { a.Verb = WaitForMessage }

// WaitUntil asks to be asked again at time t, or after the next message.
func (a *Action[B]) WaitUntil(t Time) { a.Verb, a.At = WaitUntil, t }

// Done asks never to be asked again.
func (a *Action[B]) Done() { a.Verb = Done }

// Send sends a message that was decided on just now.
func (a *Action[B]) Send(phase Phase, to Rank, body B) {
	a.Verb, a.Phase, a.Queued, a.To, a.Body = Send, phase, false, to, body
}

// SendQueued sends a message that was decided on at an earlier time.
func (a *Action[B]) SendQueued(decided Time, phase Phase, to Rank, body B) {
	a.Send(phase, to, body)
	a.Queued, a.At = true, decided
}

// Machine is one process's part in one operation.
//
// In: Receive. Out: Next and Complete. See the package comment for the order
// of calls. Messages and actions are the driver's memory: a machine must not
// keep the pointers.
type Machine[B any] interface {
	// Receive takes a message that has arrived.
	Receive(now Time, m *Message[B])

	// Next says what to do now that the send port is free.
	Next(now Time, a *Action[B])

	// Complete reports whether this process has the operation's result: for a
	// broadcast, whether it is colored. Once true it stays true. A complete
	// process may still have to send for others.
	Complete() bool
}

// Observer is a machine that listens to a failure detector. Most do not need
// one; that is the point of correction.
type Observer interface {
	// Report says that a detector holds the process of that rank dead.
	Report(now Time, failed Rank)
}
