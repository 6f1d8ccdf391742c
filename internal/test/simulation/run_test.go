package simulation

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Times are in nanoseconds.
const (
	microsecond protocol.Time = 1e3
	millisecond               = 1e3 * microsecond
	second                    = 1e3 * millisecond
)

// Options are for the tests of the simulation itself, and for replays.
type Options struct {
	// Timeline, if not nil, gets what happens, in columns.
	Timeline io.Writer
	// Configure, if not nil, changes the config of every member: tests plant bugs there.
	Configure func(*member.Config)
	// Tamper, if not nil, sees every frame when it arrives, and returns those that its
	// receiver sends back at once: tests plant bugs there.
	Tamper func(frame []byte) (replies [][]byte)
	// Live, if not nil, changes the config of every process that starts, and Reply every
	// reply to a request when it arrives: tests plant bugs there.
	Live  func(*lifecycle.Config)
	Reply func(control.Request, *lifecycle.Reply)
	// Report, if not nil, sees every report of a detector, and says whether to pass it on, and Dialed
	// every result of a probe: tests plant bugs there.
	Report func(*member.Report) bool
	Dialed func(detection.Result) detection.Result
	// Contact, if not nil, changes how members communicate outside their views: tests plant bugs
	// there.
	Contact func(c contact, self membership.Member) contact
	// Disks skips the seeds whose hosts have none: a bug cannot show there.
	Disks bool
	// Bug is planted in what drives the machines.
	Bug Bug
	// Cut cuts a group in two, and lets nothing else go wrong: see cut_test.go.
	Cut bool
	// Apart separates members that can go on only with the help of processes outside their views:
	// see apart_test.go.
	Apart bool
	// Moves restarts processes at other addresses, in groups where a member is not connected to
	// most others.
	Moves bool
	// State gives programs a state that joiners get: see state_test.go. It is not for Rich.
	State bool
	// Rich makes programs use all that a member offers: see rich_test.go.
	Rich bool
	// Strange adds what no correct process does: see strange_test.go.
	Strange bool
	// Services has programs use what services build on groups: see services_test.go.
	Services bool
	// Rolling restarts all processes, one at a time: see services_rolling_test.go. It is for Services.
	Rolling bool
	// Observers makes some processes observers: see observers_test.go.
	Observers bool
	// Arbiter gives groups an arbiter: see arbiter_test.go.
	Arbiter bool
	// Upgrade makes processes speak two protocol versions: see upgrade_test.go.
	Upgrade bool
}

// Result is what came out of a run.
type Result struct {
	Seed uint64
	// Err is the first promise that was broken, or nil.
	Err error
	// Hash is that of all events in order: two runs of one seed have the same.
	Hash uint64
	// Stuck says that too few members of the last view were left to go on, which no
	// group promises to survive.
	Stuck bool
	// Time is how long it took on the virtual clock.
	Time protocol.Time
	// Events, Frames, Delivered, Unicasts, Topical, Views, Receipts and Processed count what happened.
	Events, Frames, Delivered, Unicasts, Topical, Views, Receipts, Processed uint64
	// Roles counts changes of roles, and Observers those that crashed at once.
	Roles, Observers uint64
	// Claims counts questions to the arbiter, and Granted and Refused its answers.
	Claims, Granted, Refused uint64
	// Learned counts decisions taken from processes outside the view, and Removed members that
	// were told by one that the group has removed them.
	Learned, Removed uint64
	// States counts states that joiners have got, and Elections those of members that began with
	// theirs.
	States, Elections uint64
	// Groups, Seats and Saves count what happened before processes were members.
	Groups, Seats, Saves uint64
	// Ordered, Restored, Anew, Operations, Leases and Owned count what services did.
	Ordered, Restored, Anew, Operations, Leases, Owned uint64
	// Rolled counts rolling restarts.
	Rolled uint64
	// Told counts the members behind a cut, once for each installation of a view without them.
	Told uint64
}

