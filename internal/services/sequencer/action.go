package sequencer

import (
	"bytes"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// Action is what the driver of a [Joining] does.
type Action interface{ action() }

// The actions.
type (
	// Ask sends a request to a member. The driver reports its end by Replied.
	Ask struct {
		Token   uint64
		To      int
		Request Request
		Body    []byte
		Timeout Time
	}
	// Answer answers a request of another member.
	Answer struct {
		ID   uint64
		Body []byte
		Err  error
	}
	// Capture takes a snapshot of the program's state, as it is now, for a request. The driver
	// passes it to Captured.
	Capture struct{ ID uint64 }
	// Restore replaces the program's state. With Err, the order cannot be had: the part of this
	// process ends.
	Restore struct {
		State []byte
		Err   error
	}
	// Reset empties the program's state: the order begins again in a view, because no member
	// knew it.
	Reset struct{ View uint64 }
	// HandedOver says that this member may leave: see Leave.
	HandedOver struct{}
	// Deliver gives messages to the program.
	Deliver struct{ Messages []Message }
)

func (Ask) action()     {}
func (Answer) action()  {}
func (Capture) action() {}
func (Restore) action() {}
func (Reset) action()   {}
func (Deliver) action() {}

func (HandedOver) action() {}

// Request is what one member asks of another.
type Request int

// The requests.
const (
	StateRequest    Request = iota // for StateAsked
	MarkRequest                    // for MarkAsked
	TransferRequest                // for TransferAsked
)

// Reply is the end of a request.
type Reply struct {
	Body   []byte
	Err    error
	NoPart bool // Err says that the member takes no part in the order
}

// ask asks a member, and does something with the reply.
func (j *Joining) ask(to int, r Request, body []byte, then func(now Time, r Reply)) {
	j.tokens++
	j.asks[j.tokens] = then
	wait := stateWait
	if r == TransferRequest || r == StateRequest && !bytes.Equal(body, askKnows()) {
		wait = transferWait
	}
	j.out = append(j.out, Ask{j.tokens, to, r, body, wait})
}

// askKnows is the body of a StateRequest that asks whether a member knows the order.
func askKnows() []byte { return wire.AppendUint64(nil, 0) }

// Replied takes the end of a request.
func (j *Joining) Replied(now Time, token uint64, r Reply) {
	if then := j.asks[token]; then != nil {
		delete(j.asks, token)
		then(now, r)
	}
}

// Take returns what the driver does, in this order.
func (j *Joining) Take() []Action {
	out := j.out
	j.out = nil
	return out
}
