package control

import "github.com/pleach-go/pleach/internal/door"

// RightOf returns the right that a request needs, and what its sender claims to be.
func RightOf(request Request) (door.Right, door.Claim) {
	switch r := request.(type) {
	case View, Progress:
		return door.Observe, door.Claim{}
	case Introduce: // of a process that looks for its place, or of an operator
		if from := r.From; from.ID != "" || from.Address != "" {
			return door.Enter, door.Claim{ID: from.ID, Address: from.Address}
		}
		return door.Observe, door.Claim{}
	case Join:
		return door.Enter, door.Claim{ID: r.Candidate.Identity, Address: r.Candidate.Address}
	case Founding:
		return door.Enter, door.Claim{ID: r.From.ID, Address: r.From.Address}
	case Compare:
		return door.Enter, door.Claim{ID: r.From.ID, Address: r.From.Address}
	case CatchUp:
		return door.Enter, door.Claim{Address: r.Address}
	case Confirm, Decisions:
		return door.Enter, door.Claim{}
	}
	return door.Operate, door.Claim{} // Force, Raise and Evict, and what is added without a right of its own
}
