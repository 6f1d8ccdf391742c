package relay

// An origin forwards a message to the lead of its zone beside its broadcast. So the lead ships
// the message while it spreads in the zone, and other zones get it earlier by almost the time
// of a broadcast. A request takes as much work as some hops of the broadcast do. If messages
// follow each other fast, or are long, throughput counts more than that time, and they are
// broadcast only.

// forwarder is the part of an origin.
type forwarder struct {
	*journal
	leader      int // rank of the delegate that has broadcast the last watermark
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
