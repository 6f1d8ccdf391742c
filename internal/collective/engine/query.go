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

// queries are what this process has asked, and what it is asked. Neither map exists
// before the first takeover.
type queries struct {
	sent map[int]uint64 // by rank: it was asked in this view about calls before this one
	open map[int]uint64 // by rank: it asks about calls before this one
}

// query asks the process whose task's message a taken-over task waits for.
func (e *Engine) query(o *callState, k envelope) {
	rank := e.peers.owner(k.from)
	if !o.returned || k.to == e.config.Rank || rank == e.config.Rank || o.number < e.queries.sent[rank] {
		return
	}
	if e.queries.sent == nil {
		e.queries.sent = make(map[int]uint64)
	}
	e.queries.sent[rank] = o.number + 1
	q := query{call: o.number, view: uint32(e.peers.view), lowWater: e.log.lowWater}
	e.sender.enqueue(outMsg{to: rank, head: q.bytes()})
}

// queryAgain asks in a new view, in which tasks have other owners.
func (e *Engine) queryAgain() {
	clear(e.queries.sent)
	for n := e.log.lowWater; n < e.calls.returned; n++ {
		o := e.calls.byNumber[n]
		if o == nil {
			continue
		}
		for _, s := range o.mailbox.all() {
			if s.awaited {
				e.query(o, s.envelope)
			}
		}
	}
}

// handleQuery handles that a process waits for this one's messages.
func (e *Engine) handleQuery(from int, call uint64) {
	if e.queries.open == nil {
		e.queries.open = make(map[int]uint64)
	}
	e.queries.open[from] = max(e.queries.open[from], call+1)
	e.answerQueries()
}

// answerQueries reports the low-water mark to the processes that wait.
func (e *Engine) answerQueries() {
	for rank, before := range e.queries.open {
		e.sender.reportProgress(rank)
		if before <= e.log.lowWater {
			delete(e.queries.open, rank)
		}
	}
}
