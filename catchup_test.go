package pleach

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/machine/control"
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
