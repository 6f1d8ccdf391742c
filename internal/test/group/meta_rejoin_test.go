package group_test

import (
	"errors"
	"testing"

	"github.com/pleach-go/pleach"
)

// SetMeta spans memberships: a process that joins again has the meta that it had last.
func TestMetaSpansMemberships(t *testing.T) {
	_, slow, _ := outpacedBeside(t, func(slow *pleach.Group) {
		if err := slow.SetMeta(t.Context(), "changed"); err != nil {
			t.Fatal(err)
		}
	})
	for _, err := range slow.Messages(t.Context()) {
		if _, ok := errors.AsType[*pleach.GapError](err); ok {
			break // it is a member again
		}
	}
	if meta := slow.Self().Meta; meta != "changed" {
		t.Errorf("meta %q", meta)
	}
}
