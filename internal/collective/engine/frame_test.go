package engine

import (
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// golden are messages of every type and their bytes on the wire. A change of the bytes
// is a change of the protocol: processes of two versions would not understand each other.
func golden() map[string]string {
	sum := Signature{Kind: Allreduce, Mode: Report, Element: 14, Root: NoRoot, Length: 7, Detail: 0x1122334455667788}
	agree := Signature{Kind: Agree, Root: NoRoot, Length: NoLength}
	join := func(head, body []byte) string { return hex.EncodeToString(slices.Concat(head, body)) }
	abort := func(a abortNotice) string { return join(a.bytes()) }
	phase := func(p msgType, call uint64) string {
		m := agreementMessage{
			phase: p, signature: agree, call: call, lowWater: 6, number: 2,
			vote: vote{view: 4, accepted: p != typeVote, proposal: proposal{10, 11, 12}},
		}
		return join(m.bytes())
	}
	progress := progressReport{last: sum, next: 9, agreements: 3, view: 4, finished: 8, lowWater: 6}
	request := progress
	request.request = true
	message := taskMessage{signature: sum, call: 9, envelope: envelope{65, 2, 3}, view: 4, finishedByAll: 5, lowWater: 6}
	holding := progress
	holding.holds, holding.firstHeld = true, 7
	hold := &HoldError{
		Call: 8, What: "Barrier", View: 4, Rank: 1, Holder: 2, First: 5, Bytes: 9, MaxCalls: 10,
		MaxBytes: 11,
	}
	other := errors.New("no Restore was given")
	return map[string]string{
		// message
		join(message.append(nil),
			nil): "01060e01ffffffff0000000000000009000000000000000700000002000000030000004100000004000000000000000500000000000000061122334455667788",
		// progress, a request for it, and that of a process that holds
		join(progress.bytes()): "02060e01ffffffff0000000000000009000000000000000700000000000000000000000300000004000000000000000800000000000000061122334455667788",
		join(request.bytes()):  "03060e01ffffffff0000000000000009000000000000000700000000000000000000000300000004000000000000000800000000000000061122334455667788",
		join(holding.bytes()):  "02060e01ffffffff00000000000000090000000000000007000000000000000000000003000000040000000000000008000000000000000611223344556677880000000000000007",
		// abort of a call, for a mismatch, a hold and another reason, and of an Agree
		abort(abortNotice{sum, 8, 0, 6, &MismatchError{
			Call: 8, Rank: 1, What: "Barrier", Other: 2,
			OtherWhat: "Agree",
		}}): "04060e01ffffffff00000000000000080000000000000007000000000000000000000000000000000000000000000000000000000000000611223344556677880100000001000000074261727269657200000002000000054167726565",
		abort(abortNotice{
			sum, 8, 0, 6,
			hold,
		}): "04060e01ffffffff00000000000000080000000000000007000000000000000000000000000000000000000000000000000000000000000611223344556677880400000007426172726965720000000000000004000000010000000200000000000000050000000000000009000000000000000a000000000000000b",
		abort(abortNotice{
			sum, 8, 0, 6,
			other,
		}): "04060e01ffffffff000000000000000800000000000000070000000000000000000000000000000000000000000000000000000000000006112233445566778802000000146e6f20526573746f72652077617320676976656e",
		abort(abortNotice{
			agree, 7, 3, 6,
			other,
		}): "040b0000ffffffff0000000000000007ffffffffffffffff0000000000000000000000000000000000000000000000030000000000000006000000000000000002000000146e6f20526573746f72652077617320676976656e",
		abort(abortNotice{
			agree, unnumbered, 3, 6,
			other,
		}): "040b0000ffffffffffffffffffffffffffffffffffffffff0000000000000000000000000000000000000000000000030000000000000006000000000000000002000000146e6f20526573746f72652077617320676976656e",
		// vote, accept, accepted, commit, and a vote of a process that has diverged
		phase(typeVote, 7):          "050b0000ffffffff0000000000000007ffffffffffffffff000000000000000000000000000000040000000000000000000000000000000600000000000000000000000000000002000000000000000a000000000000000b000000000000000c00",
		phase(typeAccept, 7):        "060b0000ffffffff0000000000000007ffffffffffffffff000000000000000000000000000000040000000000000000000000000000000600000000000000000000000000000002000000000000000a000000000000000b000000000000000c01",
		phase(typeAccepted, 7):      "070b0000ffffffff0000000000000007ffffffffffffffff000000000000000000000000000000040000000000000000000000000000000600000000000000000000000000000002000000000000000a000000000000000b000000000000000c01",
		phase(typeCommit, 7):        "080b0000ffffffff0000000000000007ffffffffffffffff000000000000000000000000000000040000000000000000000000000000000600000000000000000000000000000002000000000000000a000000000000000b000000000000000c01",
		phase(typeVote, unnumbered): "050b0000ffffffffffffffffffffffffffffffffffffffff000000000000000000000000000000040000000000000000000000000000000600000000000000000000000000000002000000000000000a000000000000000b000000000000000c00",
		// query
		join((&query{call: 9, view: 4, lowWater: 6}).bytes(),
			nil): "0a000000000000000000000000000009000000000000000000000000000000000000000000000004000000000000000000000000000000060000000000000000",
		// revocation
		join((&revocationNotice{by: 1, view: 4, lowWater: 6}).bytes(),
			nil): "09000000000000000000000000000000000000000000000000000001000000000000000000000004000000000000000000000000000000060000000000000000",
	}
}

func TestBytesOnTheWire(t *testing.T) {
	for got, want := range golden() {
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		b, _ := hex.DecodeString(got)
		if h, _, err := parseHeader(b, 4); err != nil || !slices.Equal(h.bytes(), b[:headerSize]) {
			t.Errorf("%s is read as %+v: %v", got, h, err)
		}
	}
	if a, b := deriveContextID(0, 3), deriveContextID(77, 1); a != 9038781776617292 || b != 68812073102855441 {
		t.Errorf("context IDs are %d and %d", a, b)
	}
}

// What is read is what was written.
func TestMessagesAreReadAsWritten(t *testing.T) {
	s := Signature{Kind: Agree, Root: NoRoot, Length: NoLength, Detail: 9}
	read := func(b []byte) *header {
		h, _, err := parseHeader(b, 8)
		if err != nil {
			t.Fatal(err)
		}
		return &h
	}
	m := taskMessage{s, 1, envelope{2, 3, 4}, 5, 6, 7}
	if got := read(m.append(nil)).taskMessage(); got != m {
		t.Errorf("%+v, want %+v", got, m)
	}
	p := progressReport{true, s, 1, 2, 3, 4, 5, true, 6}
	head, body := p.bytes()
	if got, err := read(head).progressReport(body); err != nil || got != p {
		t.Errorf("%+v, want %+v: %v", got, p, err)
	}
	a := agreementMessage{typeAccept, s, 1, 2, 3, vote{4, true, proposal{5, 6, 7}}}
	head, body = a.bytes()
	if got, err := read(head).agreementMessage(body); err != nil || got != a {
		t.Errorf("%+v, want %+v: %v", got, a, err)
	}
	for _, reason := range []error{
		&MismatchError{1, 2, 3, "x", "y"}, &DivergedError{1, "x", 2, 3, 4, 5}, &HoldError{1, "x", 2, 3, 4, 5, 6, 7, 8},
	} {
		n := abortNotice{s, 1, 2, 3, reason}
		head, body = n.bytes()
		if got, err := read(head).abortNotice(5, body); err != nil || !reflect.DeepEqual(got, n) {
			t.Errorf("%+v, want %+v: %v", got, n, err)
		}
	}
}
