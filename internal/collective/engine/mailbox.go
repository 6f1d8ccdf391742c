package engine

// envelope identifies a message within a call (the envelope of MPI's matching). A
// second message with the same envelope is a duplicate, because messages are determined
// by the tasks' inputs.
type envelope struct{ step, from, to int }

// slot is where a message arrives, or is awaited.
type slot struct {
	envelope envelope
	payload  Payload
	digest   uint64 // of the message, once it is here
	here     bool
	awaited  bool          // by a task
	wake     chan struct{} // takes a sign for the task; nil: none has slept here
}

// sleep returns the channel that wakes the task that awaits the message. A sign may be left
// of an earlier wait, so the task looks again.
func (s *slot) sleep() <-chan struct{} {
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	return s.wake
}

// wakeTask wakes the task that awaits the message, if one does.
func (s *slot) wakeTask() {
	if !s.awaited || s.wake == nil {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// mailbox has the slots of a call. Most calls have few, so a list is fastest.
type mailbox struct {
	slots []*slot // those in use, and behind them those for later use
	used  int
	index map[envelope]*slot // of all in use, if they are more than maxListed
}

const (
	maxListed  = 8
	firstSlots = 4  // are allocated together
	moreSlots  = 16 // if that is not enough
)

// all returns the slots in use.
func (m *mailbox) all() []*slot { return m.slots[:m.used] }

// slot returns the slot of an envelope.
func (m *mailbox) slot(k envelope) *slot {
	if m.used > maxListed {
		if s := m.index[k]; s != nil {
			return s
		}
		return m.add(k)
	}
	for _, s := range m.all() {
		if s.envelope == k {
			return s
		}
	}
	return m.add(k)
}

// add takes a slot into use.
func (m *mailbox) add(k envelope) *slot {
	if m.used == len(m.slots) {
		m.grow()
	}
	s := m.slots[m.used]
	s.envelope = k
	switch m.used++; {
	case m.used == maxListed+1:
		if m.index == nil {
			m.index = make(map[envelope]*slot)
		}
		for _, s := range m.all() {
			m.index[s.envelope] = s
		}
	case m.used > maxListed:
		m.index[k] = s
	}
	return s
}

func (m *mailbox) grow() {
	n := firstSlots
	if len(m.slots) > 0 {
		n = moreSlots
	}
	more := make([]slot, n)
	for i := range more {
		m.slots = append(m.slots, &more[i])
	}
}

// clear takes all slots out of use.
func (m *mailbox) clear() {
	for _, s := range m.all() {
		*s = slot{wake: s.wake}
	}
	m.used = 0
	clear(m.index)
}

// put delivers a message. It drops duplicates, and reports whether one differs from the
// message that it repeats.
func (o *callState) put(k envelope, p Payload, digest uint64) (differs bool) {
	s := o.mailbox.slot(k)
	if s.here {
		p.Release()
		return digest != s.digest
	}
	s.payload, s.here, s.digest = p, true, digest
	o.changed.Notify()
	s.wakeTask()
	s.awaited = false
	return false
}
