package engine

// progressReport returns this process's progress as a message.
func (e *Engine) progressReport(request bool) (head, body []byte) {
	c := &e.calls
	p := progressReport{
		request: request, last: c.last, next: c.next, agreements: int(e.agreements.begun),
		view: uint32(e.peers.view), finished: c.finished, lowWater: e.log.lowWater,
	}
	p.firstHeld, p.holds = e.holds.first()
	return p.bytes()
}

// handleProgress takes in another process's progress.
func (e *Engine) handleProgress(from int, p *progressReport) {
	s := e.peers.of(from)
	s.reports++
	s.reportedAt = e.now()
	s.asking.answer(p.next > s.next || p.finished > s.finished)
	s.heard, s.agreements = true, max(s.agreements, p.agreements)
	if p.next >= s.next {
		s.next, s.last = p.next, p.last
	}
	s.holds, s.firstHeld = p.holds, p.firstHeld
	if s.holds {
		e.log.advanced.Notify() // a call that waits may have to fail
	}
	e.trimLog(p.lowWater)
	if p.view == uint32(e.peers.view) {
		s.finished = max(s.finished, p.finished)
		e.updateLowWater()
	}
	if p.request {
		e.sender.reportProgress(from)
	}
}

// updateLowWater computes the low-water mark from what all processes have reported.
func (e *Engine) updateLowWater() {
	low := e.calls.finished
	for _, r := range e.peers.members() {
		if r != e.config.Rank {
			low = min(low, e.peers.of(r).finished)
		}
	}
	e.trimLog(low)
}

// timeoutError is the error of a call whose context has ended.
func (e *Engine) timeoutError(o *callState, cause error) error {
	t := &TimeoutError{Call: o.number, What: e.calls.last.String(), View: e.peers.view, Err: cause}
	if o.local != nil {
		t.What = o.local.signature.String()
	}
	t.Missing, t.Waiting = e.missing(o), e.waitingFor(o)
	return t
}

// missing returns the processes that have not come to a call: those that have said so or were asked
// and have not answered. If there is none yet, it returns all that are not known to have come.
func (e *Engine) missing(o *callState) (known []Missing) {
	var unknown []Missing
	for _, r := range e.peers.members() {
		s := e.peers.of(r)
		if r == e.config.Rank || s.cameTo(o) {
			continue
		}
		m := Missing{Rank: r, Calls: s.next, Last: s.last.String(), Silent: !s.heard}
		if o.local != nil && s.reportedSince(o.local.began) || s.asking.unanswered > 0 {
			known = append(known, m)
		} else {
			unknown = append(unknown, m)
		}
	}
	if len(known) == 0 {
		return unknown
	}
	return known
}

// cameTo reports whether a process has begun a call, as far as this one knows.
func (s *peerStatus) cameTo(o *callState) bool {
	if o.agreement != nil {
		return s.agreements > int(o.agreement.number)
	}
	return s.next > o.number
}

// waitingFor returns the ranks whose messages a call waits for now.
func (e *Engine) waitingFor(o *callState) (ranks []int) {
	waiting := make([]bool, e.config.Size)
	for _, s := range o.mailbox.all() {
		if s.awaited {
			waiting[e.peers.owner(s.envelope.from)] = true
		}
	}
	if o.agreement != nil && !o.agreement.decided {
		e.agreementWaitsFor(o.agreement, waiting)
	}
	for _, r := range e.peers.members() {
		if waiting[r] {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
