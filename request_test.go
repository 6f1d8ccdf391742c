package pleach

import (
	"errors"
	"testing"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/membership"
)

// What a member refuses, and why, is what a program gets to know.
func TestRefusalsAreUnderstood(t *testing.T) {
	used := &control.InUse{ID: "hedge-7", Rank: 7}
	for name, test := range map[string]struct {
		refusal, want error
		permanent     bool
	}{
		"for good":    {membership.ErrSuperseded, ErrRefused, true},
		"for now":     {membership.ErrTimeout, errNotYet, false},
		"not reached": {ErrUnreachable, ErrUnreachable, false},
		"in use":      {used, ErrIdentityInUse, true},
	} {
		if _, err := openReply(refuse(test.refusal)); !errors.Is(err, test.want) || permanent(err) != test.permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
	var version *VersionError
	if _, err := openReply(refuse(&membership.VersionError{Version: 4})); !errors.As(err, &version) || version.Group != 4 || !permanent(err) {
		t.Errorf("another version: %v", err)
	}
	if _, err := openReply(refuse(&control.Restarted{Rank: 3, Incarnation: 7})); !errors.As(err, new(*control.Restarted)) || permanent(err) {
		t.Errorf("started again: %v", err)
	}
}
