// Package access names the rights of processes in a group. Requests need them, and admission control
// grants them.
package access

import "fmt"

// Right is what a process may do in a group.
type Right uint8

// The rights, the least first.
const (
	// Observe is to ask for the view, and for the progress of calls.
	Observe Right = iota + 1
	// Enter is to be a candidate under an ID and an address: to found, to join, and to take a
	// place again.
	Enter
	// Decide is to be believed in what the group has decided.
	Decide
	// Operate is to force a view, to raise the version and to evict a member.
	Operate
)

// String returns the name of the right.
func (r Right) String() string {
	names := [...]string{Observe: "observe", Enter: "enter", Decide: "decide", Operate: "operate"}
	if int(r) < len(names) && r > 0 {
		return names[r]
	}
	return fmt.Sprintf("right %d", uint8(r))
}

// Claim is what a caller wants to be, if it wants to be a member.
type Claim struct{ ID, Address string }
