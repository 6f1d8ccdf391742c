package engine

// envelope identifies a message within a call (the envelope of MPI's matching). A
// second message with the same envelope is a duplicate, because messages are determined
// by the tasks' inputs.
type envelope struct{ step, from, to int }

// slot is where a message arrives, or is awaited.
type slot struct {
	payload Payload
	digest  uint64 // of the message, once it is here
	here    bool
	wait    chan struct{} // not nil if a task waits
}

// slot returns the slot of an envelope.
func (o *callState) slot(k envelope) *slot {
	s := o.mailbox[k]
	if s == nil {
		if i := o.inline.usedSlots; i < len(o.inline.slots) {
			s = &o.inline.slots[i]
			o.inline.usedSlots++
		} else {
			s = &slot{}
		}
		o.mailbox[k] = s
	}
	return s
}

// put delivers a message. It drops duplicates, and reports whether one differs from the
// message that it repeats.
func (o *callState) put(k envelope, p Payload, digest uint64) (differs bool) {
	s := o.slot(k)
	if s.here {
		p.Release()
		return digest != s.digest
	}
	s.payload, s.here, s.digest = p, true, digest
	o.changed.Notify()
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
	return false
}
