package membership

import "testing"

// Members that have died without anybody noticing keep the others from agreeing on
// another's removal, but not for ever; wherever in the tree they are.
func TestSilentMembersAreSuspectedInTheEnd(t *testing.T) {
	for unnoticed := 1; unnoticed < 9; unnoticed++ {
		if unnoticed == 3 {
			continue
		}
		n := newNetwork(t, 9, uint64(unnoticed), nil)
		n.kill(unnoticed, 3)
		n.tellAll(3)
		if v := n.settle(); v.Number != 2 || len(v.Members) != 7 || n.now > 20*second {
			t.Errorf("%d unnoticed: %v at %v", unnoticed, v, n.now)
		}
	}
}
