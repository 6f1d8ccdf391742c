package broadcast

import "github.com/pleach-go/pleach/protocol"

// Body is the content of a broadcast's messages except the payload, which belongs
// to the driver. It is kept small: a simulated broadcast on a million processes
// has millions of bodies in flight.
type Body struct {
	Kind Kind
	// Clock is the sender's virtual time (gossip until a time), its round
	// (gossip for a number of rounds) or the attempt (restarting broadcast).
	Clock int32
	// Known lists ranks a message tells about: live processes (failure-proof
	// correction) or descendants (restarting broadcast). It is shared between
	// messages and never changed once sent.
	Known *[]protocol.Rank
}

// Kind tells apart the messages of one phase.
type Kind uint8

// The kinds of messages.
const (
	// Payload is a dissemination message: here is the payload, pass it on.
	Payload Kind = iota
	// Leftward is a correction message sent towards lower ranks.
	Leftward
	// Rightward is a correction message sent towards higher ranks.
	Rightward
	// SOS is failure-proof correction's last resort: a message to every process.
	SOS
	// Ack says that the sender's whole subtree has the payload.
	Ack
	// Nack says that a process of the sender's subtree has died.
	Nack
)

// Message and Action are the protocol's types with a broadcast's body.
type (
	// Message is a broadcast message.
	Message = protocol.Message[Body]
	// Action is what a broadcast machine wants its driver to do.
	Action = protocol.Action[Body]
)
