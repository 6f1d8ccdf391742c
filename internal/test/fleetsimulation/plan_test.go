package fleetsimulation

import (
	"fmt"
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/machine/relay"
)

// plan is what a seed decides before the run: sizes, limits, links, and how much happens.
// Limits are small, so that few messages exercise windows and logs.
type plan struct {
	zones, members int
	keepBytes      int
	share          int        // window of an origin
	groupWindow    int        // what a member may have on its way in its zone
	sendWindow     int        // what a delegate may have on its way to another one
	messages       int        // of each origin
	size           int        // of the longest message
	near, far      relay.Time // latency within a zone and between zones
	perByte        relay.Time // of links between zones
	pace           relay.Time // in which a program reads a message
	slow           relay.Time // in which the program of one member reads a message
	patience       relay.Time
	trouble        relay.Time // how long there is trouble
	kills, cuts    int
	stuck          int // delegates that get stuck
	dead           int // zones that die
	told           int // zones that each member is told of when it starts
	blind          int // a zone that all are told of, and that is told of itself alone; -1: none
}

func drawPlan(rng *rand.Rand) plan {
	p := plan{
		zones: 2 + rng.IntN(3), members: 1 + rng.IntN(4), keepBytes: 4096 << rng.IntN(5), messages: 20 + rng.IntN(100),
		size: 1 << rng.IntN(9),
		near: relay.Time(rng.Int64N(int64(5 * millisecond))), far: relay.Time(rng.Int64N(int64(80 * millisecond))),
		perByte: relay.Time(rng.IntN(2000)),
		pace:    relay.Time(rng.Int64N(int64(200 * microsecond))), patience: 30 * second,
		trouble: relay.Time(1+rng.Int64N(40)) * second,
		kills:   rng.IntN(5), cuts: rng.IntN(3), stuck: rng.IntN(3),
	}
	p.slow = p.pace << rng.IntN(8)
	if rng.IntN(10) == 0 {
		p.dead = 1
	}
	if rng.IntN(4) == 0 { // zones are given up
		p.patience = relay.Time(rng.Int64N(int64(5 * second)))
	}
	p.share = max(p.keepBytes/2/p.members, p.size+256)
	p.groupWindow = 1024 << rng.IntN(6)
	p.sendWindow = 1024 << rng.IntN(6)
	p.told = 2 + p.messages%(p.zones-1) // so that each zone is told of another one
	p.blind = -1
	if p.messages%3 == 0 && p.dead == 0 { // one that dies and begins again would wait for no other zone
		p.blind = p.messages % p.zones
	}
	return p
}

// toldTo returns the zones that members of a zone are told of.
func (p *plan) toldTo(zone string) (told []string) {
	for i := range p.zones {
		blind := p.blind >= 0 && zone == zoneName(p.blind)
		if zone == zoneName(i) && blind || !blind && (i < p.told || i == p.blind) {
			told = append(told, zoneName(i))
		}
	}
	return told
}

func (p *plan) String() string {
	return fmt.Sprintf("%d zones of %d, %d messages each of up to %d bytes, logs of %d bytes, windows of %d; %d kills, %d cuts, %d stuck, %d dead zones in %d s, patience %.1f s",
		p.zones, p.members, p.messages, p.size, p.keepBytes, p.share, p.kills, p.cuts, p.stuck, p.dead, p.trouble/second,
		float64(p.patience)/1e9)
}

// config is that of a machine, as package fleet makes it.
func (s *Simulation) config(m *member) relay.Config {
	window := max(s.plan.keepBytes/2, 1024)
	c := relay.Config{
		Self: relay.Origin{Zone: m.zone.name, ID: m.id, Incarnation: m.incarnation}, Born: uint64(s.now),
		KeepBytes: s.plan.keepBytes, MaxOrigins: 1 << 16,
		Window: window, AckBytes: window / 4, AckDelay: 2 * second, WatermarkDelay: 500 * millisecond, Stall: 5 * second,
		GapDelay:     500 * millisecond,
		ForwardDelay: 5 * millisecond, Patience: s.plan.patience,
	}
	c.Zones = s.plan.toldTo(m.zone.name)
	if s.options.Configure != nil {
		s.options.Configure(&c)
	}
	return c
}
