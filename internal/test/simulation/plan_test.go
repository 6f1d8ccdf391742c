package simulation

import (
	"fmt"
	"math/rand/v2"

	"github.com/pleach-go/pleach/internal/machine/p2p"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// plan is what a seed decides before the run: the size of the group, its limits, the
// network, and how much happens. Limits are small, so that few bytes exercise flow
// control. Most groups are small and most runs short, so that many seeds can be run.
type plan struct {
	size        int
	begin       beginning
	durable     bool // hosts have disks
	moves       bool // a process that starts gets another address
	apart       apartness
	fragile     int // a process crashes at one of so many actions; 0: it does not
	crashes     int // at actions, at most
	end         protocol.Time
	stream      stream.Config
	flat        int // as in membership.Config
	heartbeat   protocol.Time
	slowTimeout protocol.Time
	// The network: a packet takes latency, up to jitter more, and perByte for each byte.
	latency, jitter, perByte protocol.Time
	queueBytes               int
	userTimeout              protocol.Time
	// Programs: pace is how long one takes to receive batch messages.
	pace     protocol.Time
	batch    int
	messages int
	longest  int
	polls    int
	unicasts int
	unicast  p2p.Config
	troubles int
	doubles  bool // processes may come twice
	// Services: operations of clients, leases that are wanted, steps of clocks, and crashes of
	// processes that are about to do something.
	operations, leases, steps, falls int
	marks                            bool // tokens rise over groups by disks, and not by clocks
	stopped                          bool // all processes crash once, and come back
}

// beginning is how a group begins.
type beginning int

const (
	given   beginning = iota // all members start together, as those of a World
	created                  // the first process creates it, and the others join
	founded                  // all processes look for it, and begin it by agreement
)

// String tells what matters for the lives of members.
func (p *plan) String() string {
	text := fmt.Sprintf("%d hosts, the group is %s", p.size, [...]string{
		"given", "created by the first",
		"founded by all",
	}[p.begin])
	if p.durable {
		text += ", with disks"
	}
	if p.apart > 0 {
		text += [...]string{
			"", ", members crash as they admit another", ", all but one are started again",
			", the first knows no other",
		}[p.apart]
	}
	if p.moves {
		text += ", each start has another address"
	}
	if p.fragile > 0 {
		text += fmt.Sprintf(", a crash at one of %d actions, %d times", p.fragile, p.crashes)
	}
	return text
}

// drawLife draws how members begin, end and come back.
func (p *plan) drawLife(rng *rand.Rand) {
	p.durable = p.begin != given && rng.IntN(2) == 0
	if !p.durable {
		return
	}
	p.moves, p.doubles = rng.IntN(4) == 0, false
	if rng.IntN(2) == 0 {
		p.fragile, p.crashes = 20<<rng.IntN(5), 1+rng.IntN(12)
	}
	if rng.IntN(2) == 0 { // where one vote more or less matters most
		p.size = 2 + rng.IntN(4)
	}
}

// planMoves makes a plan one of processes that are started again elsewhere.
func (p *plan) planMoves(rng *rand.Rand) {
	p.size, p.begin = 9+rng.IntN(8), created
	p.durable, p.moves, p.doubles = true, true, false
	if rng.IntN(2) == 0 {
		p.flat = -1
	}
}

func drawPlan(rng *rand.Rand) plan {
	p := plan{
		size: 5 + rng.IntN(4), begin: beginning(rng.IntN(3)), end: between(rng, 500*millisecond, 4*second),
		heartbeat: 300 * millisecond, slowTimeout: between(rng, second, 5*second),
		latency: between(rng, 20*microsecond, 2*millisecond), perByte: protocol.Time(1 + rng.IntN(2000)),
		queueBytes: 1 << (11 + rng.IntN(8)), userTimeout: between(rng, 2*second, 10*second),
		pace: between(rng, microsecond, 200*microsecond), batch: 1 + rng.IntN(64),
		messages: rng.IntN(120), polls: rng.IntN(6), troubles: rng.IntN(7), doubles: rng.IntN(2) == 0,
	}
	switch x := rng.IntN(100); {
	case x < 1:
		p.size, p.end = 20+rng.IntN(21), 2*second
	case x < 10:
		p.size = 9 + rng.IntN(11)
	case x < 20: // where one death more makes a majority of a minority
		p.size = 3 + rng.IntN(2)
	case x < 25:
		p.end, p.troubles = between(rng, 5*second, 30*second), 4+rng.IntN(12)
	}
	p.drawLife(rng)
	p.jitter = between(rng, 1, 4*p.latency)
	segment := 64 << rng.IntN(5)
	keep := segment * (16 << rng.IntN(5))
	p.stream = stream.Config{
		SegmentSize: segment, InlineSize: 16 << rng.IntN(5), MaxMessage: 1 << 20,
		KeepBytes: keep, InboxBytes: keep >> rng.IntN(3), OutboxBytes: segment * (2 << rng.IntN(5)),
	}
	p.longest = segment * (1 + rng.IntN(5))
	p.unicast = p2p.Config{
		SegmentSize: segment, WindowBytes: segment * (1 << rng.IntN(4)),
		QueueBytes: segment * (4 << rng.IntN(4)),
	}
	if rng.IntN(2) == 0 {
		p.unicasts = rng.IntN(40)
	}
	return p
}
