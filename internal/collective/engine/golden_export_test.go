package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// What golden_test.go needs of this package's inside. It is a package of its own,
// because it makes calls of package collective.

// Types of messages.
const (
	GoldenMessage         = typeMessage
	GoldenProgress        = typeProgress
	GoldenProgressRequest = typeProgressRequest
	GoldenVote            = typeVote
	GoldenAccept          = typeAccept
	GoldenAccepted        = typeAccepted
	GoldenCommit          = typeCommit
	GoldenNested          = typeNested
)

// GoldenType is the type of a message.
type GoldenType = msgType

// goldenWords are the protocol's words for messages.
var goldenWords = map[msgType]string{
	typeMessage: "message", typeProgress: "progress", typeProgressRequest: "progress-query", typeAbort: "abort",
	typeVote: "agreement-vote", typeAccept: "agreement-accept", typeAccepted: "agreement-accepted",
	typeCommit:     "agreement-commit",
	typeRevocation: "revocation", typeQuery: "query", typeNested: "nested", typeGeneration: "generation",
}

// GoldenName names a message by its call, its two ends and, of a message between
// tasks, its step.
func GoldenName(call string, size, from, to int, message []byte) string {
	name := fmt.Sprintf("%s %d to %d %s", call, from, to, goldenWords[msgType(message[0])])
	if msgType(message[0]) == typeNested {
		message = message[contextIDSize:]
		name += " " + goldenWords[msgType(message[0])]
	}
	if msgType(message[0]) == typeMessage {
		h, _, _ := parseHeader(message, size)
		name += fmt.Sprintf(" step %d", h.step)
	}
	return name
}

// GoldenTimely reports whether a message depends on the call alone. Processes ask
// for progress only if a call takes long.
func GoldenTimely(message []byte) bool {
	if msgType(message[0]) == typeNested {
		message = message[contextIDSize:]
	}
	return msgType(message[0]) != typeProgress && msgType(message[0]) != typeProgressRequest
}

// goldenHeaders are messages without a body.
func goldenHeaders() map[string]header {
	headers := map[string]header{
		"progress large": {
			msgType: typeProgress, call: math.MaxUint64, step: math.MaxUint32, view: math.MaxUint32, count: math.MaxUint64,
			lowWater: math.MaxUint64,
			signature: Signature{
				Kind: Shrink, Mode: Corrected, Element: 0xff, Root: math.MaxInt32, Length: math.MaxInt64,
				Detail: math.MaxUint64,
			},
		},
		"message large": {
			msgType: typeMessage, call: 1 << 40, from: math.MaxUint32, to: math.MaxUint32 - 1, step: 70_000, view: 9, count: 300,
			lowWater: 299,
			signature: Signature{
				Kind: Reduce, Mode: Report, Element: 0x0d, Root: 2, Length: 1 << 33,
				Detail: 0x1122334455667788,
			},
		},
	}
	for t, word := range goldenWords {
		if t != typeNested {
			headers[word+" zero"] = header{msgType: t}
		}
	}
	return headers
}

// GoldenHeaders encodes messages without a body.
func GoldenHeaders() map[string][]byte {
	encoded := make(map[string][]byte)
	for name, h := range goldenHeaders() {
		encoded[name] = h.bytes()
	}
	return encoded
}

