package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/notify"
)

// messageLog bounds the sender-based message log, whose entries lie in the calls.
type messageLog struct {
	lowWater uint64          // every process has finished the calls before it
	bytes    int             // of all entries
	advanced notify.Notifier // lowWater has risen, or the engine has ended
}

// logEntry is a message that was sent, logged in case the receiving task moves. The log and
// the link have a reference each. The last one that is dropped lets the entry serve a later
// message.
type logEntry struct {
	envelope envelope
	header   [headerSize]byte
	payload  Payload
	to       int // the rank it was sent to
	refs     atomic.Int32
	entries  *logEntries
	release  func() // Release as a value, so that passing it on does not allocate
}

// logEntries are those that are not in use.
type logEntries struct {
	pool   sync.Pool
	poison func([]byte) // see Config.Poison
}

// take returns an entry with one reference.
func (p *logEntries) take() *logEntry {
	l, ok := p.pool.Get().(*logEntry)
	if !ok {
		l = &logEntry{entries: p}
		l.release = l.Release
	}
	l.refs.Store(1)
	return l
}

// Release drops one reference.
func (l *logEntry) Release() {
	switch left := l.refs.Add(-1); {
	case left < 0:
		panic("collective: a message is released twice")
	case left == 0:
		l.payload.Release()
		l.payload = Payload{}
		if l.entries.poison != nil {
			l.entries.poison(l.header[:])
		}
		l.entries.pool.Put(l)
	}
}

func (l *logEntry) size() int { return len(l.header) + len(l.payload.Bytes) + 64 }

// LogLimits returns the limits of the log: calls, and bytes.
func (c Comm) LogLimits() (calls, bytes int) {
	return c.engine.config.KeepCalls, c.engine.config.KeepBytes
}

// trimLog raises the low-water mark: every process has finished the calls before it, so
// their state is dropped.
func (e *Engine) trimLog(lowWater uint64) {
	lowWater = min(lowWater, e.calls.returned)
	if lowWater <= e.log.lowWater {
		return
	}
	for n := e.log.lowWater; n < lowWater; n++ {
		o := e.calls.byNumber[n]
		if o == nil {
			continue
		}
		e.dropEntries(o)
		e.drop(o)
	}
	c := &e.calls
	e.log.lowWater, c.completed, c.finished = lowWater, max(c.completed, lowWater), max(c.finished, lowWater)
	e.holds.trim(lowWater)
	e.advance()
	e.answerQueries()
	e.log.advanced.Notify()
}

// dropEntries forgets the logged messages of a call.
func (e *Engine) dropEntries(o *callState) {
	for _, l := range o.log {
		e.log.bytes -= l.size()
		l.Release()
	}
	clear(o.log)
	o.log = o.log[:0]
}

// replay returns the logged messages whose receiving task has moved since they were
// sent. Messages to this process's own tasks are delivered at once.
func (e *Engine) replay() (messages []outMsg) {
	for n := e.log.lowWater; n < e.calls.next; n++ {
		o := e.calls.byNumber[n]
		if o == nil || o.err != nil {
			continue
		}
		for _, l := range o.log {
			owner := e.peers.owner(l.envelope.to)
			if l.to == owner {
				continue
			}
			l.to = owner
			if owner == e.config.Rank {
				e.put(o, l.envelope, o.local.signature, Payload{Bytes: slices.Clone(l.payload.Bytes)})
				continue
			}
			// Retained for good: the sender does not learn when it has arrived.
			l.refs.Add(1)
			messages = append(messages, outMsg{owner, l.header[:], l.payload.Bytes})
		}
	}
	return messages
}
