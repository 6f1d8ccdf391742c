package zones

import (
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// sparseRunner simulates a fleet level by level: every message of the backbone, which
// says when each zone begins, and of each zone only what its dead change. A zone begins
// when its delegate has sent what the backbone has for it. That the other delegates'
// ports, and later messages of the backbone, are in the way of the zone is left out:
// [eventsRunner] shows more exactly by a few overheads what fits into its memory.
type sparseRunner struct {
	*Scenario
	backbone *logp.Simulator[broadcast.Body]
	group    *broadcast.Group
	dead     *logp.DeadSet
	inZone   *logp.DeadSet
	zones    []*logp.Sparse  // by the delegate that begins
	idle     []logp.Result   // of a zone in which no process is dead
	reached  []protocol.Time // by rank of the backbone: when it got the message
	free     []protocol.Time // and when it had sent what followed from that
}

func (s *Scenario) sparseRunner() (runner, error) {
	rule, err := s.sparse()
	if err != nil {
		return nil, err
	}
	plan, err := s.backbonePlan(0)
	if err != nil {
		return nil, err
	}
	onBackbone := Layout{Zones: s.Zones, Members: s.Delegates}
	params := s.network()
	params.Zones.Of = onBackbone.zoneOf()
	r := &sparseRunner{
		Scenario: s, group: plan.Group(), dead: logp.NewDeadSet(s.Size()), inZone: logp.NewDeadSet(s.Members),
		reached: make([]protocol.Time, onBackbone.Size()), free: make([]protocol.Time, onBackbone.Size()),
	}
	if r.backbone, err = logp.NewSimulator[broadcast.Body](params); err != nil {
		return nil, err
	}
	r.backbone.Initiators = r.group.Initiators()
	r.backbone.Trace = r.note
	for i := range s.Delegates {
		if err := r.addZone(i, rule); err != nil {
			return nil, err
		}
	}
	return r.run, nil
}

// addZone makes the simulator of a zone in which that delegate begins.
func (r *sparseRunner) addZone(delegate protocol.Rank, rule sparseRule) error {
	tree, err := topology.New(r.Shape, topology.Interleaved, r.Members, delegate)
	if err != nil {
		return err
	}
	params := logp.Params{L: r.L, O: r.O}
	lineage, err := logp.NewLineage(tree, params)
	if err != nil {
		return err
	}
	sim, err := logp.NewSparse(params, lineage, rule.kind, rule.distance)
	if err != nil {
		return err
	}
	idle, err := sim.Run(r.inZone)
	r.zones, r.idle = append(r.zones, sim), append(r.idle, idle)
	return err
}

// note takes an event of the backbone.
func (r *sparseRunner) note(e logp.Event) {
	switch e.What {
	case logp.Colored:
		r.reached[e.Rank], r.free[e.Rank] = e.Time, e.Time
	case logp.Sent:
		if r.free[e.Rank] == e.Time { // without a pause since it got the message
			r.free[e.Rank] += r.overhead(e.Rank, e.Peer)
		}
	}
}

func (r *sparseRunner) overhead(a, b protocol.Rank) protocol.Time {
	if a/r.Delegates == b/r.Delegates {
		return r.O
	}
	return r.FarO
}

func (r *sparseRunner) run(n int) (result, error) {
	if err := r.draw(r.dead, experiments.RunSeed(r.Seed, n)); err != nil {
		return result{}, err
	}
	var dead []protocol.Rank // of the backbone
	for i := range r.reached {
		r.reached[i], r.free[i] = protocol.Never, protocol.Never
		if p := r.ofBackbone(protocol.Rank(i)); r.dead.Has(p) {
			dead = append(dead, protocol.Rank(i))
		}
	}
	home := r.onBackbone(r.Origin/r.Members, 0)
	r.reached[home], r.free[home] = 0, 0
	sum, err := r.backbone.Run(r.group.Machines(0), logp.Faults{Dead: dead})
	if err != nil {
		return result{}, err
	}
	// A delegate that the backbone reaches late has the message from its zone by then.
	sum.Coloring, sum.Live, sum.Unreached, sum.MaxGap = 0, 0, 0, 0
	for z := range r.Zones {
		if err := r.runZone(&sum, z); err != nil {
			return result{}, err
		}
	}
	return result{sum, r.cutOff(r.dead)}, nil
}

// runZone simulates one zone from when its first live delegate begins, and adds it up.
func (r *sparseRunner) runZone(sum *logp.Result, zone protocol.Rank) error {
	r.inZone.Cut(r.dead, zone*r.Members)
	live := r.Members - protocol.Rank(r.inZone.Len())
	sum.Live += live
	delegate, begins := r.begins(zone)
	if begins == protocol.Never {
		sum.Unreached += live
		return nil
	}
	got := r.idle[delegate]
	if live < r.Members {
		var err error
		if got, err = r.zones[delegate].Run(r.inZone); err != nil {
			return err
		}
	}
	sum.Coloring = max(sum.Coloring, begins+got.Coloring)
	sum.Quiescence = max(sum.Quiescence, begins+got.Quiescence)
	sum.LastSend = max(sum.LastSend, begins+got.LastSend)
	sum.MaxGap = max(sum.MaxGap, got.MaxGap)
	sum.Unreached += got.Unreached
	for phase, messages := range got.Messages {
		sum.Messages[phase] += messages
	}
	return nil
}

// begins is which delegate of a zone broadcasts in it, and when: the one that is due
// first. That no other one is due before the message reaches it is what makes it the only
// one, and the takeover is long enough for that.
func (r *sparseRunner) begins(zone protocol.Rank) (delegate protocol.Rank, at protocol.Time) {
	first := r.onBackbone(zone, 0)
	at = protocol.Never
	for i, reached := range r.reached[first : first+r.Delegates] {
		if reached == protocol.Never {
			continue
		}
		due := max(reached+protocol.Time(i)*r.Takeover, r.free[int(first)+i])
		if due < at {
			delegate, at = protocol.Rank(i), due
		}
	}
	return delegate, at
}
