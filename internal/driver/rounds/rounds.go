// Package current drives a [freshness.Machine]: its rounds are requests to the other members, and
// they run while the program asks whether it is current.
package rounds

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/internal/machine/freshness"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// Name is that of the requests. No handler of a program has it.
const Name = "\x00current"

// Config is what rounds use of a member.
type Config struct {
	Self       protocol.Rank
	Direct     *unicast.Machine
	Stream     *stream.Member
	View       func() *membership.View
	FlushBatch func()
	// Arbiter says that the group has an arbiter.
	Arbiter bool
	// Misses reports whether the program has yet to get the state, or the notice of a gap.
	Misses func() bool
	// Do calls a function where the machines may be used, and Now is the time there. Go calls one
	// that the end of the membership waits for, and Life ends with the membership.
	Do   func(func(now protocol.Time)) error
	Now  func() protocol.Time
	Go   func(func())
	Life context.Context
}

// Rounds are those of one membership. Within is safe for concurrent use, and all other methods are
// called within Do.
type Rounds struct {
	config  Config
	machine freshness.Machine
	pending map[protocol.Rank][]uint64 // requests without a reply

	proven  atomic.Int64 // the time of the last proof; 0: there is none
	within  atomic.Int64 // the shortest time that was asked for; 0: none was
	asked   atomic.Int64 // when it was last asked for
	running atomic.Bool
}

const (
	perTime  = 4 // rounds in the time that is asked for, and requests to one member
	idle     = protocol.Time(10 * time.Second)
	minPause = 2 * time.Millisecond
	maxPause = time.Second
)

// New returns rounds that do not run yet.
func New(c Config) *Rounds {
	return &Rounds{config: c, machine: freshness.Machine{Arbiter: c.Arbiter}, pending: make(map[protocol.Rank][]uint64)}
}

// Within reports whether there is a proof that is not older than d, and has rounds run for a while.
func (r *Rounds) Within(d protocol.Time) bool {
	now := r.config.Now()
	r.asked.Store(int64(now))
	for {
		before := r.within.Load()
		if before > 0 && before <= int64(d) || r.within.CompareAndSwap(before, int64(max(d, 1))) {
			break
		}
	}
	if r.running.CompareAndSwap(false, true) {
		r.config.Go(r.run)
	}
	proven := protocol.Time(r.proven.Load())
	return proven > 0 && now-proven <= d
}

// run runs rounds as long as the program asks.
func (r *Rounds) run() {
	for r.config.Now()-protocol.Time(r.asked.Load()) < idle {
		if r.config.Do(r.begin) != nil {
			return // the membership has ended, and another one has rounds of its own
		}
		select {
		case <-time.After(min(max(time.Duration(r.within.Load())/perTime, minPause), maxPause)):
		case <-r.config.Life.Done():
			return
		}
	}
	r.within.Store(0)
	r.running.Store(false)
}

// begin asks all members.
func (r *Rounds) begin(now protocol.Time) {
	v := r.config.View()
	number := r.machine.Begin(now, v, r.config.Self, r.answer())
	if number == 0 {
		return
	}
	for _, m := range v.Members.All() {
		if m.Rank != r.config.Self {
			r.ask(m.Rank, number)
		}
	}
}

// ask asks a member, and no longer waits for its oldest reply if there are many.
func (r *Rounds) ask(from protocol.Rank, number uint64) {
	if waiting := r.pending[from]; len(waiting) >= perTime {
		r.config.Direct.Cancel(waiting[0])
		r.pending[from] = waiting[1:]
	}
	request, err := r.config.Direct.Request(from, Name, "", nil, func(reply unicast.Reply) {
		if waiting := r.pending[from]; len(waiting) > 0 {
			r.pending[from] = waiting[1:]
		}
		if reply.Err != nil || reply.Status != unicast.OK {
			return
		}
		if a, err := freshness.Decode(reply.Data); err == nil {
			r.machine.Answer(number, from, a)
		}
	})
	if err == nil {
		r.pending[from] = append(r.pending[from], request)
	}
}

// answer is what this member says in a round.
func (r *Rounds) answer() freshness.Answer {
	s := r.config.Stream
	a := freshness.Answer{
		View: r.config.View().Number, Changing: s.Frozen() || s.Unsent(),
		Positions: make(map[freshness.Stream]uint64),
	}
	for _, p := range s.Known() {
		a.Positions[freshness.Stream{Rank: p.Rank, Incarnation: p.Incarnation}] = p.Next
	}
	return a
}

// Serve answers a request. What this member accepted before is sent first, so that the answer has
// it.
func (r *Rounds) Serve(from unicast.Caller) {
	r.config.FlushBatch()
	r.config.Go(func() {
		_ = r.config.Do(func(protocol.Time) {
			a := r.answer()
			r.config.Direct.Reply(from, unicast.OK, a.Encode())
		})
	})
}

// Waits reports whether a round waits for the program.
func (r *Rounds) Waits() bool { return r.running.Load() && r.machine.Waits() }

// Look ends the rounds that have a proof.
func (r *Rounds) Look() {
	if r.running.Load() && !r.config.Misses() {
		r.machine.Look(r.config.View().Number, program{r.config.Stream})
		r.proven.Store(int64(r.machine.Proven()))
	}
}

// program is the program of a member.
type program struct{ *stream.Member }

// Delivered implements [freshness.Program].
func (p program) Delivered(s freshness.Stream) (position uint64, whole bool) {
	return p.DeliveredUpTo(stream.MemberID{Rank: s.Rank, Incarnation: s.Incarnation})
}

// Mark implements [freshness.Program].
func (p program) Mark() map[uint64]uint64 { return p.MarkQueues() }
