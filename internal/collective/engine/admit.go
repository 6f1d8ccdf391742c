package engine

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotAdmitted is returned by calls of a process that replaces another one and has not
// been admitted yet.
var ErrNotAdmitted = errors.New("this process replaces another one, and waits to be admitted: it calls Admit first")

// ErrJobEnded is returned by Admit in a process that waits, when the job has ended without it.
var ErrJobEnded = errors.New("the job has ended before this process was admitted")

// ErrGone is returned by Admit in a process that waits, when all that are left wait: the
// processes of the job have died before they could hand anything on.
var ErrGone = errors.New("all processes of the job are gone, except those that wait to be admitted")

// ErrAdmitted is returned by calls in the communicator of an earlier generation.
var ErrAdmitted = errors.New("Admit has begun another communicator since")

// candidacy is what a process knows while it waits to be admitted.
type candidacy struct {
	self Member
	// waiting are the incarnations, by rank, of others that wait as well.
	waiting map[int]uint64
	// inJob are those that are known to wait no more: what they said before may come late.
	inJob map[Member]bool
	done  chan struct{}
	err   error // why it is not admitted, once it is done
}

// Admit takes in the processes that wait. It returns the communicator of the next
// generation, or c if there is none. A process that waits calls it, too.
func (c Comm) Admit(ctx context.Context) (Comm, error) {
	e := c.engine
	if e.generation.candidacy != nil {
		return e.awaitAdmission(ctx)
	}
	s := Signature{Kind: Admit, Root: NoRoot, Length: NoLength, Mode: Report}
	err := c.Do(ctx, s, func(t *Task) error {
		_, _, err := t.agree(0, 0)
		return err
	})
	if err != nil {
		return Comm{}, err
	}
	e.mu.Lock()
	next := e.generation.next
	e.mu.Unlock()
	if next == nil {
		return c, nil
	}
	if err := e.awaitFinished(ctx); err != nil {
		return Comm{}, fmt.Errorf("collective: Admit: %w", err)
	}
	return next.Comm(), next.Flush(ctx) // newcomers learn of the generation before its first call
}

// awaitFinished waits until the parts of tasks that this process has taken over are done,
// in all calls that have returned.
func (e *Engine) awaitFinished(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.err == nil && e.calls.completed < e.calls.returned {
		changed := e.calls.byNumber[e.calls.completed].changed.Wait()
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		e.mu.Lock()
		if ctx.Err() != nil {
			return fmt.Errorf("tasks that were taken over are not done: %w", ctx.Err())
		}
	}
	return e.err
}

// awaitAdmission waits until the others have taken this process in.
func (e *Engine) awaitAdmission(ctx context.Context) (Comm, error) {
	c := e.generation.candidacy
	select {
	case <-c.done:
	case <-e.ctx.Done():
		return Comm{}, e.Comm().Err()
	case <-ctx.Done():
		return Comm{}, fmt.Errorf("collective: rank %d waits to be admitted: %w", e.config.Rank, ctx.Err())
	}
	if c.err != nil {
		return Comm{}, c.err
	}
	return e.generation.next.Comm(), e.generation.next.Flush(ctx)
}

// Admission returns the ranks that this generation has taken in, and the lowest rank
// that was there before, which is -1 if all are new.
func (e *Engine) Admission() (joined []int, oldest int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	members := e.generation.membersIn(e.config.View)
	if old := ranksUpTo(members, e.generation.before); len(old) > 0 {
		return e.peers.newcomers, old[0]
	}
	return e.peers.newcomers, -1
}

// handleNotice handles a notice to a waiting process: a generation, to which it may belong,
// another waiting process, or the end of the job, after which no generation follows.
func (e *Engine) handleNotice(from int, contextID uint64, h *header, body []byte) error {
	c := e.generation.candidacy
	if c == nil {
		return nil
	}
	notice, err := h.generationNotice(body, e.config.Size)
	if err != nil {
		return fmt.Errorf("%w: %w, about a generation, from rank %d", ErrMessage, err, from)
	}
	switch notice.what {
	case jobOver:
		c.end(ErrJobEnded)
		return nil
	case waitsToo:
		if !c.inJob[Member{from, notice.view}] {
			c.waiting[from] = notice.view
		}
	default:
		if m, ok := memberAt(notice.members, from); ok {
			c.inJob[m] = true
		}
		delete(c.waiting, from)
		if m, ok := memberAt(notice.members, c.self.Rank); ok && m == c.self && e.generation.next == nil {
			e.addGeneration(contextID, notice.view, notice.before, notice.members)
		}
	}
	e.checkCandidacy()
	return nil
}

// checkCandidacy ends the waiting if this process has come to the first view of its generation,
// in which it knows all members, or if all that are left wait.
func (e *Engine) checkCandidacy() {
	g, c := &e.generation, e.generation.candidacy
	if g.next != nil {
		if g.view >= g.next.config.View && c.end(nil) {
			g.next.beginGeneration()
		}
		return
	}
	for _, m := range g.members {
		if m != c.self && c.waiting[m.Rank] != m.Incarnation {
			return
		}
	}
	c.end(ErrGone)
}

// tellWaiting tells each member once that this process waits.
func (e *Engine) tellWaiting() {
	g := &e.generation
	notice := generationNotice{what: waitsToo, view: g.candidacy.self.Incarnation}
	for _, m := range g.members {
		if m != g.candidacy.self && !g.told[m] {
			g.told[m] = true
			head, body := notice.bytes()
			e.sender.enqueue(outMsg{m.Rank, head, body})
		}
	}
}

// end notes that the waiting is over, and reports whether it was not before.
func (c *candidacy) end(err error) bool {
	select {
	case <-c.done:
		return false
	default:
		c.err = err
		close(c.done)
		return true
	}
}
