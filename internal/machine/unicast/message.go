package unicast

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/header"
)

// kind is what a message on a channel is.
type kind uint8

const (
	// send is a message of a program.
	send kind = iota + 1
	// credit says how much of what the receiver has sent the program has taken.
	credit
	// request asks for a reply.
	request
	// reply answers a request.
	reply
	// cancel says that the reply to a request is not needed any more.
	cancel
	// state is the state of the group where a view begins.
	state
	// arrival says when and how a marked broadcast of the receiver has arrived.
	arrival
	// headedSend and headedRequest are a send and a request with a header. In memory they are
	// of those kinds, and header is not empty.
	headedSend
	headedRequest
)

// Status is how a request has ended.
type Status uint8

const (
	// OK means that the handler has returned a reply.
	OK Status = iota
	// Failed means that the handler has returned an error, whose text is the reply.
	Failed
	// NoHandler means that the receiver has no handler of that name.
	NoHandler
	// Overloaded means that the receiver has too many requests already.
	Overloaded
	// Offered means that no member has the state of the group, and that the sender offers
	// one of that number.
	Offered
	// Chosen means that the group begins with the state that the receiver has offered.
	Chosen
)

// message is one message on a channel.
//
// Layout, big endian: kind 1; headedSend and headedRequest: length of the header 2, header, then as
// without it; credit: number 8; request: number 8, length of the name 1, name; reply and state:
// number 8, status 1; cancel and arrival: number 8. Then the body, where there is one.
type message struct {
	kind   kind
	number uint64 // of the request, the view or the broadcast, or the bytes that were taken
	status Status
	header header.Encoded
	name   string
	body   []byte
}

// MaxName is the longest name of a handler, in bytes.
const MaxName = 255

// ErrMalformed is wrapped by every error about a message that no member would send.
var ErrMalformed = errors.New("direct: malformed message")

// appendHead appends the message without its body.
func (m *message) appendHead(b []byte) []byte {
	b = append(b, byte(m.kind))
	if m.header != "" {
		b[len(b)-1] = byte(headed(m.kind))
		b = binary.BigEndian.AppendUint16(b, uint16(len(m.header)))
		b = append(b, m.header...)
	}
	if m.kind != send {
		b = binary.BigEndian.AppendUint64(b, m.number)
	}
	switch m.kind {
	case request:
		b = append(append(b, byte(len(m.name))), m.name...)
	case reply, state:
		b = append(b, byte(m.status))
	}
	return b
}

// headed returns the kind on the wire of a message with a header.
func headed(k kind) kind {
	if k == request {
		return headedRequest
	}
	return headedSend
}

// unheaded returns the kind in memory.
func unheaded(k kind) kind {
	if k == headedRequest {
		return request
	}
	return send
}

// parseHeader decodes a header, and returns what follows.
func (m *message) parseHeader(b []byte) (rest []byte, err error) {
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return nil, fmt.Errorf("%w: no header", ErrMalformed)
	}
	end := 2 + int(binary.BigEndian.Uint16(b))
	if !header.Valid(b[2:end]) {
		return nil, fmt.Errorf("%w: a header that is not allowed", ErrMalformed)
	}
	m.header = header.Encoded(b[2:end])
	return b[end:], nil
}

// parse decodes a message. Its body points into b.
func parse(b []byte) (m message, err error) {
	if len(b) == 0 || b[0] < byte(send) || b[0] > byte(headedRequest) {
		return m, fmt.Errorf("%w: kind %x", ErrMalformed, b[:min(len(b), 1)])
	}
	m.kind, b = kind(b[0]), b[1:]
	if m.kind >= headedSend {
		m.kind = unheaded(m.kind)
		b, err = m.parseHeader(b)
		if err != nil {
			return m, err
		}
	}
	if m.kind != send {
		if len(b) < 8 {
			return m, fmt.Errorf("%w: no number", ErrMalformed)
		}
		m.number, b = binary.BigEndian.Uint64(b), b[8:]
	}
	switch m.kind {
	case request:
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return m, fmt.Errorf("%w: no name", ErrMalformed)
		}
		m.name, b = string(b[1:1+int(b[0])]), b[1+int(b[0]):]
	case reply, state:
		if len(b) == 0 || Status(b[0]) > Chosen || m.kind == reply && Status(b[0]) > Overloaded {
			return m, fmt.Errorf("%w: no status", ErrMalformed)
		}
		m.status, b = Status(b[0]), b[1:]
	case credit, cancel:
		if len(b) > 0 {
			return m, fmt.Errorf("%w: %d bytes too many", ErrMalformed, len(b))
		}
	}
	m.body = b
	return m, nil
}
