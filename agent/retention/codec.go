package retention

import (
	"encoding/binary"
	"errors"
	"time"
)

// ErrMalformed is returned for bytes that are no message.
var ErrMalformed = errors.New("the bytes are no message of a log")

// The flags of an encoded message.
const (
	direct = 1 << iota
	toFleet
	fromStart // of an incarnation, which is behind the other numbers
)

// Append encodes a message, as files and other agents get it.
func (m *Message) Append(b []byte) []byte {
	flags := uint64(0)
	if m.Direct {
		flags |= direct
	}
	if m.Fleet {
		flags |= toFleet
	}
	if m.Incarnation > 0 {
		flags |= fromStart
	}
	for _, n := range []uint64{flags, uint64(m.From + 1), m.View, m.Index, m.Missing, uint64(m.Time.UnixNano())} {
		b = binary.AppendUvarint(b, n)
	}
	if m.Incarnation > 0 {
		b = binary.AppendUvarint(b, m.Incarnation)
	}
	for _, text := range []string{m.Topic, m.FromID, m.Zone, m.Gap} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return append(b, m.Data...)
}

// maxRank bounds the rank of a sender.
const maxRank = 1 << 31

// Decode decodes a message. Its data is a part of the bytes.
func Decode(b []byte) (m Message, err error) {
	var numbers [7]uint64
	for i := range numbers {
		if i == 6 && numbers[0]&fromStart == 0 {
			break // messages of earlier versions have none
		}
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return m, ErrMalformed
		}
		numbers[i], b = n, b[size:]
	}
	var texts [4]string
	for i := range texts {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return m, ErrMalformed
		}
		texts[i], b = string(b[size:size+int(n)]), b[size+int(n):]
	}
	if numbers[0] > direct|toFleet|fromStart || numbers[1] > maxRank {
		return m, ErrMalformed
	}
	return Message{
		Direct: numbers[0]&direct != 0, Fleet: numbers[0]&toFleet != 0, From: int(numbers[1]) - 1, View: numbers[2],
		Index: numbers[3], Incarnation: numbers[6], Missing: numbers[4], Time: time.Unix(0, int64(numbers[5])),
		Topic: texts[0], FromID: texts[1], Zone: texts[2], Gap: texts[3], Data: b,
	}, nil
}
