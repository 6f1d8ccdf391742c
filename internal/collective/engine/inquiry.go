package engine

// A process that takes over a task runs its part in calls that it had finished itself, and
// waits for messages there. The sender of such a message replays it, unless all processes
// had finished the call and the sender has trimmed it. The new owner cannot tell these two
// apart, so it asks, and asks only the processes that it waits for: if all processes told
// it unasked, the last of them would wait for the new owner's link as long as all others
// take.
//
// A process that is asked reports its low-water mark. It does so again after each view,
// because an answer from before the view says nothing of what is replayed after it, and
// whenever the mark rises, because it may have taken over the task whose message is awaited,
// and learn only later that the part need not be run.
//
// No process asks about a call that it has not finished, since none can have trimmed that.

// inquiries are what this process has asked, and what it is asked. Neither map exists
// before the first takeover.
type inquiries struct {
	sent map[int]uint64 // by rank: it was asked in this view about calls before this one
	open map[int]uint64 // by rank: it asks about calls before this one
}

// inquire asks the process whose task's message a taken-over task waits for.
func (e *Engine) inquire(o *callState, k envelope) {
	rank := e.peers.owner(k.from)
	if !o.returned || k.to == e.config.Rank || rank == e.config.Rank || o.number < e.inquiries.sent[rank] {
		return
	}
	if e.inquiries.sent == nil {
		e.inquiries.sent = make(map[int]uint64)
	}
	e.inquiries.sent[rank] = o.number + 1
	i := inquiry{call: o.number, view: uint32(e.peers.view), lowWater: e.log.lowWater}
	e.sender.enqueue(outMsg{to: rank, head: i.bytes()})
}

// inquireAgain asks in a new view, in which tasks have other owners.
func (e *Engine) inquireAgain() {
	clear(e.inquiries.sent)
	for n := e.log.lowWater; n < e.calls.returned; n++ {
		o := e.calls.byNumber[n]
		if o == nil {
			continue
		}
		for k, s := range o.mailbox {
			if s.wait != nil {
				e.inquire(o, k)
			}
		}
	}
}

// handleInquiry handles that a process waits for this one's messages.
func (e *Engine) handleInquiry(from int, call uint64) {
	if e.inquiries.open == nil {
		e.inquiries.open = make(map[int]uint64)
	}
	e.inquiries.open[from] = max(e.inquiries.open[from], call+1)
	e.answerInquiries()
}

// answerInquiries reports the low-water mark to the processes that wait.
func (e *Engine) answerInquiries() {
	for rank, before := range e.inquiries.open {
		e.sender.reportProgress(rank)
		if before <= e.log.lowWater {
			delete(e.inquiries.open, rank)
		}
	}
}
