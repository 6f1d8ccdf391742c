package transfer

import (
	"encoding/binary"
	"errors"

	"github.com/pleach-go/pleach"
)

// What travels begins with a kind and the number of the copy, which its sender chooses at
// random. Broadcasts and requests have the same form.
type kind byte

const (
	offer  kind = iota + 1 // round, manifest: the copy begins, or the receiver has joined it
	chunk                  // index, data
	endRun                 // round: all chunks of the round were broadcast before
	over                   // the copy has ended, or its sender has given up
	query                  // round, incarnation of the receiver: what does it lack after the round?
)

// head is the length of what every message begins with: kind, copy and a number, which is
// a round or the index of a chunk.
const head = 1 + 8 + 4

// message is one of them. Its data is a part of what has arrived.
type message struct {
	kind      kind
	copy      uint64
	number    uint32
	data      []byte
	broadcast pleach.Message // that it has arrived with, to be released
}

// appendHead appends the head of a message.
func (m *message) appendHead(b []byte) []byte {
	b = append(b, byte(m.kind))
	b = binary.BigEndian.AppendUint64(b, m.copy)
	return binary.BigEndian.AppendUint32(b, m.number)
}

// errMessage is returned for bytes that are no message of a copy.
var errMessage = errors.New("transfer: no message of a copy")

func parseMessage(b []byte) (m message, err error) {
	if len(b) < head {
		return m, errMessage
	}
	m = message{
		kind: kind(b[0]), copy: binary.BigEndian.Uint64(b[1:]), number: binary.BigEndian.Uint32(b[9:]),
		data: b[head:],
	}
	if m.kind < offer || m.kind > query {
		return m, errMessage
	}
	return m, nil
}

// state is what a receiver has of a file.
type state byte

const (
	unknown state = iota // it has no manifest
	partial              // it lacks chunks
	done                 // it has received the file
	present              // it had the file before
	failed               // it cannot have it
)

func (s state) String() string {
	return [...]string{"unknown", "partial", "done", "present", "failed"}[s]
}

// answer is what a receiver replies.
type answer struct {
	state state
	lacks set    // if partial
	why   string // if failed
}

func (a *answer) append(b []byte) []byte {
	b = append(b, byte(a.state))
	switch a.state {
	case partial:
		b = a.lacks.append(b)
	case failed:
		b = append(b, a.why...)
	}
	return b
}

// maxWhy bounds the text of an answer.
const maxWhy = 4096

var errAnswer = errors.New("transfer: no answer of a receiver")

// parseAnswer reads the answer to a sender whose file has n chunks.
func parseAnswer(b []byte, n int) (a answer, err error) {
	if len(b) == 0 {
		return a, errAnswer
	}
	a.state, b = state(b[0]), b[1:]
	switch {
	case a.state == partial:
		a.lacks, err = parseSet(b, n)
	case a.state == failed && len(b) <= maxWhy:
		a.why = string(b)
	case a.state >= failed || len(b) > 0:
		err = errAnswer
	}
	return a, err
}
