package relay

// An origin forwards a message to the lead of its zone beside its broadcast. So the lead ships
// the message while it spreads in the zone, and other zones get it earlier by almost the time
// of a broadcast. A request takes as much work as some hops of the broadcast do. If messages
// follow each other fast, or are long, throughput counts more than that time, and they are
// broadcast only.

// maxForward is the length of the longest message that is forwarded.
const maxForward = 1 << 10

// forward forwards a message of this process to the lead, unless the last one was forwarded
// just now.
func (m *Machine) forward(now Time, f *frame) {
	due := m.lastForward == 0 || now >= m.lastForward+m.config.ForwardDelay
	if m.active || m.leader == m.rank || m.config.ForwardDelay == 0 || !due || len(f.data) > maxForward {
		return
	}
	m.lastForward = now
	m.actions = append(m.actions, Forward{m.leader, f.append(nil)})
}
