package lifecycle

import (
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Action is something that a driver carries out: one of the types of this file.
type Action interface{ action() }

// The actions of a [Machine] and a [Member].
type (
	// Ask sends a request to the process at an address. The driver reports the result, or
	// the timeout, by [Machine.Replied] or [Member.Replied].
	Ask struct {
		Token   uint64
		Address string
		Request control.Request
		Timeout protocol.Time
	}
)

// The actions of a [Machine].
type (
	// Stand ends the restarted voter, if there is one: the process is a candidate without a vote.
	Stand struct{}
	// Hold makes the process the restarted voter of a place, which asks for a view with Candidate in
	// that place. The nonce of Candidate is saved together with the place, before the restarted voter
	// says anything. The driver reports by [Machine.Admitted] and [Machine.Over].
	Hold struct {
		Place     *membership.SavedVote
		Candidate membership.Member
	}
	// Suspect tells the restarted voter that a member of its view cannot vote any more.
	Suspect struct {
		Rank        protocol.Rank
		Incarnation uint64
	}
	// Trust tells the restarted voter that a member of its view is there: its process may have come back
	// where a detector has found it gone.
	Trust struct {
		Rank        protocol.Rank
		Incarnation uint64
	}
	// Forget saves that the process has no place any more.
	Forget struct{}
	// Become makes the process a member. Its place is saved before it says anything: with
	// its nonce alone, the process after it would be taken for it, and be the same member
	// with other messages.
	Become struct{ Membership }
	// Fail ends the process's attempt to be a member.
	Fail struct{ Err error }
)

// The actions of a [Member].
type (
	// Learn passes decisions of the process at an address to the member's machine. The driver
	// reports the result by [Member.Learned].
	Learn struct {
		From      string
		Decisions membership.Decisions
	}
	// Remove ends the membership: the process at an address has a view that has removed this
	// process. Holder is the process that has its ID in that view, or nil.
	Remove struct {
		From   string
		View   uint64
		Holder *membership.Member
	}
	// Move says that the process of a member is at another address than the view has. The
	// driver connects to all members where Elsewhere has them.
	Move struct {
		control.Contact
		Elsewhere Elsewhere
	}
	// Ended ends the search that [Member.Evicted] began. Successor is the process that has the
	// ID of this one now, or nil if no member knows of one.
	Ended struct{ Successor *membership.Member }
)

// Membership is what a member begins with.
type Membership struct {
	Self membership.Member
	View membership.View
	// Start is its position in every stream.
	Start []membership.Position
	// Decisions has led to the view.
	Decisions membership.Decisions
	// Elsewhere has the members that are not where the view has them.
	Elsewhere Elsewhere
	// Began has the candidates that the group began with, by agreement. It is nil if the
	// process has joined.
	Began []founding.Candidate
	// Sends is the longest message that the group sends, and SendsFor the ID of a member that
	// can receive no longer one. Sends is 0 if no member has said so.
	Sends    int
	SendsFor string
}

func (Ask) action()     {}
func (Stand) action()   {}
func (Hold) action()    {}
func (Suspect) action() {}
func (Trust) action()   {}
func (Forget) action()  {}
func (Become) action()  {}
func (Fail) action()    {}
func (Learn) action()   {}
func (Remove) action()  {}
func (Move) action()    {}
func (Ended) action()   {}

// Reply is the result of an [Ask].
type Reply struct {
	// Body is what the reply has, after its status. It is nil if Err is not.
	Body []byte
	Err  error
	// Gone says that no process listens at the address. Permanent says that the same
	// request would fail again there, and Final that it would fail at any member.
	Gone, Permanent, Final bool
}
