package pleach

import (
	"errors"
	"reflect"
	"testing"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
)

// decodeReply decodes a reply to a join request.
func decodeReply(b []byte) (joinReply, error) {
	rest, err := decodeStatus(b)
	if err != nil {
		return joinReply{}, err
	}
	return decodeJoin(rest)
}

// What a member answers is what a guest understands.
func TestAnswersAreUnderstood(t *testing.T) {
	view := membership.View{Number: 7, Slots: 9, Members: membership.MembersOf(
		membership.Member{Rank: 2, Identity: "two", Address: "10.0.0.2:7000", Domain: "rack", Incarnation: 5},
		membership.Member{Rank: 8, Identity: "eight", Address: "10.0.0.8:7000", Incarnation: 6},
	)}
	start := []membership.Position{{Root: 2, Incarnation: 5, Next: 99, Holder: 8}}
	b := encodeReply(&member.JoinAnswer{View: view, Rank: 8, Start: start})
	i, err := decodeReply(b)
	if err != nil || !i.view.Equal(&view) || i.rank != 8 || !reflect.DeepEqual(i.start, start) {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := decodeReply(encodeRefusal(membership.ErrSuperseded)); !errors.Is(err, ErrRefused) {
		t.Errorf("a refusal is %v", err)
	}
	if _, err := decodeReply(encodeRefusal(membership.ErrTimeout)); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("a refusal for now is %v", err)
	}
}

// A reply comes from any process that listens at the given address.
func FuzzAnswer(f *testing.F) {
	view := membership.View{Number: 1, Slots: 1, Members: membership.MembersOf(membership.Member{Identity: "a", Incarnation: 1})}
	f.Add(encodeReply(&member.JoinAnswer{View: view}))
	f.Add(encodeRefusal(membership.ErrFull))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if i, err := decodeReply(b); err == nil && i.view.Members.Len() == 0 {
			t.Error("a welcome into a view of nobody")
		}
	})
}

// A request comes from anybody.
func FuzzRequest(f *testing.F) {
	f.Add(encodeRequest(requestJoin, &membership.Member{Identity: "me", Address: "here:1", Nonce: 3}, true))
	f.Add(encodeRequest(requestView, &membership.Member{}, false))
	f.Add([]byte{9})
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, m, replace, err := decodeRequest(b)
		if err != nil {
			return
		}
		if again := encodeRequest(kind, &m, replace); string(again) != string(b) {
			t.Errorf("%x is understood as %x", b, again)
		}
	})
}
