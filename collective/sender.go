package collective

import (
	"context"

	"github.com/pleach-go/pleach/internal/notify"
)

// clerk sends what no call waits for: news, notices and letters whose task has
// moved. Whoever has something for it holds the engine's lock, and may not wait.
type sender struct {
	wakeup    chan struct{}
	replies   map[int]bool // by rank: it has asked for news
	askPeers  bool         // everybody is to be asked for news
	resendLog bool         // tasks have moved
	outbox    []outMsg
	busy      bool            // it is sending
	idle      notify.Notifier // notifies when it has nothing left to send
}

// errand is a message to send.
type outMsg struct {
	to         int
	head, body []byte
}

// everybody, as the receiver of an errand, is all others who are in the view.
const everybody = -1

func (c *sender) init() {
	c.wakeup = make(chan struct{}, 1)
	c.replies = make(map[int]bool)
}

func (c *sender) wake() {
	select {
	case c.wakeup <- struct{}{}:
	default:
	}
}

// askAll asks everybody how far they have come.
func (c *sender) askAll() {
	c.askPeers = true
	c.wake()
}

// reply tells one how far we have come.
func (c *sender) reply(rank int) {
	c.replies[rank] = true
	c.wake()
}

// forward sends letters to where their tasks are now.
func (c *sender) resend() {
	c.resendLog = true
	c.wake()
}

// tell sends a message to one, or to everybody.
func (c *sender) enqueue(m outMsg) {
	c.outbox = append(c.outbox, m)
	c.wake()
}

// serve is the clerk's work, until the engine ends.
func (e *Engine) runSender() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.sender.wakeup:
		}
		for _, m := range e.takeOutbox() {
			// Who is not there any more needs nothing.
			_ = e.config.Link.Send(e.ctx, m.to, m.head, m.body)
		}
		e.mu.Lock()
		if e.sender.busy = false; !e.sender.working() {
			e.sender.idle.Notify()
		}
		e.mu.Unlock()
	}
}

// working reports whether there is something left to send.
func (c *sender) working() bool {
	return c.busy || c.askPeers || c.resendLog || len(c.outbox) > 0 || len(c.replies) > 0
}

// Flush returns when everything that calls have left to be sent is with the link:
// calls do not wait for the last word that others need.
func (e *Engine) Flush(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.sender.working() && e.err == nil {
		rests := e.sender.idle.Wait()
		e.mu.Unlock()
		select {
		case <-rests:
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

// errands takes what is to be done.
func (e *Engine) takeOutbox() (all []outMsg) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.sender
	for _, m := range c.outbox {
		if m.to != everybody {
			all = append(all, m)
			continue
		}
		for _, r := range e.members() {
			if r != e.config.Rank {
				all = append(all, outMsg{r, m.head, m.body})
			}
		}
	}
	for _, r := range e.members() {
		switch {
		case r == e.config.Rank:
		case c.askPeers:
			all = append(all, outMsg{to: r, head: e.progressHeader(typeProgressRequest)})
		case c.replies[r]:
			all = append(all, outMsg{to: r, head: e.progressHeader(typeProgress)})
		}
	}
	if c.resendLog {
		all = append(all, e.messagesToResend()...)
	}
	c.askPeers, c.resendLog, c.outbox, c.busy = false, false, nil, true
	clear(c.replies)
	return all
}
