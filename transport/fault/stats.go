package fault

// Stats counts what a network has done. Each frame handed to Send is counted
// once in Sent, and once, when its fate is known, in one of Passed, Dropped, Cut,
// Overflowed, Refused or Lost; a duplicate is counted in those once more.
type Stats struct {
	Sent       uint64 // frames that members were asked to send
	Passed     uint64 // frames handed on to the inner transports
	Dropped    uint64 // frames lost to drop
	Cut        uint64 // frames lost to cut or partition
	Overflowed uint64 // frames lost because too many were held; see Config.Held
	Refused    uint64 // frames that the inner transport did not take
	Lost       uint64 // frames held when a rank was killed, reset or closed

	Duplicated uint64 // frames sent twice
	Reordered  uint64 // frames to be held so that others may overtake
	Delayed    uint64 // frames to be held for a time, in order
	Frozen     uint64 // frames to be held because their sender was frozen
	Discarded  uint64 // frames that arrived where nobody was to be told: killed, or in mid-reset

	Kills  uint64 // ranks killed
	Resets uint64 // connections broken by reset
}
