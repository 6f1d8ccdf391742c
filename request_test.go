package pleach

import (
	"errors"
	"testing"

	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

// What a member refuses, and why, is what a program gets to know.
func TestRefusalsAreUnderstood(t *testing.T) {
	used := &control.InUse{ID: "hedge-7", Rank: 7}
	for name, test := range map[string]struct {
		refusal, want error
		permanent     bool
	}{
		"for good":    {membership.ErrSuperseded, ErrRefused, true},
		"for now":     {membership.ErrTimeout, client.ErrNotYet, false},
		"not reached": {ErrUnreachable, ErrUnreachable, false},
		"in use":      {used, ErrIdentityInUse, true},
	} {
		if _, err := clientOf(&Config{}).Open(client.Refuse(test.refusal)); !errors.Is(err, test.want) || client.Permanent(err) != test.permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
	var version *VersionError
	if _, err := clientOf(&Config{}).Open(client.Refuse(&membership.VersionError{Version: 4})); !errors.As(err, &version) || version.Group != 4 || !client.Permanent(err) {
		t.Errorf("another version: %v", err)
	}
	if _, err := clientOf(&Config{}).Open(client.Refuse(&control.Restarted{Rank: 3, Incarnation: 7})); !errors.As(err, new(*control.Restarted)) || client.Permanent(err) {
		t.Errorf("started again: %v", err)
	}
}
