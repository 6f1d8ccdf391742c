package engine

// Thresholds select the algorithms of package collective. A selection depends only on
// the collective, the length of its input in bytes and the number of tasks, because all
// tasks must use the same algorithm, and a result must not depend on anything else. The
// length of elements that need a Codec counts as 0, because it is unknown before they
// are encoded.
type Thresholds struct {
	// Halving is the length from which Allreduce uses recursive halving.
	Halving int
	// Chain is the length from which Reduce uses a chain.
	Chain int
	// Tree is the longest that Broadcast sends whole along a tree. Beyond it, most
	// of the data goes along a chain.
	Tree int
	// Segment is the length of the segments in a chain. A process forwards one while
	// it receives the next.
	Segment int
	// Part is the length of the parts in which a long Allreduce is made. Each is a call
	// of its own, so its log is dropped while the next one runs. If zero, there are no parts.
	Part int
	// Bruck is the number of tasks from which Alltoall sends parts of up to BruckPart
	// bytes together.
	Bruck, BruckPart int
}

// StandardThresholds suit few processors, where the number of messages and copies counts:
// in a chain, no process sends anything twice. Around these lengths the algorithms take
// the same time, within what pleach bench collectives can tell apart on two processors.
func StandardThresholds() Thresholds {
	return Thresholds{
		Halving: 16 << 10, Chain: 512 << 10, Tree: 512 << 10, Segment: 128 << 10, Part: 4 << 20,
		Bruck: 9, BruckPart: 512,
	}
}
