package pleach

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Status is what a member knows of its group's health at one moment. It is for
// dashboards, health checks and people; [Group.Views] and [Group.Err] are for programs.
type Status struct {
	// View is the number of the current view, and Members counts its members.
	View    uint64
	Members int
	Quorum  Quorum
	// Suspects are the members of the view that cannot be reached, in order of rank.
	// A view without them follows, unless the quorum is lost.
	Suspects []Suspect
	// LastError is the last error of this process itself that kept it from others,
	// such as running out of file descriptors, and LastErrorAt when it happened. It is
	// nil if there was none. It is no evidence against other members.
	LastError   error
	LastErrorAt time.Time
}

// String returns the status on one line, as in "view 7: no quorum: 2 of 5 reachable, 3
// needed".
func (s Status) String() string {
	quorum := "quorum"
	if !s.Quorum.OK {
		quorum = "no quorum"
	}
	return fmt.Sprintf("view %d: %s: %d of %d reachable, %d needed", s.View, quorum, s.Quorum.Reachable, s.Members, s.Quorum.Needed)
}

// Quorum tells whether enough members are reachable to decide the next view.
type Quorum struct {
	// Of the members, Reachable are not suspected, this one included, and Needed are
	// enough.
	Reachable, Needed int
	OK                bool
}

// Suspect is a member that cannot be reached.
type Suspect struct {
	Rank  int
	ID    string
	Since time.Time
	// Cause is the report of a detector, usually a [*detect.Suspicion], or says that
	// another member has made it.
	Cause error
}

// errOthersSuspect is the cause of suspicions that do not come from an own detector.
var errOthersSuspect = errors.New("another member suspects it, or it does not answer during a view change")

// Status returns a snapshot. A static group suspects no member, and has its quorum
// always. After the end of the membership, Status tells of its last view only.
func (g *Group) Status() Status {
	s := Status{View: g.view.Load().Number, Members: g.Size()}
	_ = g.node.Do(func(protocol.Time) {
		if g.machine.Static() {
			s.Quorum = Quorum{Reachable: s.Members, OK: true}
			return
		}
		g.updateSuspects()
		s.View, s.Members = g.view.Load().Number, g.Size()
		s.Quorum.Reachable, s.Quorum.Needed, s.Quorum.OK = g.machine.Quorum()
		for _, rank := range g.machine.Unreachable() {
			s.Suspects = append(s.Suspects, g.suspects[rank])
		}
	})
	if g.localError != nil {
		s.LastErrorAt, s.LastError = g.localError()
	}
	return s
}

// updateSuspects records since when members cannot be reached, within node.Do.
func (g *Group) updateSuspects() {
	ranks := g.machine.Unreachable()
	for rank := range g.suspects {
		if _, still := slices.BinarySearch(ranks, rank); !still {
			delete(g.suspects, rank)
		}
	}
	view := g.machine.View()
	for _, rank := range ranks {
		m, _ := view.Member(rank)
		if s, known := g.suspects[rank]; !known || s.ID != m.Identity {
			g.suspects[rank] = Suspect{Rank: int(rank), ID: m.Identity, Since: time.Now(), Cause: errOthersSuspect}
		}
	}
}
