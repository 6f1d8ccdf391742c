package collective

// An engine keeps no table of all processes before it must, so that as many
// engines as a simulator has processes fit into one program. As long as nobody has
// died, everybody is there and has its own task.

// members are the ranks in the view.
func (e *Engine) members() []int {
	if e.live == nil {
		return everyRank(e.config.Size)
	}
	return e.live
}

// leader is the lowest of them.
func (e *Engine) leader() int {
	if e.live == nil {
		return 0
	}
	return e.live[0]
}

func everyRank(size int) []int {
	ranks := make([]int, size)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// owner is a task's.
func (e *Engine) owner(task int) int {
	if e.owners == nil {
		return task
	}
	return e.owners[task]
}

// firstOf is somebody's rank in the family's first world.
func (e *Engine) worldRank(rank int) int {
	if e.worldRanks == nil {
		return rank
	}
	return e.worldRanks[rank]
}

// of is what is known of another process.
func (e *Engine) peer(rank int) *peerStatus {
	s := e.peers[rank]
	if s == nil {
		s = &peerStatus{}
		e.peers[rank] = s
	}
	return s
}
