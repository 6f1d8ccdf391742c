package topology

import "fmt"

// Order is how ranks are assigned to a tree's nodes.
type Order uint8

const (
	// Interleaved assigns ranks in the order in which processes receive the
	// message, so that ring neighbors belong to different subtrees (Corrected
	// Trees §3.2).
	Interleaved Order = iota
	// InOrder assigns ranks depth first, so that a subtree is one run of ranks
	// and its loss is one gap. It exists for comparison.
	InOrder
)

// String returns the name that [ParseOrder] accepts.
func (o Order) String() string {
	switch o {
	case Interleaved:
		return "interleaved"
	case InOrder:
		return "inorder"
	default:
		return "unknown order"
	}
}

// ParseOrder parses "interleaved" or "inorder".
func ParseOrder(s string) (Order, error) {
	for _, o := range []Order{Interleaved, InOrder} {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("topology: order %q is unknown: choose %s or %s", s, Interleaved, InOrder)
}
