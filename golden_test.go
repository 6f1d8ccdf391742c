package pleach

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/testutil"
)

// Names of golden frames belong to the protocol and not to the code: code may be
// renamed, frames may not change.

type goldenRequest struct {
	kind    uint8
	sender  membership.Member
	replace bool
}

func goldenRequests() map[string]goldenRequest {
	joiner := membership.Member{Identity: "hedge-7", Address: "10.0.0.7:7000", Domain: "rack 3", Nonce: 0x1122334455667788, Version: 5}
	return map[string]goldenRequest{
		"view-query":         {requestView, membership.Member{}, false},
		"join-request zero":  {requestJoin, membership.Member{}, false},
		"join-request":       {requestJoin, joiner, false},
		"join-request large": {requestJoin, membership.Member{Identity: "é", Nonce: math.MaxUint64}, true},
		"progress-query":     {requestProgress, membership.Member{}, false},
		"confirm-request":    {requestConfirm, joiner, false},
	}
}

func TestGoldenFrames(t *testing.T) {
	requests := make(map[string][]byte)
	for name, r := range goldenRequests() {
		requests[name] = encodeRequest(r.kind, &r.sender, r.replace)
	}
	requests = testutil.Golden(t, "testdata/requests.golden", requests)
	for name, want := range goldenRequests() {
		if kind, m, replace, err := decodeRequest(requests[name]); err != nil || kind != want.kind || m != want.sender || replace != want.replace {
			t.Errorf("%s: kind %d, %+v, %v, want %+v", name, kind, m, err, want)
		}
	}
	testutil.EveryKind(t, requests, 0, func(b []byte) bool {
		_, _, _, err := decodeRequest(b)
		return err == nil
	})
}

// A member's answers to a view query and to a request to join.
func TestGoldenReplies(t *testing.T) {
	view := membership.View{Number: 300, Version: 4, Slots: 9, Members: membership.MembersOf(
		membership.Member{Rank: 2, Identity: "two", Address: "10.0.0.2:7000", Domain: "rack", Incarnation: 5, Version: 4},
		membership.Member{Rank: 8, Identity: "eight", Address: "10.0.0.8:7000", Incarnation: 6, Version: 5},
	)}
	start := []membership.Position{{Root: 0, Incarnation: 5, Next: 99}, {Root: 8, Incarnation: 6, Next: 1 << 40}}
	small := membership.View{Number: 1, Slots: 1, Members: membership.MembersOf(membership.Member{Identity: "a", Incarnation: 1})}
	lost := &QuorumError{View: 300, Members: 2, Reachable: 1, Needed: 2, Unreachable: []int{2}}
	inUse := &IdentityInUseError{"hedge-7", 7, "10.0.0.7:7000", 3, 12, time.UnixMilli(1 << 40)}
	progress, err := json.Marshal(goldenProgress())
	if err != nil {
		t.Fatal(err)
	}
	replies := testutil.Golden(t, "testdata/replies.golden", map[string][]byte{
		"join-reply":        encodeReply(&member.JoinAnswer{View: view, Rank: 8, Start: start}),
		"view-reply":        encodeView(small, nil),
		"view-reply lost":   encodeView(view, lost),
		"join-reply refuse": encodeRefusal(errors.New("go away")),
		"join-reply later":  encodeRefusal(membership.ErrTimeout)[:1], // the text is for people
		"join-reply reach":  encodeRefusal(ErrUnreachable)[:1],
		"join-reply in use": encodeInUse(inUse),
		"join-reply again":  encodeRestarted(3, 1<<40),
		"join-reply old":    encodeVersion(&membership.VersionError{Version: 4}),
		"progress-reply":    append([]byte{replyAccepted}, progress...),
	})

	if i, err := decodeReply(replies["join-reply"]); err != nil || !i.view.Equal(&view) || i.rank != 8 || !reflect.DeepEqual(i.start, start) {
		t.Errorf("join-reply: %+v, %v", i, err)
	}
	if v, err := decodeView(replies["view-reply"][1:]); err != nil || !reflect.DeepEqual(&v, viewOf(&small)) {
		t.Errorf("view-reply: %+v, %v", v, err)
	}
	if v, err := decodeView(replies["view-reply lost"][1:]); err != nil || !reflect.DeepEqual(v.Err, lost) {
		t.Errorf("view-reply lost: %+v, %v", v, err)
	}
	if _, err := decodeReply(replies["join-reply in use"]); !reflect.DeepEqual(err, inUse) || !errors.Is(err, ErrRefused) || !errors.Is(err, ErrIdentityInUse) {
		t.Errorf("join-reply in use: %v", err)
	}
	var version *VersionError
	if _, err := decodeReply(replies["join-reply old"]); !errors.As(err, &version) || version.Group != 4 || !permanent(err) {
		t.Errorf("join-reply old: %v", err)
	}
	if _, err := decodeReply(replies["join-reply refuse"]); !errors.Is(err, ErrRefused) {
		t.Errorf("join-reply refuse: %v", err)
	}
	if _, err := decodeReply(replies["join-reply later"]); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("join-reply later: %v", err)
	}
	var restarted *restartedError
	if _, err := decodeReply(replies["join-reply again"]); !errors.As(err, &restarted) || *restarted != (restartedError{3, 1 << 40}) || permanent(err) {
		t.Errorf("join-reply again: %v", err)
	}
	var told []collective.Progress
	b := replies["progress-reply"]
	if err := json.Unmarshal(b[1:], &told); err != nil || b[0] != replyAccepted || !reflect.DeepEqual(told, goldenProgress()) {
		t.Errorf("progress-reply: %+v, %v", told, err)
	}
}

func goldenProgress() []collective.Progress {
	return []collective.Progress{
		{
			Rank: 1, Size: 4, View: 2, Calls: 7, Agreements: 3, Tasks: []int{1, 3}, Failed: []int{3}, Revoked: true,
			Current: []collective.CallStatus{{Call: 6, Name: "Allreduce", What: "Allreduce[float64]", Seconds: 1.5, WaitsFor: []int{0, 2}}},
			Last:    &collective.CallStatus{Call: 5, Agreement: 3, Name: "Agree", What: "Agree", Seconds: 0.25, Error: "too late"},
		},
		{World: "k3x", Tasks: []int{}},
	}
}