// Simulation is one run.
type Simulation struct {
	options   Options
	rng       *rand.Rand
	plan      plan
	now       protocol.Time
	events    events
	hosts     []*host
	addresses map[string]*host // all that were used
	nonces    uint64           // drawn so far
	// operations counts those of clients of services.
	operations uint64
	rolling    rolling
	falling    bool       // the next process that does something for a service crashes
	processes  []*process // in the order in which they began
	conns      []*conn    // those that may be alive
	checker    checker
	timeline   *timeline
	strange    strangeness
	roles      roles
	arbiter    arbiter
	minority   []*process // side of a cut without a quorum
	begun      bool       // processes may crash at actions
	calm       bool       // the trouble is over
	asked      bool       // programs were asked to use all that a member offers once more
	// pendingRestarts counts the processes that will start again.
	pendingRestarts int
	hash            hashState
	result          Result
}

// maxEvents bounds a run: one that has more runs away.
const maxEvents = 1_000_000

// Run runs the simulation of a seed.
func Run(seed uint64, o Options) Result {
	s := &Simulation{
		options: o, now: 1, rng: rand.New(rand.NewPCG(seed, 0x706c65616368)), timeline: newTimeline(o.Timeline),
		hash: hashBasis, result: Result{Seed: seed},
	}
	s.checker.sim, s.addresses = s, make(map[string]*host)
	s.plan = drawPlan(s.rng)
	if o.Disks && !s.plan.durable {
		return s.result
	}
	if o.Cut {
		s.plan.planCut()
	}
	if o.Moves {
		s.plan.planMoves(s.rng)
	}
	s.plan.stream.Replicate = o.State
	if o.Apart {
		s.planApart()
	}
	if o.Services {
		s.plan.planServices(s.rng)
	}
	if o.Rolling {
		s.plan.planRolling(s.rng)
	}
	if o.Arbiter {
		s.plan.planArbiter(s.rng)
		s.beginArbiter(seed)
	}
	if o.Strange {
		s.strange.rng = rand.New(rand.NewPCG(seed, 0x73747261))
	}
	s.timeline.note(s.now, s.plan.String())
	s.begin()
	if o.Rich {
		s.beginRich(seed)
	}
	s.runUntil(s.plan.end, nil)
	s.finishRolling()
	s.endTrouble()
	s.converge()
	if o.Upgrade {
		s.finishUpgrade()
	}
	s.checker.finish()
	s.result.Err, s.result.Time, s.result.Hash = s.checker.err, s.now, uint64(s.hash)
	return s.result
}

// after schedules something.
func (s *Simulation) after(d protocol.Time, do func()) { s.events.push(s.now+max(d, 0), do) }

// runUntil runs the events up to a time. It returns early when done, which is asked now
// and then, says so, or when a promise is broken.
func (s *Simulation) runUntil(end protocol.Time, done func() bool) bool {
	const interval = 20 * millisecond
	next := s.now
	for s.checker.err == nil {
		if done != nil && s.now >= next {
			next = s.now + interval
			if done() {
				return true
			}
		}
		at, ok := s.events.earliest()
		if !ok || at > end {
			s.now = end
			return done != nil && done()
		}
		e := s.events.pop()
		s.now = e.at
		s.result.Events++
		if s.result.Events > maxEvents {
			s.checker.fail("%d events: the group runs away:%s", maxEvents, s.describe())
		}
		e.do()
	}
	return false
}

// record adds an event to the hash and to the timeline.
func (s *Simulation) record(p *process, format string, args ...any) {
	s.hash.add(uint64(s.now), uint64(p.id))
	if s.timeline != nil {
		s.timeline.add(s.now, p, fmt.Sprintf(format, args...))
	}
	s.hash.text(format)
}

// between draws a time.
func (s *Simulation) between(low, high protocol.Time) protocol.Time { return between(s.rng, low, high) }

func between(rng *rand.Rand, low, high protocol.Time) protocol.Time {
	return low + protocol.Time(rng.Int64N(int64(max(high-low, 1))))
}
