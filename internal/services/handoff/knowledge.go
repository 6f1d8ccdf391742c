package handoff

import "slices"

// What a machine knows of other owners, from their messages.

// Receive takes a message of another member.
func (m *Machine) Receive(now Time, msg Message) {
	_, differs := m.conflict(msg.From)
	switch {
	case msg.From == m.self:
	case msg.Kind == TermsOf && msg.View <= m.view:
		m.takeTerms(&msg)
	case differs: // its partitions are others
	case msg.View > m.view:
		if most := 64 + 4*len(m.in); len(m.pending) >= most { // what is lost is waited for by time
			m.pending = slices.Delete(m.pending, 0, 1)
		}
		m.pending = append(m.pending, msg)
	case msg.Kind == Report:
		m.takeReport(now, &msg)
	default:
		for _, item := range msg.Items {
			m.learn(now, item, &msg)
		}
	}
}

// takeReport takes what a member holds. What it held before and does not report is not held
// by it.
func (m *Machine) takeReport(now Time, msg *Message) {
	reported, present := m.in[msg.From]
	if msg.View != m.view || !present {
		return
	}
	m.appeared(msg.From)
	if !reported {
		m.in[msg.From] = true
		m.missing--
	}
	for p := range m.parts {
		if part := &m.parts[p]; part.holder == msg.From && !part.released {
			part.holder = Process{Rank: nobody}
		}
	}
	for _, item := range msg.Items {
		m.learn(now, item, msg)
	}
	m.settle()
}

// learn takes what a member says of a partition, unless a later owner is known.
func (m *Machine) learn(now Time, item Item, msg *Message) {
	part := &m.parts[item.Partition]
	if item.Token < part.held {
		return
	}
	_, present := m.in[msg.From]
	if msg.Kind != Released {
		if present && !(part.released && part.held == item.Token) {
			part.holder, part.held, part.released, part.told = msg.From, item.Token, false, now
		}
		return
	}
	// Another process may have begun in the view of the release, if the map named it.
	exclusive := msg.View == m.view || msg.View+1 == m.view && (part.before == m.self || part.before == msg.From)
	part.holder, part.held, part.released = msg.From, item.Token, exclusive
	if !exclusive {
		part.holder = Process{Rank: nobody}
	}
}

// Missing returns the members of the view whose reports have not arrived, in order of rank.
func (m *Machine) Missing() (missing []Process) {
	for p, reported := range m.in {
		if !reported {
			missing = append(missing, p)
		}
	}
	slices.SortFunc(missing, func(a, b Process) int { return a.Rank - b.Rank })
	return missing
}

// Report returns the report of this process in its view, for members that lack it.
func (m *Machine) Report() Message {
	msg := Message{Kind: Report, View: m.view, From: m.self}
	for p := range m.parts {
		if part := &m.parts[p]; part.state != idle {
			msg.Items = append(msg.Items, Item{p, part.token})
		}
	}
	return msg
}

func (m *Machine) send(k Kind, items []Item) {
	m.out.Send = append(m.out.Send, Message{Kind: k, View: m.view, From: m.self, Items: items})
}
