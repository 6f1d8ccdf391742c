package control

import (
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Names of golden frames belong to the protocol and not to the code: code may be
// renamed, frames may not change.

func goldenRequests() map[string]Request {
	joiner := membership.Member{
		Identity: "hedge-7", Address: "10.0.0.7:7000", Domain: "rack 3", Nonce: 0x1122334455667788,
		Version: 5,
	}
	candidate := founding.Candidate{
		ID: joiner.Identity, Address: joiner.Address, Domain: joiner.Domain,
		Nonce: joiner.Nonce, Version: 5,
	}
	return map[string]Request{
		"view-query":         View{},
		"join-request zero":  Join{},
		"join-request":       Join{joiner, false},
		"join-request large": Join{membership.Member{Identity: "é", Nonce: math.MaxUint64}, true},
		"progress-query":     Progress{},
		"confirm-request":    Confirm{joiner},
		"founding-request": Founding{founding.Request{
			From: candidate, Expect: 3, Promise: 9, Term: 1 << 40,
			Group: "10.0.0.1:7000",
		}},
		"force-request":         Force{300, []protocol.Rank{1, 8}},
		"catch-up-request":      CatchUp{300, "10.0.0.7:7000"},
		"decisions-query":       Decisions{},
		"raise-request":         Raise{6},
		"evict-request":         Evict{8, 1 << 40},
		"introduction-question": Introduce{Question{From: Contact{ID: "hedge-7", Address: "10.0.0.7:7000"}, View: 300}},
		"compare-request": Compare{
			Contact{ID: "hedge-7", Address: "10.0.0.7:7000"},
			Settings{{"Shape", "binomial"}, {MaxMessage, "1048576"}},
		},
	}
}

func TestGoldenRequests(t *testing.T) {
	requests := make(map[string][]byte)
	for name, r := range goldenRequests() {
		requests[name] = Encode(r)
	}
	requests = testutil.Golden(t, "testdata/requests.golden", requests)
	for name, want := range goldenRequests() {
		if r, err := Decode(requests[name]); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, r, err, want)
		}
	}
	testutil.EveryKind(t, requests, 0, func(b []byte) bool {
		_, err := Decode(b)
		return err == nil
	})
}

// goldenProgress is the JSON of a progress report.
const goldenProgress = "5b7b2272616e6b223a312c2273697a65223a342c2276696577223a322c2263616c6c73223a372c2261677265656d656e7473223a332c227461736b73223a5b312c335d2c226661696c6564223a5b335d2c227265766f6b6564223a747275652c22646f696e67223a5b7b2263616c6c223a362c226e616d65223a22416c6c726564756365222c2277686174223a22416c6c7265647563655b666c6f617436345d222c227365636f6e6473223a312e352c2277616974735f666f72223a5b302c325d7d5d2c226c617374223a7b2263616c6c223a352c2261677265656d656e74223a332c226e616d65223a224167726565222c2277686174223a224167726565222c227365636f6e6473223a302e32352c226572726f72223a22746f6f206c617465227d7d2c7b22776f726c64223a226b3378222c2272616e6b223a302c2273697a65223a302c2276696577223a302c2263616c6c73223a302c2261677265656d656e7473223a302c227461736b73223a5b5d7d5d"

