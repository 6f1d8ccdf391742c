package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/pleach-go/pleach/internal/base/header"
)

// Label is what a message has besides its data. The zero value is none.
//
// A message with a label begins with it: a byte with the length of the topic's name, then the
// name. If it has a header, a byte 0 precedes that, the length of the header in two bytes, big
// endian, and the header; the name may then be empty. Members that know no headers (protocol
// versions before 7) refuse the byte 0, which no topic begins with.
type Label struct {
	Topic  string
	Header header.Encoded // valid
}

// hasHeader is the first byte of a label with a header.
const hasHeader = 0

// Size returns how many bytes a label takes at the beginning of a message.
func (l Label) Size() int {
	switch {
	case l.Header != "":
		return 1 + 2 + len(l.Header) + 1 + len(l.Topic)
	case l.Topic != "":
		return 1 + len(l.Topic)
	}
	return 0
}

// append appends a label as it is at the beginning of a message.
func (l Label) append(b []byte) []byte {
	if l == (Label{}) {
		return b
	}
	if l.Header != "" {
		b = binary.BigEndian.AppendUint16(append(b, hasHeader), uint16(len(l.Header)))
		b = append(b, l.Header...)
	}
	return append(append(b, byte(len(l.Topic))), l.Topic...)
}

// splitLabel splits a message into the parts of its label and its data. It reports false if one of
// them is cut off.
func splitLabel(message []byte) (head, topic, data []byte, ok bool) {
	if len(message) > 0 && message[0] == hasHeader {
		if len(message) < 3 {
			return nil, nil, nil, false
		}
		end := 3 + int(binary.BigEndian.Uint16(message[1:]))
		if end > len(message) {
			return nil, nil, nil, false
		}
		head, message = message[3:end], message[end:]
	}
	if len(message) == 0 || len(message) < 1+int(message[0]) {
		return nil, nil, nil, false
	}
	end := 1 + int(message[0])
	return head, message[1:end], message[end:], true
}

// hasLabel reports whether a message begins with a label.
func hasLabel(message []byte) bool {
	head, topic, _, ok := splitLabel(message)
	switch {
	case !ok, message[0] == hasHeader && !header.Valid(head):
		return false
	case len(topic) == 0:
		return len(head) > 0
	}
	return ValidTopic(string(topic))
}

// cutLabel splits a message into label and data. Messages of one topic often follow each
// other, and share the name.
func (f *flow) cutLabel(message []byte) (label Label, data []byte) {
	head, topic, data, _ := splitLabel(message)
	if string(topic) != f.topic {
		f.topic = string(topic)
	}
	return Label{Topic: f.topic, Header: header.Encoded(head)}, data
}

// WriteLabeled is like Write for the first segment of a message with a label, which counts toward
// MaxMessage.
func (m *Member) WriteLabeled(label Label, payload []byte, remaining int) error {
	valid := label.Topic == "" && label.Header != "" || ValidTopic(label.Topic)
	if !valid || m.own.writing {
		return fmt.Errorf("stream: no message of topic %q can begin", label.Topic)
	}
	return m.write(label, payload, remaining)
}
