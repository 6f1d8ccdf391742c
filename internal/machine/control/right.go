package control

import "github.com/pleach-go/pleach/internal/base/access"

// RightOf returns the right that a request needs, and what its sender claims to be.
func RightOf(request Request) (access.Right, access.Claim) {
	switch r := request.(type) {
	case View, Progress:
		return access.Observe, access.Claim{}
	case Introduce: // of a process that looks for its place, or of an operator
		if from := r.From; from.ID != "" || from.Address != "" {
			return access.Enter, access.Claim{ID: from.ID, Address: from.Address}
		}
		return access.Observe, access.Claim{}
	case Join:
		return access.Enter, access.Claim{ID: r.Candidate.Identity, Address: r.Candidate.Address}
	case Founding:
		return access.Enter, access.Claim{ID: r.From.ID, Address: r.From.Address}
	case Compare:
		return access.Enter, access.Claim{ID: r.From.ID, Address: r.From.Address}
	case CatchUp:
		return access.Enter, access.Claim{Address: r.Address}
	case Confirm, Decisions:
		return access.Enter, access.Claim{}
	}
	return access.Operate, access.Claim{} // Force, Raise and Evict, and what is added without a right of its own
}
