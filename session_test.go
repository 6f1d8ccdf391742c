package pleach

// Tests of a session that have to see its inside: its requests, its view, and its contact outside of the view.

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/client"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A process that has joined answers with the decision that has admitted it, and a request
// to catch up is checked.
func TestJoinerAnswersWithDecisions(t *testing.T) {
	first, err := Create(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Abort() }()
	joiner, err := Join(t.Context(), Config{}, first.session().self.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = joiner.Abort() }()
	b, err := first.session().network.client.Ask(t.Context(), joiner.session().self.Address, control.Decisions{})
	if err != nil || len(b) <= 4 {
		t.Errorf("decisions %v, %v", b, err)
	}
}

// A member that has its quorum takes no decisions of a process that it does not know:
// here a member of another group of the same name.
func TestMemberWithQuorumTakesNoDecisionsOfOthers(t *testing.T) {
	group := func(members int) (last *Group) {
		for range members {
			c, err := Config{Group: "twice"}, error(nil)
			if last == nil {
				last, err = Create(t.Context(), c)
			} else {
				last, err = Join(t.Context(), c, last.session().self.Address)
			}
			if err != nil {
				t.Fatal(err)
			}
			g := last
			t.Cleanup(func() { _ = g.Abort() })
		}
		return last
	}
	one, other := group(3), group(6)
	before := one.View()
	self := &other.session().self
	reply := one.session().catchUp.Requested(control.CatchUp{View: self.Incarnation, Address: self.Address})
	if _, err := control.Open(reply); err == nil {
		t.Error("the member agrees to catch up")
	}
	time.Sleep(100 * time.Millisecond) // a view that it took would be installed by then
	if v := one.View(); v.Number != before.Number || one.Err() != nil {
		t.Errorf("view %d became %d, %v", before.Number, v.Number, one.Err())
	}
}

// What is promised is what holds.
func TestLimitsOfHeaders(t *testing.T) {
	if MaxHeaderBytes != header.MaxBytes || MaxHeaderKeys != header.MaxKeys || HeaderVersion != wire.HeaderVersion {
		t.Error("the documented limits are not those that are checked")
	}
}

// In a group of a protocol version without headers, a call with one returns a VersionError, and one
// without is as ever.
func TestHeadersNeedTheirVersion(t *testing.T) {
	g, err := Create(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	s := g.session()
	v := *s.view.Load()
	v.Version = HeaderVersion - 1
	s.view.Store(&v)
	ctx := WithHeader(t.Context(), Header{"a": "1"})
	_, asked := g.Request(ctx, g.Self(), "any", nil)
	for call, err := range map[string]error{
		"Broadcast": g.Broadcast(ctx, nil), "Send": g.Send(ctx, g.Self(), nil), "Request": asked,
	} {
		if e := new(VersionError); !errors.As(err, &e) || e.Group != HeaderVersion-1 || e.Min != HeaderVersion {
			t.Errorf("%s: %v", call, err)
		}
	}
	if err := g.Broadcast(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A context without a header costs a message no allocation.
func TestNoHeaderCostsNothing(t *testing.T) {
	g, err := Create(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Abort() }()
	s := g.session()
	if n := testing.AllocsPerRun(100, func() { _, _ = headerOf(t.Context(), s.view.Load()) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

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
