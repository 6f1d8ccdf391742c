package broadcast

import (
	"errors"
	"fmt"
	"math"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Start says when a process that has passed the message on starts to correct.
type Start uint8

const (
	// Overlapped: as soon as its own dissemination is over. No clock is
	// needed; some processes are then reached early, by correction before the
	// tree. Real networks have only this one.
	Overlapped Start = iota
	// Synchronized: everywhere at the same moment, [Config.At].
	Synchronized
)

// String returns the start's name as flags spell it.
func (s Start) String() string {
	if s == Synchronized {
		return "synchronized"
	}
	return "overlapped"
}

// Config describes a broadcast: its group, its dissemination and its correction.
type Config struct {
	// Size is P, the number of processes; Root is the one that starts.
	Size, Root protocol.Rank
	// Dissemination is required.
	Dissemination Dissemination
	// Correction may be nil: none.
	Correction Correction
	// Start says when correction starts, At when that is if synchronized: for a
	// tree its fault-free completion time, for gossip the end of gossiping.
	Start Start
	At    protocol.Time
	// EarlyOnlyRelay keeps processes that an overlapped correction colored early
	// from correcting; they still pass the message on.
	EarlyOnlyRelay bool
	// Line cuts the ring between ranks P−1 and 0: no process corrects across. It
	// exists to compare with models that do so; a ring is never worse.
	Line bool
}

// Dissemination is how the message first spreads: [Tree], [AckTree], [Gossip],
// [GossipRounds], [BinomialGraph] or [Restarting].
type Dissemination interface {
	// check says why it does not go with the rest of the plan.
	check(c *Config) error
	// states makes the states of n processes, all in one piece of memory.
	states(n int) func(i int) disseminator
	// hop is what a receiver adds to a message's clock to have the sender's
	// clock of now; 0 where clocks are common or unused.
	hop() protocol.Time
}

// Correction is how gaps are closed: [Opportunistic], [Optimized], [Safe],
// [Checked], [FailureProof] or [Delayed].
type Correction interface {
	fmt.Stringer
	check(c *Config) error
	states(n int) func(i int) corrector
	// lateDuty says whether processes colored by a synchronized correction
	// still have something to do.
	lateDuty() bool
}

// MaxSize is the largest group. It keeps distances on the ring to four bytes,
// which a simulation of a million processes feels.
const MaxSize = math.MaxInt32

// ErrPlan is what every error about a [Config] that makes no sense wraps.
var ErrPlan = errors.New("broadcast: this combination makes no sense")

// Plan is a broadcast all processes have agreed to, checked and ready to run.
// It is shared by its processes and does not change.
type Plan struct {
	ring           topology.Ring
	root           protocol.Rank
	dissemination  Dissemination
	tree           topology.Tree // nil without one
	correction     Correction
	start          Start
	at             protocol.Time // 0 if overlapped
	hop            protocol.Time
	earlyOnlyRelay bool
	line           bool
	detector       bool
	seed           uint64
}

// NewPlan checks the configuration. The error says which two settings do not go
// together, and why.
func NewPlan(c Config) (*Plan, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	var tree topology.Tree
	if along, ok := c.Dissemination.(interface{ topology() topology.Tree }); ok {
		tree = along.topology()
	}
	if c.Correction == nil {
		c.Start, c.At = Overlapped, 0 // nothing to start
	}
	_, detector := c.Dissemination.states(1)(0).(observer)
	return &Plan{
		ring:           topology.Ring{Size: c.Size},
		root:           c.Root,
		dissemination:  c.Dissemination,
		tree:           tree,
		correction:     c.Correction,
		start:          c.Start,
		at:             c.At,
		hop:            c.Dissemination.hop(),
		earlyOnlyRelay: c.EarlyOnlyRelay,
		line:           c.Line,
		detector:       detector,
	}, nil
}

func (c *Config) check() error {
	switch {
	case c.Size < 1 || c.Size > MaxSize:
		return fmt.Errorf("a broadcast takes 1 to %d processes, not %d", MaxSize, c.Size)
	case c.Root < 0 || c.Root >= c.Size:
		return fmt.Errorf("the root must be one of the ranks 0 to %d, not %d", c.Size-1, c.Root)
	case c.Dissemination == nil:
		return errors.New("no dissemination given: correction alone needs a full circle of messages")
	case c.At < 0 || c.Start == Overlapped && c.At != 0:
		return fmt.Errorf("correction at %d: only a synchronized correction starts at a given time, from 0 on", c.At)
	}
	if err := c.Dissemination.check(c); err != nil {
		return err
	}
	if c.Correction == nil {
		return nil
	}
	return c.Correction.check(c)
}

// beginning is the time a process reckons from that m has colored: now; but
// where messages carry a clock, when the broadcast began, as far as it tells
// (Corrected Gossip, Algorithm 1).
func (p *Plan) beginning(now protocol.Time, m *Message) protocol.Time {
	switch {
	case p.hop == 0:
		return now
	case m.Phase == protocol.Correction || m.From == protocol.NoRank:
		return 0
	default:
		return now - p.hop - protocol.Time(m.Body.Clock)
	}
}

// NeedsDetector reports whether the broadcast only works with a failure
// detector.
func (p *Plan) NeedsDetector() bool { return p.detector }

// Process makes the machine of one process.
func (p *Plan) Process(rank protocol.Rank) *Process {
	proc := &Process{plan: p, self: int32(rank), dissemination: p.dissemination.states(1)(0)}
	if p.correction != nil {
		proc.correction = p.correction.states(1)(0)
	}
	proc.Reset()
	return proc
}
