package protocol

import "math"

// Rank is a position on the ring, 0 … P−1. It has 64 bits because trees are
// defined up to 2^40 ranks, more than any real group has.
type Rank int64

// NoRank is the absence of a rank: the parent of a root, or the result of a
// search that found none.
const NoRank Rank = -1

// Time is an instant or a duration on the driver's clock: steps of the LogP
// model in the simulator, nanoseconds between real processes. Machines only
// compare and add times they were given.
type Time int64

// Never is later than every instant.
const Never Time = math.MaxInt64

// Phase is the purpose of a message. Drivers use it to count messages and to
// time faults ("dies when its correction starts"), never to decide anything.
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

// Message is a message from one process to another. The body's type belongs to
// the protocol; drivers carry it unread.
type Message[B any] struct {
	From  Rank
	Phase Phase
	Body  B
}

// Verb is what a driver does next.
type Verb uint8

// The verbs of an [Action].
const (
	// WaitForMessage: call Next again after the next message.
	WaitForMessage Verb = iota
	// WaitUntil: call Next again at [Action.At], or after the next message if
	// that is earlier.
	WaitUntil
	// Send: send [Action.Body] to [Action.To], then call Next again.
	Send
	// Done: never call Next again. The machine sends nothing more, even if
	// messages arrive.
	Done
)

// Action is a machine's answer to [Machine.Next]. The driver lends the memory,
// and the machine fills it in by one of the methods below.
type Action[B any] struct {
	Verb  Verb
	Phase Phase
	// Queued marks a send that was decided at the earlier time At and has
	// waited for the port since: all sends of a tree are decided when the
	// process is colored. A receiver with several waiting messages takes the
	// one that was decided first.
	Queued bool
	To     Rank
	// At is the time to wait for (WaitUntil), or the time at which a queued
	// send was decided.
	At   Time
	Body B
}

// Wait asks the driver to call Next again after the next message.
func (a *Action[B]) Wait() { a.Verb = WaitForMessage }

// WaitUntil asks the driver to call Next again at time t, or after the next
// message if that is earlier.
func (a *Action[B]) WaitUntil(t Time) { a.Verb, a.At = WaitUntil, t }

// Done asks the driver never to call Next again.
func (a *Action[B]) Done() { a.Verb = Done }

// Send sends a message that is decided now.
func (a *Action[B]) Send(phase Phase, to Rank, body B) {
	a.Verb, a.Phase, a.Queued, a.To, a.Body = Send, phase, false, to, body
}

// SendQueued sends a message that was decided at an earlier time.
func (a *Action[B]) SendQueued(decided Time, phase Phase, to Rank, body B) {
	a.Send(phase, to, body)
	a.Queued, a.At = true, decided
}

// Machine is one process's part in one operation.
//
// Input is Receive; output is Next and Complete. See the package comment for
// the order of calls. Messages and actions are the driver's memory: a machine
// must not keep the pointers.
type Machine[B any] interface {
	// Receive handles a message that has arrived.
	Receive(now Time, m *Message[B])

	// Next fills in what to do now that the send port is free.
	Next(now Time, a *Action[B])

	// Complete reports whether this process has the operation's result: for a
	// broadcast, whether it is colored. Once true, it stays true. A complete
	// process may still have messages to send.
	Complete() bool
}

// Observer is a machine that listens to a failure detector. Most machines do
// not: correction needs no detector.
type Observer interface {
	// Report tells the machine that a detector considers the process of rank
	// failed dead.
	Report(now Time, failed Rank)
}