// A member's answers to a view query and to a request to join.
func TestGoldenReplies(t *testing.T) {
	view := membership.View{Number: 300, Version: 4, Slots: 9, Members: membership.MembersOf(
		membership.Member{Rank: 2, Identity: "two", Address: "10.0.0.2:7000", Domain: "rack", Incarnation: 5, Version: 4},
		membership.Member{Rank: 8, Identity: "eight", Address: "10.0.0.8:7000", Incarnation: 6, Version: 5},
	)}
	start := []membership.Position{{Root: 0, Incarnation: 5, Next: 99}, {Root: 8, Incarnation: 6, Next: 1 << 40}}
	small := membership.View{
		Number: 1, Slots: 1,
		Members: membership.MembersOf(membership.Member{Identity: "a", Incarnation: 1}),
	}
	lost := &Lost{Reachable: 1, Needed: 2, Unreachable: []protocol.Rank{2}}
	used := &InUse{
		ID: "hedge-7", Rank: 7, Address: "10.0.0.7:7000", Incarnation: 3, View: 12,
		Since: time.UnixMilli(1 << 40),
	}
	progress, err := hex.DecodeString(goldenProgress)
	if err != nil {
		t.Fatal(err)
	}
	replies := testutil.Golden(t, "testdata/replies.golden", map[string][]byte{
		"join-reply":        (&Admission{View: view, Rank: 8, Start: start}).Encode(),
		"view-reply":        (&ViewReply{View: small}).Encode(),
		"view-reply lost":   (&ViewReply{View: view, Lost: lost}).Encode(),
		"join-reply refuse": Refuse(errors.New("go away")),
		"join-reply later":  Refuse(membership.ErrTimeout)[:1], // the text is for people
		"join-reply reach":  Refuse(&Refusal{Status: Unreachable})[:1],
		"join-reply in use": Refuse(used),
		"join-reply again":  Refuse(&Restarted{3, 1 << 40}),
		"join-reply old":    Refuse(&membership.VersionError{Version: 4}),
		"evict-reply lost":  Refuse(&membership.QuorumError{View: 300, Reachable: 1, Members: 3, Needed: 2}),
		"progress-reply":    Accept(progress),
	})
	body, err := Open(replies["join-reply"])
	if err != nil {
		t.Fatal(err)
	}
	if a, err := DecodeAdmission(body); err != nil || !a.View.Equal(&view) || a.Rank != 8 ||
		!reflect.DeepEqual(a.Start, start) {
		t.Errorf("join-reply: %+v, %v", a, err)
	}
	if r, err := DecodeView(replies["view-reply"][1:]); err != nil || !r.View.Equal(&small) || r.Lost != nil {
		t.Errorf("view-reply: %+v, %v", r, err)
	}
	if r, err := DecodeView(replies["view-reply lost"][1:]); err != nil || !reflect.DeepEqual(r.Lost, lost) {
		t.Errorf("view-reply lost: %+v, %v", r, err)
	}
	for name, want := range map[string]error{
		"join-reply refuse": &Refusal{Refused, "go away"},
		"join-reply later":  &Refusal{Status: Retry},
		"join-reply reach":  &Refusal{Status: Unreachable},
		"join-reply in use": used,
		"join-reply again":  &Restarted{3, 1 << 40},
		"join-reply old":    &Version{4},
		"evict-reply lost":  &NoQuorum{300, 1, 3, 2},
	} {
		if _, err := Open(replies[name]); !reflect.DeepEqual(err, want) {
			t.Errorf("%s: %+v, want %+v", name, err, want)
		}
	}
}

// A reply comes from any process that listens at the given address.
func FuzzAdmission(f *testing.F) {
	view := membership.View{
		Number: 1, Slots: 1,
		Members: membership.MembersOf(membership.Member{Identity: "a", Incarnation: 1}),
	}
	f.Add((&Admission{View: view}).Encode())
	f.Add(Refuse(membership.ErrFull))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := Open(b)
		if err != nil {
			return
		}
		if a, err := DecodeAdmission(body); err == nil && a.View.Members.Len() == 0 {
			t.Error("a welcome into a view of nobody")
		}
		_, _ = DecodeView(body)
		_, _ = DecodeIntroduction(body)
	})
}

// A request comes from anybody.
func FuzzRequest(f *testing.F) {
	for _, r := range goldenRequests() {
		f.Add(Encode(r))
		f.Add(append(Encode(r), 17)) // more than the request
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		again := Encode(r)
		switch r.(type) {
		case View, Progress, Confirm: // they have fields that they do not use
			if same, err := Decode(again); err != nil || !reflect.DeepEqual(same, r) {
				t.Errorf("%x is understood as %+v, and then as %+v, %v", b, r, same, err)
			}
		default:
			if string(again) != string(b) {
				t.Errorf("%x is understood as %x", b, again)
			}
		}
	})
}
