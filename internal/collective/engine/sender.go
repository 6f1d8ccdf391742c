package engine

import (
	"context"

	"github.com/pleach-go/pleach/internal/base/notify"
)

// sender sends what no call waits for: progress reports, notices, and replayed messages.
// Its methods are called with the engine's lock held, so they only queue.
type sender struct {
	wakeup  chan struct{}
	outbox  []outMsg
	asks    map[int]bool    // ranks to ask for their progress
	reports map[int]bool    // ranks that are to get this process's progress
	replay  bool            // tasks have moved
	busy    bool            // messages are on their way to the link
	idle    notify.Notifier // nothing is left to send
}

// outMsg is an outgoing message.
type outMsg struct {
	to         int
	head, body []byte
}

// everyOther, as the receiver of a message, is every other rank in the view.
const everyOther = -1

func (s *sender) init() {
	s.wakeup = make(chan struct{}, 1)
	s.asks, s.reports = make(map[int]bool), make(map[int]bool)
}

func (s *sender) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// askProgress asks a rank for its progress.
func (s *sender) askProgress(rank int) {
	s.asks[rank] = true
	s.wake()
}

// reportProgress tells a rank this process's progress.
func (s *sender) reportProgress(rank int) {
	s.reports[rank] = true
	s.wake()
}

// replayLog sends logged messages to where their tasks are now.
func (s *sender) replayLog() {
	s.replay = true
	s.wake()
}

// enqueue sends a message.
func (s *sender) enqueue(m outMsg) {
	s.outbox = append(s.outbox, m)
	s.wake()
}

// pending reports whether something is left to send.
func (s *sender) pending() bool {
	return s.busy || s.replay || len(s.outbox) > 0 || len(s.asks) > 0 || len(s.reports) > 0
}

// runSender sends until the engine ends.
func (e *Engine) runSender() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.sender.wakeup:
		}
		for _, m := range e.takeOutbox() {
			// A process that has left needs no message.
			_ = e.config.Link.Send(e.ctx, m.to, m.head, m.body)
		}
		e.mu.Lock()
		e.sender.busy = false
		if !e.sender.pending() {
			e.sender.idle.Notify()
		}
		e.mu.Unlock()
	}
}

// takeOutbox returns what is to be sent now.
func (e *Engine) takeOutbox() (all []outMsg) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, self := &e.sender, e.config.Rank
	var replayed []outMsg
	if s.replay {
		replayed = e.replay() // first, because it may add to the outbox
	}
	for _, m := range s.outbox {
		if m.to != everyOther {
			all = append(all, m)
			continue
		}
		for _, r := range e.peers.members() {
			if r != self {
				all = append(all, outMsg{r, m.head, m.body})
			}
		}
	}
	if len(s.asks)+len(s.reports) > 0 {
		for _, r := range e.peers.members() {
			if r != self && (s.asks[r] || s.reports[r]) {
				head, body := e.progressReport(s.asks[r])
				all = append(all, outMsg{r, head, body})
			}
		}
	}
	all = append(all, replayed...)
	s.replay, s.outbox, s.busy = false, nil, true
	clear(s.asks)
	clear(s.reports)
	return all
}

// Flush returns when the link has every message that calls have left behind: a call
// returns before its last notices are sent.
func (e *Engine) Flush(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.sender.pending() && e.err == nil {
		idle := e.sender.idle.Wait()
		e.mu.Unlock()
		select {
		case <-idle:
		case <-e.ctx.Done():
		case <-ctx.Done():
		}
		e.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return e.err
}
