package relay

import (
	"maps"
	"slices"
)

// An origin forwards a message to the lead of its zone and broadcasts it. So the lead ships
// the message while it spreads in the zone, and other zones get it earlier by almost the time
// of a broadcast. A request takes as much work as some hops of the broadcast do. If messages
// follow each other fast, or are long, throughput counts more than that time, and they are
// broadcast only.
//
// The origin may die before any member has its broadcast. Then the lead, and soon other zones,
// have a message that its zone lacks. So the lead broadcasts what was forwarded to it if the
// origin does not do so for a while.

// forwarder is the part of an origin.
type forwarder struct {
	*journal
	forwarded   map[Origin]*stream // streams with messages that were only forwarded
	leader      int                // rank of the delegate that has broadcast the last watermark
	lastForward Time
}

// maxForward is the length of the longest message that is forwarded.
const maxForward = 1 << 10

// forward forwards a message of this process to the lead, unless the last one was forwarded
// just now.
func (o *forwarder) forward(now Time, raw []byte, size int) {
	due := o.lastForward == 0 || now >= o.lastForward+o.config.ForwardDelay
	if o.active || o.leader == o.rank || o.config.ForwardDelay == 0 || !due || size > maxForward {
		return
	}
	o.lastForward = now
	o.add(Forward{o.leader, raw})
}

// Forwarded takes in a message that a member of the zone has forwarded.
func (m *Machine) Forwarded(now Time, rank int, b []byte) error {
	var f frame
	if _, err := f.next(b, m.known); err != nil || f.kind != kindData || !m.ready {
		return err
	}
	s := m.streamOf(now, &f)
	m.forwarder.note(now, s, f.seq)
	if s.own {
		m.arrive(now, s, f.seq, f.message(), false)
		m.enqueue(s)
	}
	m.step(now)
	return nil
}

// note notes that a message was forwarded, if it is the next.
func (o *forwarder) note(now Time, s *stream, seq uint64) {
	if s.own && seq == max(s.next, 1) && s.forwarded == 0 {
		s.forwarded, s.since = seq, now
		o.forwarded[s.origin] = s
	}
}

// confirm notes that a message was broadcast in the zone.
func (o *forwarder) confirm(s *stream, seq uint64) {
	if s.forwarded == 0 || seq < s.forwarded {
		return
	}
	s.forwarded = seq + 1
	if seq >= s.position() {
		s.forwarded = 0
		delete(o.forwarded, s.origin)
	}
	o.release(s)
}

// spread broadcasts what was only forwarded for long.
func (o *forwarder) spread(now Time) {
	for _, origin := range slices.SortedFunc(maps.Keys(o.forwarded), compareOrigins) {
		s := o.forwarded[origin]
		if now < s.since+o.config.GapDelay {
			continue
		}
		for seq := max(s.forwarded, s.first); seq < s.next; seq++ {
			o.add(Cast{s.at(seq).raw})
		}
		o.confirm(s, s.position())
	}
}

func (o *forwarder) deadline(d *deadline) {
	for _, s := range o.forwarded {
		d.at(s.since + o.config.GapDelay)
	}
}
