package collective

import (
	"context"
)

// clerk sends what no call waits for: news, notices and letters whose task has
// moved. Whoever has something for it holds the engine's lock, and may not wait.
type clerk struct {
	sign    chan struct{}
	replies map[int]bool // by rank: it has asked for news
	ask     bool         // everybody is to be asked for news
	move    bool         // tasks have moved
	notices []errand
	busy    bool // it is sending
	rests   bell // rings when it has nothing left to send
}

// errand is a message to send.
type errand struct {
	to         int
	head, body []byte
}

// everybody, as the receiver of an errand, is all others who are in the view.
const everybody = -1

func (c *clerk) init() {
	c.sign = make(chan struct{}, 1)
	c.replies = make(map[int]bool)
}

func (c *clerk) wake() {
	select {
	case c.sign <- struct{}{}:
	default:
	}
}

// askAll asks everybody how far they have come.
func (c *clerk) askAll() {
	c.ask = true
	c.wake()
}

// reply tells one how far we have come.
func (c *clerk) reply(rank int) {
	c.replies[rank] = true
	c.wake()
}

// forward sends letters to where their tasks are now.
func (c *clerk) forward() {
	c.move = true
	c.wake()
}

// tell sends a message to one, or to everybody.
func (c *clerk) tell(m errand) {
	c.notices = append(c.notices, m)
	c.wake()
}

// serve is the clerk's work, until the engine ends.
func (e *Engine) serve() {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.clerk.sign:
		}
		for _, m := range e.errands() {
			// Who is not there any more needs nothing.
			_ = e.config.Link.Send(e.ctx, m.to, m.head, m.body)
		}
		e.mu.Lock()
		if e.clerk.busy = false; !e.clerk.working() {
			e.clerk.rests.give()
		}
		e.mu.Unlock()
	}
}

// working reports whether there is something left to send.
func (c *clerk) working() bool {
	return c.busy || c.ask || c.move || len(c.notices) > 0 || len(c.replies) > 0
}

// Flush returns when everything that calls have left to be sent is with the link:
// calls do not wait for the last word that others need.
func (e *Engine) Flush(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.clerk.working() && e.err == nil {
		rests := e.clerk.rests.wait()
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
func (e *Engine) errands() (all []errand) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.clerk
	for _, m := range c.notices {
		if m.to != everybody {
			all = append(all, m)
			continue
		}
		for _, r := range e.members() {
			if r != e.config.Rank {
				all = append(all, errand{r, m.head, m.body})
			}
		}
	}
	for _, r := range e.members() {
		switch {
		case r == e.config.Rank:
		case c.ask:
			all = append(all, errand{to: r, head: e.newsHead(question)})
		case c.replies[r]:
			all = append(all, errand{to: r, head: e.newsHead(news)})
		}
	}
	if c.move {
		all = append(all, e.misdirected()...)
	}
	c.ask, c.move, c.notices, c.busy = false, false, nil, true
	clear(c.replies)
	return all
}
