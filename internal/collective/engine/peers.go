package engine

import (
	"slices"
	"time"
)

// peers is what an engine knows of the processes of its communicator: which are in the
// view, which tasks each owns, which have failed, and how far each has come.
//
// It holds no table of all processes before it must, so that a simulator can run very
// many engines in one program. As long as none has failed, every process is in the view
// and owns its own task.
type peers struct {
	self, size int
	view       uint64
	live       []int          // ranks in the view; nil: all
	owners     []int          // by task; nil: each process owns its own
	newcomers  []int          // ranks that this generation has taken in
	failedIn   map[int]uint64 // by rank: the first view without it
	keepOwners bool           // no task moves any more, see [Engine.KeepOwners]
	acked      uint64         // failures up to this view are acknowledged
	status     map[int]*peerStatus
	parts      map[int]part // by task that was taken over: its last one
}

// peerStatus is how far another process has come, as far as this one knows.
type peerStatus struct {
	heard          bool          // a message has arrived from it
	silent         bool          // a corrected call has waited for it in vain, and it has made no call since
	reports        uint64        // of its progress that have arrived
	reportedAt     time.Duration // when the last one has
	asking         asking
	down           bool          // the link has lost it
	upSince        time.Duration // when the link first had a connection to it; 0: it may not have started yet
	next, finished uint64        // calls begun, and finished in this view
	agreements     int           // begun
	holds          bool          // it holds calls from firstHeld on
	firstHeld      uint64
	last           Signature
}

func (p *peers) init(self, size int, view uint64) {
	p.self, p.size, p.view, p.acked = self, size, view, view
	p.failedIn, p.status, p.parts = make(map[int]uint64), make(map[int]*peerStatus), make(map[int]part)
}

// of returns the status of a rank.
func (p *peers) of(rank int) *peerStatus {
	s := p.status[rank]
	if s == nil {
		s = &peerStatus{}
		p.status[rank] = s
	}
	return s
}

// members returns the ranks in the view.
func (p *peers) members() []int {
	if p.live == nil {
		return everyRank(p.size)
	}
	return p.live
}

// leader returns the lowest rank in the view, which leads agreements.
func (p *peers) leader() int {
	if p.live == nil {
		return 0
	}
	return p.live[0]
}

func everyRank(size int) []int {
	ranks := make([]int, size)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// install takes in a view, unless it is empty.
func (p *peers) install(view uint64, members []int) bool {
	p.view, p.live = view, slices.Sorted(slices.Values(members))
	if len(p.live) == 0 {
		return false
	}
	for r := range p.size {
		if _, there := slices.BinarySearch(p.live, r); !there && p.failedIn[r] == 0 {
			p.failedIn[r] = view
		}
	}
	if p.owners == nil {
		p.owners = everyRank(p.size)
	}
	if !p.keepOwners {
		reassign(p.owners, p.live, p.newcomers)
	}
	return true
}

// Every process installs the same views, so the number of a view says which failures
// are meant: those that a process has acknowledged, those that an agreement covers, and
// those that a communicator derived by Shrink leaves out.

func (p *peers) anyFailed() bool { return len(p.failedIn) > 0 }

// failed returns the ranks that have failed.
func (p *peers) failed() (ranks []int) {
	for r := range p.failedIn {
		ranks = append(ranks, r)
	}
	slices.Sort(ranks)
	return ranks
}

// liveIn returns the ranks of a view.
func (p *peers) liveIn(view uint64) (ranks []int) {
	for r := range p.size {
		if failed := p.failedIn[r]; failed == 0 || failed > view {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// failedBetween returns the ranks that failed after one view and up to another.
func (p *peers) failedBetween(after, until uint64) (ranks []int) {
	for r, failed := range p.failedIn {
		if failed > after && failed <= until {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return ranks
}

// changesFrom returns the views, from one on, in which a rank had failed, in order.
func (p *peers) changesFrom(view uint64) (views []uint64) {
	for _, failed := range p.failedIn {
		if failed >= view {
			views = append(views, failed)
		}
	}
	slices.Sort(views)
	return slices.Compact(views)
}

// PeerDown notes that the link has lost a rank: messages that have not arrived from it
// will not arrive. PeerUp takes that back.
func (e *Engine) PeerDown(rank int) { e.setPeerDown(rank, true) }

// PeerUp notes that the link has a connection to a rank.
func (e *Engine) PeerUp(rank int) { e.setPeerDown(rank, false) }

func (e *Engine) setPeerDown(rank int, down bool) {
	if rank < 0 || rank >= e.config.Size {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.peers.of(rank)
	s.down = down || e.peers.failedIn[rank] != 0 // not its replacement
	if !down && s.upSince == 0 {
		s.upSince = e.now()
	}
	for _, o := range e.calls.byNumber {
		o.changed.Notify()
	}
	for _, n := range e.comms.nested {
		if r, ok := n.rankOfWorld(e.worldRank(rank)); ok {
			n.setPeerDown(r, down)
		}
	}
}
