package fault

// Stats counts the events of a network. Each frame is counted once in Sent, and once,
// when its outcome is known, in one of Passed, Dropped, Cut, Overflowed, Refused or
// Lost; a duplicate is counted in those once more.
type Stats struct {
	Sent       uint64 // frames given to Send
	Passed     uint64 // frames passed to the inner transports
	Dropped    uint64 // frames dropped by Drop
	Cut        uint64 // frames dropped by Cut or Partition
	Overflowed uint64 // frames dropped because too many were held; see Config.Held
	Refused    uint64 // frames that the inner transport did not take
	Lost       uint64 // frames held when a rank was killed, reset or closed

	Duplicated uint64 // frames sent twice
	Reordered  uint64 // frames held so that others may overtake
	Delayed    uint64 // frames held for a time, in order
	Frozen     uint64 // frames held because their sender was frozen
	Discarded  uint64 // frames that arrived at a killed member, or during a reset

	Kills  uint64 // ranks killed
	Resets uint64 // connections broken by Reset
}
