package group_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A joiner's meta is in its first view, and that of members that begin together soon
// after. SetMeta changes it for all members in the same view.
func TestMeta(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	addresses := testutil.FreeAddresses(t, 2)
	groups := []*pleach.Group{
		start(t, pleach.Config{Addresses: addresses, Rank: 0, Meta: "zero"}),
		start(t, pleach.Config{Addresses: addresses, Rank: 1, Meta: "one"}),
	}
	third := member(t)(pleach.Join(ctx, pleach.Config{Meta: "two"}, addresses[0]))
	if m := third.Self(); m.Meta != "two" {
		t.Errorf("a joiner begins as %+v", m)
	}
	groups = append(groups, third)
	for _, changed := range []string{"two", "another", strings.Repeat("\x00long", 102), ""} {
		if err := third.SetMeta(ctx, changed); err != nil {
			t.Fatal(err)
		}
		at := third.View().Number
		for _, g := range groups {
			for v := range g.Views(ctx) {
				has := func(rank int) string {
					m, _ := v.Member(rank)
					return m.Meta
				}
				if v.Number >= at && has(2) != changed {
					t.Errorf("rank %d has %q in view %d", g.Rank(), has(2), v.Number)
				}
				if len(v.Left) > 0 {
					t.Errorf("a member with another meta is another member: %+v", v.Left)
				}
				if v.Number >= at && has(0) == "zero" && has(1) == "one" {
					break
				}
			}
		}
	}
	if err := third.SetMeta(ctx, strings.Repeat("x", 513)); err == nil {
		t.Error("a meta that is too long is accepted")
	}
	if _, err := pleach.Create(ctx, pleach.Config{Meta: strings.Repeat("x", 513)}); err == nil {
		t.Error("a meta that is too long is accepted")
	}
}
