package group_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/pleach-go/pleach"
)

// pair returns two members of a group of their own.
func pair(t *testing.T) (first, second *pleach.Group) {
	t.Helper()
	first, err := pleach.Create(t.Context(), pleach.Config{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Abort() })
	second, err = pleach.Join(t.Context(), pleach.Config{ID: "second"}, first.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Abort() })
	return first, second
}

func broadcastAll(t *testing.T, g *pleach.Group, messages int) {
	t.Helper()
	for range messages {
		if err := g.Broadcast(t.Context(), []byte("message")); err != nil {
			t.Fatal(err)
		}
	}
}

// Case 63: a receipt covers what this Group has broadcast in all its memberships. Broadcasts
// that were not known to be stable when their membership ended are listed by position, in
// every call, until the caller excludes them.
func TestReceiptSpansMemberships(t *testing.T) {
	_, second := pair(t)
	broadcastAll(t, second, 5)
	if _, err := second.WaitStable(t.Context()); err != nil {
		t.Fatal(err)
	}
	broadcastAll(t, second, 3)
	view, before := second.View().Number, second.Sent()
	if err := second.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	broadcastAll(t, second, 2)
	var e *pleach.UnconfirmedError
	for range 2 {
		receipt, err := second.WaitStable(t.Context())
		if !errors.As(err, &e) || receipt.View != 0 || e.Messages() != 3 || e.Last() != before || len(e.Memberships) != 1 {
			t.Fatalf("receipt %+v, %v", receipt, err)
		}
	}
	if m := e.Memberships[0]; m.First != 6 || m.Last != 8 || m.View != view || m.Rank != second.Rank() || m.Err == nil {
		t.Errorf("unconfirmed: %+v", m)
	}
	if _, err := second.WaitStable(t.Context(), pleach.Since(6)); !errors.As(err, &e) || e.Messages() != 2 {
		t.Errorf("since position 6: %v", err)
	}
	if r, err := second.WaitStable(t.Context(), pleach.Since(e.Last())); err != nil || len(r.Members) != 2 {
		t.Errorf("since position %d: receipt %+v, %v", e.Last(), r, err)
	}
	if sent := second.Sent(); sent != 10 {
		t.Errorf("sent %d broadcasts, counted %d", 10, sent)
	}
}

// A membership whose broadcasts are all known to be stable leaves nothing to report.
func TestReceiptAfterStableMembership(t *testing.T) {
	_, second := pair(t)
	broadcastAll(t, second, 5)
	if _, err := second.WaitStable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := second.WaitStable(t.Context()); err != nil || len(r.Members) != 2 {
		t.Errorf("receipt %+v, %v", r, err)
	}
}

// A Group that joins again by itself (Config.Recovery.Rejoin) lists the broadcasts of the membership that ended.
func TestReceiptAfterAutomaticRejoin(t *testing.T) {
	_, slow, _ := outpacedBeside(t, func(slow *pleach.Group) { broadcastAll(t, slow, 3) })
	for _, err := range slow.Messages(t.Context()) {
		if _, ok := errors.AsType[*pleach.GapError](err); ok {
			break // it is a member again
		}
	}
	_, err := slow.WaitStable(t.Context())
	var e *pleach.UnconfirmedError
	if !errors.As(err, &e) || !slices.EqualFunc(e.Memberships, []error{pleach.ErrTooSlow},
		func(m pleach.Unconfirmed, cause error) bool {
			return m.First == 1 && m.Last == 3 && errors.Is(m.Err, cause)
		}) {
		t.Errorf("receipt after a membership with three broadcasts: %v", err)
	}
}
