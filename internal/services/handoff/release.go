package handoff

// The end of an ownership: in order, at its deadline, or without a word.

// Leave drains everything. This process begins nothing any more.
func (m *Machine) Leave(now Time) {
	m.leaving = true
	for p := range m.parts {
		if part := &m.parts[p]; part.state == held {
			part.state, part.deadline = draining, now+m.c.Handoff
			m.out.Drain = append(m.out.Drain, Item{p, part.token})
		}
	}
}

// Drained says that the work of a partition has ended that was to be drained.
func (m *Machine) Drained(now Time, item Item) {
	part := &m.parts[item.Partition]
	if part.state == draining && part.token == item.Token {
		m.release(now, item.Partition)
	}
}

// release ends the ownership of a partition that was drained. If the lease has expired
// meanwhile, others may own it already, and get no message.
func (m *Machine) release(now Time, p int) {
	part := &m.parts[p]
	part.state = idle
	part.holder, part.held, part.released = m.self, part.token, now <= part.deadline+m.c.Lease/4
	switch {
	case !part.released:
		part.holder, part.since = Process{Rank: nobody}, now
	case m.leaving || part.target != m.self:
		m.releases(Item{p, part.token})
	}
}

// releases adds to the message of a step, so that one has all that is released together.
func (m *Machine) releases(item Item) {
	for i := range m.out.Send {
		if msg := &m.out.Send[i]; msg.Kind == Released && msg.View == m.view {
			msg.Items = append(msg.Items, item)
			return
		}
	}
	m.send(Released, []Item{item})
}

// stop ends the ownership of a partition without a word.
func (m *Machine) stop(p int) {
	part := &m.parts[p]
	part.state, part.holder = idle, Process{Rank: nobody}
	m.out.Stop = append(m.out.Stop, Item{p, part.token})
}