// CheckGoldenHeaders decodes them.
func CheckGoldenHeaders(t *testing.T, recorded map[string][]byte) {
	for name, want := range goldenHeaders() {
		if got, body, err := parseHeader(recorded[name], math.MaxInt); err != nil || !reflect.DeepEqual(got, want) ||
			len(body) > 0 {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}

// GoldenNotices are messages that a call sends only if something is wrong.
func GoldenNotices(t *testing.T, e *Engine, sent <-chan []byte) map[string][]byte {
	notices := map[string][]byte{
		// What stands in front of the messages of a nested communicator.
		"nested context": binary.BigEndian.AppendUint64(nil,
			uint64(typeNested)<<56|deriveContextID(deriveContextID(0, 1), 300)),
	}
	notice := func(name string, a abortNotice) {
		head, body := a.bytes()
		notices[name] = slices.Concat(head, body)
	}
	barrier := Signature{Kind: Barrier, Root: NoRoot, Length: NoLength}
	notice("abort mismatch", abortNotice{
		signature: barrier, call: 300,
		err: &MismatchError{Call: 300, Rank: 3, What: "Barrier", Other: 1, OtherWhat: "Agree"},
	})
	notice("abort error", abortNotice{signature: barrier, call: 300, err: errors.New("it hurts")})
	agree := Signature{Kind: Agree, Root: NoRoot, Length: NoLength}
	notice("abort agreement", abortNotice{signature: agree, call: 300, agreement: 7, err: errors.New("it hurts")})

	for name, n := range goldenGenerations() {
		head, body := n.bytes()
		notices[name] = slices.Concat(head, body)
	}

	e.mu.Lock()
	e.sender.askProgress(1)
	e.mu.Unlock()
	notices["progress-query"] = <-sent
	if err := e.Receive(1, bytes.Clone(notices["progress-query"])); err != nil {
		t.Error(err)
	}
	notices["progress"] = <-sent
	e.Comm().Revoke()
	notices["revocation"] = <-sent
	return notices
}

// goldenGenerations are what a process that waits is told.
func goldenGenerations() map[string]generationNotice {
	return map[string]generationNotice{
		"generation":         {what: generationBegun, view: 300, before: 7, members: []Member{{0, 1}, {1, 300}}},
		"generation waiting": {what: waitsToo, view: 300},
		"generation over":    {what: jobOver, view: 300},
	}
}

// CheckGoldenNotices decodes them.
func CheckGoldenNotices(t *testing.T, recorded map[string][]byte) {
	for name, want := range goldenGenerations() {
		h, body, err := parseHeader(recorded[name], 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := h.generationNotice(body, 2); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[string]error{
		"abort mismatch":  &MismatchError{Call: 300, Rank: 3, What: "Barrier", Other: 1, OtherWhat: "Agree"},
		"abort error":     &AbortError{Call: 300, What: "Barrier", Rank: 1, Reason: "it hurts"},
		"abort agreement": &AbortError{Call: 300, What: "Agree", Rank: 1, Reason: "it hurts"},
	} {
		h, body, err := parseHeader(recorded[name], 2)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := h.abortNotice(1, body); err != nil || !reflect.DeepEqual(got.err, want) {
			t.Errorf("%s: %v, %v, want %v", name, got.err, err, want)
		}
	}
	if h, _, _ := parseHeader(recorded["abort agreement"], 2); h.count != 7 {
		t.Errorf("abort agreement is of agreement %d", h.count)
	}
}

// CheckGoldenKinds finds messages, collectives and failure modes that are known, but
// not recorded.
func CheckGoldenKinds(t *testing.T, recorded map[string][]byte) {
	testutil.EveryKind(t, recorded, 0, func(message []byte) bool {
		_, _, err := parseHeader(message, math.MaxInt)
		return err == nil
	})
	var first, kinds, modes [256]bool
	for name, message := range recorded {
		first[message[0]] = true
		if msgType(message[0]) != typeNested && !strings.HasSuffix(name, "large") {
			kinds[message[1]], modes[message[3]] = true, true
		}
	}
	for m := typeMessage; m <= typeGeneration; m++ {
		if !first[m] {
			t.Errorf("no message of type %d is recorded", m)
		}
	}
	for k := range Kind(math.MaxUint8) {
		if !kinds[k] && !strings.HasPrefix(k.String(), "collective ") {
			t.Errorf("no message of %v is recorded", k)
		}
	}
	for m := range FailureMode(math.MaxUint8) {
		if !modes[m] && !strings.HasPrefix(m.String(), "failure mode ") {
			t.Errorf("no message of a call in mode %v is recorded", m)
		}
	}
}
