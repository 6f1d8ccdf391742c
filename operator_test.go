package pleach

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A process tells which calls it is in. A member that is in no World refuses.
func TestTellWork(t *testing.T) {
	w, err := NewWorld(t.Context(), Config{Group: "alone", Addresses: testutil.FreeAddresses(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := collective.Barrier(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	b := w.group.session().requests.encodeProgress()
	var worlds []collective.Progress
	if b[0] != byte(control.Accepted) || json.Unmarshal(b[1:], &worlds) != nil || len(worlds) != 1 {
		t.Fatalf("%q", b)
	}
	if p := worlds[0]; p.Calls != 1 || p.Last == nil || p.Last.Name != "Barrier" || len(p.Current) != 0 ||
		len(p.Tasks) != 1 {
		t.Errorf("%+v", p)
	}
	g, err := Create(t.Context(), Config{Group: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if b := g.session().requests.encodeProgress(); b[0] != byte(control.Refused) ||
		!strings.Contains(string(b), "not in a World") {
		t.Errorf("%q", b)
	}
}

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
		if _, err := clientOf(&Config{}).Open(client.Refuse(test.refusal)); !errors.Is(err, test.want) ||
			client.Permanent(err) != test.permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
	var version *VersionError
	if _, err := clientOf(&Config{}).Open(client.Refuse(&membership.VersionError{Version: 4})); !errors.As(err,
		&version) || version.Group != 4 || !client.Permanent(err) {
		t.Errorf("another version: %v", err)
	}
	if _, err := clientOf(&Config{}).Open(client.Refuse(&control.Restarted{Rank: 3, Incarnation: 7})); !errors.As(err,
		new(*control.Restarted)) || client.Permanent(err) {
		t.Errorf("started again: %v", err)
	}
}
