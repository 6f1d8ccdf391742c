package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
)

// described writes events as "event: id cause, id cause".
func described(events []api.Event) string {
	var parts []string
	for _, e := range events {
		text := e.Event + ":"
		for _, m := range e.Members {
			text += fmt.Sprintf(" %s/%s", m.ID, m.Cause)
		}
		parts = append(parts, strings.TrimSuffix(text+" "+e.Reason, " "))
	}
	return strings.Join(parts, "; ")
}

// All changes of one view are one event of each kind, with their causes, and nothing is told
// twice.
func TestEventsOfViews(t *testing.T) {
	member := func(rank int, id string, incarnation uint64, meta string) pleach.Member {
		return pleach.Member{Rank: rank, ID: id, Incarnation: incarnation, Meta: meta}
	}
	a, b, c := member(0, "a", 1, "x=1"), member(1, "b", 1, ""), member(2, "c", 1, "")
	told, delegate, again := member(1, "b", 1, "y=2"), member(0, "a", 1, "x=1 backbone=h:1"), member(2, "c", 5, "")
	lost := pleach.NewView(4, 3, delegate, told, again)
	lost.Err = &pleach.QuorumError{Reachable: 1, Members: 3, Needed: 2}
	changes := func(list ...pleach.MemberChange) map[string]pleach.MemberChange {
		causes := make(map[string]pleach.MemberChange)
		for _, c := range list {
			causes[c.ID] = c
		}
		return causes
	}
	var w watch
	for _, step := range []struct {
		view   pleach.View
		causes map[string]pleach.MemberChange
		want   string
	}{
		{pleach.NewView(1, 3, a, b, c), nil, "member-join: a/joined b/joined c/joined"},
		{pleach.NewView(2, 3, delegate, told, c), nil, ""}, // the first meta, and that of a delegate
		{pleach.NewView(3, 3, delegate, member(1, "b", 1, "y=3"), c), nil, "member-update: b/changed"},
		{
			pleach.NewView(4, 3, delegate, told, again), changes(pleach.MemberChange{ID: "c", Cause: pleach.CauseJoined}),
			"member-failed: c/replaced; member-join: c/joined; member-update: b/changed",
		},
		{lost, nil, "quorum-lost: no quorum: 1 of 3 reachable, 2 needed"},
		{lost, nil, ""},
		{pleach.NewView(5, 3, delegate), changes(
			pleach.MemberChange{ID: "b", Cause: pleach.CauseLeft}, pleach.MemberChange{ID: "c", Cause: pleach.CauseSuspected},
		), "member-failed: c/suspected; member-leave: b/left; quorum-regained:"},
		{pleach.NewView(9, 3, b), nil, "member-failed: a/" + awayCause + "; member-join: b/joined"},
	} {
		if got := described(w.next(step.view, step.causes)); got != step.want {
			t.Errorf("view %d: %q, want %q", step.view.Number, got, step.want)
		}
	}
}

// A subscriber hears of members that leave, with the reason, and of those that were there
// before.
func TestEventStream(t *testing.T) {
	agents := startAll(t, 3, "tags: {role: web}\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	agents[1].stop()
	var got []string
	_ = agents[0].Messages(ctx, client.Subscription{Events: true, After: "0"}, nil, func(e client.Event) error {
		got = append(got, described([]api.Event{*e.Group}))
		if strings.HasPrefix(got[len(got)-1], api.EventLeave) {
			cancel()
		}
		return nil
	})
	if len(got) < 2 || !strings.HasPrefix(got[0], "member-join: a/joined") || got[len(got)-1] != "member-leave: b/left" {
		t.Errorf("%q", got)
	}
}
