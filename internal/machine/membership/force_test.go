package membership

import (
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Members that an operator names go on without the others, which are dead; and only if there is no
// quorum, they can be reached, and the one that is asked is among them.
func TestForceView(t *testing.T) {
	n := newNetwork(t, 5, 1, nil)
	n.checker.isQuorum = func(*View, set) bool { return true }
	asked := n.hosts[1]
	if err := asked.m.ForceView(n.now, []protocol.Rank{0, 1}); !errors.Is(err, ErrHasQuorum) {
		t.Errorf("with a quorum: %v", err)
	}
	n.kill(2, 3, 4)
	n.suspectAll(2, 3, 4)
	if n.run(20*time.Second, func() bool { return asked.m.view.Number > 1 }) {
		t.Fatal("a view without a quorum")
	}
	for what, ranks := range map[string][]protocol.Rank{
		"a member that is dead": {0, 1, 2}, "a rank of nobody": {0, 1, 9}, "others only": {0}, "nobody": nil,
	} {
		if err := asked.m.ForceView(n.now, ranks); !errors.Is(err, ErrForce) {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := n.hosts[0] // it coordinates
	if err := first.m.ForceView(n.now, []protocol.Rank{0, 1}); err != nil {
		t.Fatal(err)
	}
	n.pump(first)
	if v := n.settle(); v.Members.Len() != 2 || v.Number != 2 {
		t.Errorf("%v", v)
	}
	n.leave(first)
	n.run(10*time.Second, func() bool { return first.m.done != nil })
	if err := first.m.ForceView(n.now, []protocol.Rank{0}); !errors.Is(err, ErrHasQuorum) {
		t.Errorf("a member that has left: %v", err)
	}
}

// A forced view has those that the operator names and no others, although they can be reached.
func TestForcedViewLeavesOthersOut(t *testing.T) {
	n := newNetwork(t, 5, 1, nil)
	n.checker.isQuorum = func(*View, set) bool { return true }
	n.kill(2, 3, 4)
	n.suspectAll(2, 3, 4)
	first := n.hosts[0]
	if err := first.m.ForceView(n.now, []protocol.Rank{0}); err != nil {
		t.Fatal(err)
	}
	n.pump(first)
	if !n.run(10*time.Second, func() bool { return first.m.view.Number == 2 }) || first.m.view.Members.Len() != 1 {
		t.Fatal(n.situation())
	}
	if why := first.m.history[0].reasons; len(why) != 4 || why[0] != (reason{Forced, 0}) {
		t.Errorf("%v", why)
	}
}
