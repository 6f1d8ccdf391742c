package backfill

import "time"

// Times and limits of asking.
const (
	// maxAsked is how many agents are asked. Where none of them has been a member all the time,
	// the others may have more.
	maxAsked    = 16
	maxFailures = 3 // of one agent in a row
	// askAgain is the time until an agent is asked again that has not answered, or until others
	// are looked for.
	askAgain = 200 * time.Millisecond
	// returnTimeout is how long agents that may have more are waited for.
	returnTimeout = 5 * time.Second
)

// Step is what the driver of a fill does next: it asks Agent, or waits and looks for other
// agents. If it does neither, the fill is over.
type Step[T any] struct {
	Ask   bool
	Agent T
	Wait  time.Duration
}

// turns has agents asked one after the other. One that does not answer is asked again, up to
// maxFailures times. It is a part of fills, which decide what is asked. T names an agent, and now
// is the time since the fill has begun.
type turns[T comparable] struct {
	queue    []T    // agents that are to be asked; the first one has its turn
	page     uint64 // where the next page of the first one begins; 0: with the first page
	answered int
	failed   map[T]bool    // agents that have not answered
	failures int           // of the first one in a row
	retry    time.Duration // when the first one is asked again
}

// Add adds an agent that may be asked. One that was started again is added again.
func (t *turns[T]) Add(agent T) { t.queue = append(t.queue, agent) }

// step returns what is done next. While more is wanted than the agents in the queue have, others
// are waited for.
func (t *turns[T]) step(now time.Duration, more bool) (s Step[T]) {
	switch {
	case len(t.queue) > 0 && t.answered < maxAsked:
		s.Agent, s.Wait = t.queue[0], max(0, t.retry-now)
		s.Ask = s.Wait == 0
	case more && now < returnTimeout:
		s.Wait = askAgain
	}
	return s
}

// Failed says that the agent has not answered: it is gone, or may answer when it is asked again.
// Failed reports whether it is given up.
func (t *turns[T]) Failed(now time.Duration, gone bool) bool {
	t.failures++
	if !gone && t.failures < maxFailures {
		t.retry = now + askAgain
		return false
	}
	if t.failed == nil {
		t.failed = make(map[T]bool)
	}
	t.failed[t.queue[0]] = true
	t.next()
	return true
}

// Pass continues with the next agent. The one that was asked has answered, or keeps no log.
func (t *turns[T]) Pass() {
	t.answered++
	delete(t.failed, t.queue[0])
	t.next()
}

// heard notes that the agent has answered, and has more to tell.
func (t *turns[T]) heard() { t.failures = 0 }

func (t *turns[T]) next() { t.queue, t.page, t.failures, t.retry = t.queue[1:], 0, 0, 0 }
