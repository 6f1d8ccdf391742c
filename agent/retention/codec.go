package retention

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"
)

// ErrMalformed is returned for bytes that are no message.
var ErrMalformed = errors.New("the bytes are no message of a log")

// The flags of an encoded message.
const (
	direct = 1 << iota
	toFleet
	fromStart // of an incarnation, which is behind the other numbers
	headed    // with a header, which is behind the texts
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
	if len(m.Header) > 0 {
		flags |= headed
	}
	for _, n := range []uint64{flags, uint64(m.From + 1), m.View, m.Index, m.Missing, uint64(m.Time.UnixNano())} {
		b = binary.AppendUvarint(b, n)
	}
	if m.Incarnation > 0 {
		b = binary.AppendUvarint(b, m.Incarnation)
	}
	for _, text := range []string{m.Topic, m.FromID, m.Zone, m.Gap} {
		b = appendText(b, text)
	}
	if len(m.Header) > 0 {
		b = binary.AppendUvarint(b, uint64(len(m.Header)))
		for _, key := range slices.Sorted(maps.Keys(m.Header)) {
			b = appendText(appendText(b, key), m.Header[key])
		}
	}
	return append(b, m.Data...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// maxPairs bounds the pairs of a header that is read.
const maxPairs = 1024

// cutHeader reads a header. It returns what follows.
func (m *Message) cutHeader(b []byte) ([]byte, error) {
	pairs, size := binary.Uvarint(b)
	if size <= 0 || pairs == 0 || pairs > maxPairs {
		return nil, ErrMalformed
	}
	b = b[size:]
	m.Header = make(map[string]string)
	for range pairs {
		var pair [2]string
		for i := range pair {
			var ok bool
			pair[i], b, ok = cutText(b)
			if !ok {
				return nil, ErrMalformed
			}
		}
		m.Header[pair[0]] = pair[1]
	}
	return b, nil
}

// cutText reads a text. It reports false if the text is cut off.
func cutText(b []byte) (text string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	return string(b[size : size+int(n)]), b[size+int(n):], true
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
		var ok bool
		texts[i], b, ok = cutText(b)
		if !ok {
			return m, ErrMalformed
		}
	}
	if numbers[0] > direct|toFleet|fromStart|headed || numbers[1] > maxRank {
		return m, ErrMalformed
	}
	m = Message{
		Direct: numbers[0]&direct != 0, Fleet: numbers[0]&toFleet != 0, From: int(numbers[1]) - 1, View: numbers[2],
		Index: numbers[3], Incarnation: numbers[6], Missing: numbers[4], Time: time.Unix(0, int64(numbers[5])),
		Topic: texts[0], FromID: texts[1], Zone: texts[2], Gap: texts[3],
	}
	if numbers[0]&headed != 0 {
		b, err = m.cutHeader(b)
	}
	m.Data = b
	return m, err
}
