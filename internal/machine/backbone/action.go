package backbone

import "github.com/pleach-go/pleach/protocol"

// Time is the time of the driver's clock, in nanoseconds.
type Time = protocol.Time

// Action is something that a driver carries out: one of the types of this file.
type Action interface{ action() }

// The actions of a [Machine].
type (
	// AskZone asks another zone for the delegates that it announces, and these, or those at Known if
	// it announces none, for their backbone. The driver reports the answer, or that there is none
	// within Timeout, by [Machine.Found].
	AskZone struct {
		Round   uint64
		Zone    string
		Known   []string
		Timeout Time
	}
	// AskDelegates asks the delegates at some addresses for their backbone. The driver reports the
	// answer, or that there is none within Timeout, by [Machine.Found].
	AskDelegates struct {
		Round     uint64
		Addresses []string
		Timeout   Time
	}
	// Join joins a backbone. SameAddress says that this process listens where it did in the last
	// backbone, because others know the address. The driver reports the result by [Machine.Entered]
	// or [Machine.Failed].
	Join struct {
		Seeds       []string
		SameAddress bool
		Timeout     Time
	}
	// Create begins a backbone. The driver reports the result as that of Join.
	Create struct{ SameAddress bool }
	// Leave leaves the backbone. The driver reports by [Machine.Left] when this process has left.
	Leave struct{}
	// Announce announces the address of this process in the backbone to the members of its zone; "":
	// it has none.
	Announce struct{ Address string }
)

func (AskZone) action()      {}
func (AskDelegates) action() {}
func (Join) action()         {}
func (Create) action()       {}
func (Leave) action()        {}
func (Announce) action()     {}

// Found is the answer to an [AskZone] or an [AskDelegates].
type Found struct {
	// Zone is the zone that was asked; "" if delegates were.
	Zone string
	// View is the backbone of the first delegate that has answered. It has no members if none has.
	View View
	// Asked are the addresses of the delegates that were asked.
	Asked []string
	// Reachable says that a member of the zone has answered, and Announced that the zone announces
	// delegates.
	Reachable, Announced bool
}
