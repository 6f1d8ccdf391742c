package fleet

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// Message is a broadcast of a member of the fleet, or a notice that broadcasts were lost.
type Message struct {
	// Zone and ID name the member that broadcast it, and Incarnation tells its starts
	// apart: a later one is greater.
	Zone, ID    string
	Incarnation uint64
	// Seq counts the broadcasts of this start of the member, from 1.
	Seq uint64
	// Data must not be changed: the fleet may still relay it.
	Data []byte
	// Header is what the context of its sender has ([pleach.WithHeader]). It is nil if there is none.
	Header pleach.Header
}

// Position is up to where the messages of a member go: Seq is the last one of this start of it.
type Position struct {
	Zone, ID    string
	Incarnation uint64
	Seq         uint64
}

// Before returns the positions at which this process has joined: Messages yields what follows
// them, and other members have what a log of an earlier start of this process lacks before
// them. Of a member that is not in them, Messages yields all or, if its zone was met later, what
// follows that. The first member of a zone that has restarted from scratch has none.
func (f *Fleet) Before() []Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	positions := make([]Position, len(f.machine.Before()))
	for i, p := range f.machine.Before() {
		positions[i] = Position{p.Origin.Zone, p.Origin.ID, p.Origin.Incarnation, p.Seq}
	}
	return positions
}

// Born tells the lives of this process's zone apart. It is the same at all members of the zone. It
// is another one, by the clock of the first member a later one, when the zone restarts from scratch
// after all of its members have died.
func (f *Fleet) Born() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine.Born()
}

// LostError takes the place of messages of one member that this process lost, because its zone was
// cut off for longer than the others keep messages (Config.KeepBytes). It comes before later messages
// of the member. The loop over [Fleet.Messages] continues.
type LostError struct {
	// Zone, ID and Incarnation name the member, as in [Message].
	Zone, ID    string
	Incarnation uint64
	// First and Last are the positions of the first and the last lost message ([Message.Seq]).
	First, Last uint64
}

func (e *LostError) Error() string {
	return fmt.Sprintf("fleet: messages %d to %d of %q in zone %q, incarnation %d, are lost: this process was cut off for longer than others keep them",
		e.First, e.Last, e.ID, e.Zone, e.Incarnation)
}

// ZoneSummary is what a zone tells the others about itself. It is not agreed upon: members
// may know different ones, and each is as old as it says.
type ZoneSummary struct {
	Zone string `json:"zone"`
	// Members counts the members of View, a view of the zone.
	Members int    `json:"members"`
	View    uint64 `json:"view"`
	// Healthy says that the zone had a quorum and suspected no member.
	Healthy bool `json:"healthy"`
	// Age is how long ago this process has heard it, or 0 for its own zone.
	Age time.Duration `json:"age_ns"`
	// Connected says that the zone is in the backbone, as the delegates of this zone see it.
	// Only a delegate knows; other members say false.
	Connected bool `json:"connected"`
}

// Messages yields what other members of all zones broadcast by [Fleet.Broadcast], those of
// one member in the order in which it made them. If several goroutines receive, each message goes to
// one of them. An error is a [*LostError], at the place of messages that are missing, and the Message
// is zero then. The loop ends without an error when ctx ends or this process is no longer a member of
// its zone: [Fleet.Err] returns the reason.
func (f *Fleet) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for m := range f.inbox.all(ctx) {
			f.roomInInbox()
			if !yield(resultOf(&m)) {
				return
			}
		}
	}
}

// roomInInbox wakes calls of Broadcast that wait for room in the inbox.
func (f *Fleet) roomInInbox() {
	if !f.config.Echo {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting > 0 && f.open() {
		signal(f.window)
	}
}

// resultOf returns a message, or the error that takes the place of lost ones.
func resultOf(m *relay.Message) (Message, error) {
	o := m.Origin
	if m.Lost > 0 {
		return Message{}, &LostError{
			Zone: o.Zone, ID: o.ID, Incarnation: o.Incarnation, First: m.Seq - m.Lost,
			Last: m.Seq - 1,
		}
	}
	return Message{
		Zone: o.Zone, ID: o.ID, Incarnation: o.Incarnation, Seq: m.Seq, Data: m.Data, Header: m.Header.Map(),
	}, nil
}
