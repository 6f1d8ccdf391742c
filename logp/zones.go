package logp

import (
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/protocol"
)

// Zones make a network of two levels: LogP with parameters of its own for messages
// between processes of different zones. A port is busy for O with such a message, at
// both ends, and for [Params.O] with any other.
type Zones struct {
	// Of has the zone of each process, by rank.
	Of []int32
	// L and O are the latency and the overhead between zones.
	L, O protocol.Time
}

// Hop is the time from the start of a send to another zone to the end of its receive.
func (z *Zones) Hop() protocol.Time { return 2*z.O + z.L }

func (z *Zones) check(freeReceive bool) error {
	switch {
	case z.L < 0 || z.O < 1:
		return fmt.Errorf("logp: L = %d, o = %d between zones: L must not be negative, o at least 1", z.L, z.O)
	case z.L > MaxHop || z.O > MaxHop || z.Hop() > MaxHop:
		return fmt.Errorf("logp: L = %d, o = %d between zones: a message may take %d steps at most; choose a coarser unit", z.L, z.O, MaxHop)
	case freeReceive:
		return errors.New("logp: receives that overlap are not simulated with zones")
	}
	return nil
}

// apart reports whether a message between two processes goes from zone to zone.
func (z *Zones) apart(a, b uint32) bool { return z.Of[a] != z.Of[b] }

// zoned is the simulator's state in a network of two levels.
//
// With one overhead, the receive that ends first also began first, so a receive is
// looked at when it ends. With two, a short one may wait for a long one that began
// earlier and ends later. So here a receive is looked at when it begins.
type zoned[B any] struct {
	*Zones
	flights  calendar[B]    // messages between zones
	receives [][]receipt[B] // receives in progress, by the time of their end: a ring
	active   int            // how many
	free     []uint32       // ports that are free now, for which messages wait
}

// receipt is a receive in progress.
type receipt[B any] struct {
	flight[B]
	lost bool // the process died when the message waited
}

func newZoned[B any](z *Zones) *zoned[B] {
	if z == nil {
		return nil
	}
	return &zoned[B]{Zones: z}
}

func (z *zoned[B]) reset(overhead protocol.Time, processes int) error {
	if len(z.Of) != processes {
		return fmt.Errorf("logp: zones of %d processes, and %d processes", len(z.Of), processes)
	}
	z.flights.reset(int(z.Hop()), processes)
	if slots := int(max(overhead, z.O)) + 1; len(z.receives) != slots {
		z.receives = make([][]receipt[B], slots)
	}
	for i := range z.receives {
		z.receives[i] = z.receives[i][:0]
	}
	z.active, z.free = 0, z.free[:0]
	return nil
}

// busy reports whether a message is on its way between zones, or is received.
func (z *zoned[B]) busy() bool { return z != nil && (z.flights.active() || z.active > 0) }

// hold has a receive end at a time.
func (z *zoned[B]) hold(until protocol.Time, f *flight[B], lost bool) {
	slot := &z.receives[int(until)%len(z.receives)]
	*slot = append(*slot, receipt[B]{*f, lost})
	z.active++
}

// overhead is how long a message keeps a port busy.
func (s *Simulator[B]) overhead(f *flight[B]) protocol.Time {
	if s.zoned.apart(f.from, f.to) {
		return s.zoned.O
	}
	return s.params.O
}

// receiveInZones ends every receive that is due now, and begins others.
func (s *Simulator[B]) receiveInZones(now protocol.Time) {
	z := s.zoned
	s.arrive(now, &s.flights, s.params.O+s.params.L)
	s.arrive(now, &z.flights, z.O+z.L)
	s.endReceives(now)
	for _, to := range z.free {
		s.beginReceive(now, to)
	}
	z.free = z.free[:0]
	// Senders are asked again from the same steps, so steps stay until a hop is over.
	if sent := now - s.params.Hop(); sent >= 0 {
		s.flights.close(s.flights.at(sent))
	}
	if sent := now - z.Hop(); sent >= 0 {
		z.flights.close(z.flights.at(sent))
	}
}

// arrive lets the messages that were sent so long ago wait for their ports.
func (s *Simulator[B]) arrive(now protocol.Time, flights *calendar[B], after protocol.Time) {
	if now < after {
		return
	}
	batch := flights.at(now - after).flights
	for i := range batch {
		f := &batch[i]
		if f.to == noReceiver {
			continue
		}
		p := &s.ports[f.to]
		if p.dies <= int32(now) {
			s.lose(now, f)
			continue
		}
		s.contended.push(&s.extras[f.to].queue, f)
		if p.recvFree <= int32(now) {
			s.zoned.free = append(s.zoned.free, f.to)
		}
	}
}

// endReceives delivers what has been received by now.
func (s *Simulator[B]) endReceives(now protocol.Time) {
	z := s.zoned
	slot := &z.receives[int(now)%len(z.receives)]
	for i := range *slot {
		r := &(*slot)[i]
		if !r.lost {
			s.deliver(now, &r.flight, &s.ports[r.to])
		}
		if s.extras[r.to].queue != none {
			z.free = append(z.free, r.to)
		}
	}
	z.active -= len(*slot)
	*slot = (*slot)[:0]
}

// beginReceive gives a free port to the message that was decided first among those
// that wait for it.
func (s *Simulator[B]) beginReceive(now protocol.Time, to uint32) {
	p, queue := &s.ports[to], &s.extras[to].queue
	if p.recvFree > int32(now) || *queue == none {
		return
	}
	f := s.contended.pop(queue)
	end := now + s.overhead(&f)
	p.recvFree = int32(end)
	dead := p.dies <= int32(now)
	if dead {
		s.lose(now, &f)
	}
	s.zoned.hold(end, &f, dead)
}
