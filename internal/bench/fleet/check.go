package fleet

import (
	"sync"
	"time"

	"github.com/pleach-go/pleach/fleet"
)

// origin is a process that broadcasts. No two starts have the same ID here.
type origin struct{ zone, id string }

// ledger has what was broadcast and what every process has received.
type ledger struct {
	began time.Time

	mu     sync.Mutex
	sent   map[origin]uint64
	last   map[origin]time.Time // when it has broadcast last
	gone   map[origin]bool      // it was killed
	total  int
	late   []time.Duration // of deliveries in other zones
	within []time.Duration // of broadcasts within a zone
	result Result
}

// receipts are what a process has received of each origin.
type receipts struct {
	member *member
	of     map[origin]*progress
	since  time.Time            // it has joined, if it was not there from the beginning
	met    map[string]time.Time // when it has received the first message of a zone
	hailed map[string]bool      // zones that it has received a greeting of
}

// progress is how far a process is with the messages of an origin.
type progress struct {
	next   uint64
	missed map[uint64]bool // skipped numbers
}

func newReceipts(m *member) *receipts {
	return &receipts{member: m, of: make(map[origin]*progress), met: make(map[string]time.Time), hailed: make(map[string]bool)}
}

// meet returns the progress with an origin, as it is before its first message, m, came.
// A process that was there from the beginning expects number 1; another one takes what comes.
func (r *receipts) meet(o origin, m *fleet.Message) *progress {
	p := &progress{next: 1, missed: make(map[uint64]bool)}
	if !r.since.IsZero() {
		p.next = m.Seq
	}
	r.of[o] = p
	if r.met[m.Zone].IsZero() {
		r.met[m.Zone] = time.Now()
	}
	return p
}

func newLedger() *ledger {
	return &ledger{began: time.Now(), sent: make(map[origin]uint64), last: make(map[origin]time.Time), gone: make(map[origin]bool)}
}

// received takes in a message that came so long after it was broadcast.
func (l *ledger) received(r *receipts, m *fleet.Message, late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := origin{m.Zone, m.ID}
	p := r.of[o]
	if p == nil {
		p = r.meet(o, m)
	}
	switch {
	case m.Lost > 0:
		l.result.Lost += int(m.Lost)
		p.next = m.Seq
		return
	case m.Seq < p.next && p.missed[m.Seq]:
		l.result.OutOfOrder++
		delete(p.missed, m.Seq)
		l.result.Lost--
		return
	case m.Seq < p.next:
		l.result.Twice++
		return
	}
	for ; p.next < m.Seq; p.next++ {
		p.missed[p.next] = true
		l.result.Lost++
	}
	p.next++
	l.result.Deliveries++
	if m.Zone != r.member.zone {
		l.late = append(l.late, late)
	}
}

// settled is how long before the last broadcast of an origin a process that has joined later
// has received something of its zone, if it must have received that broadcast. A zone that
// was dead begins with what is broadcast after it has met the others.
const settled = time.Second

// missing counts messages that live processes have not received: all that a live origin has
// broadcast, and of one that was killed what any other process has.
func (l *ledger) missing(live []*member) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for o, last := range l.sent {
		if l.gone[o] {
			last = 0
			for _, m := range live {
				if p := m.receipts.of[o]; p != nil {
					last = max(last, p.next-1)
				}
			}
		}
		for _, m := range live {
			r := m.receipts
			p := r.of[o]
			switch {
			case m.origin == o:
			case p != nil:
				n += int(last - min(last, p.next-1))
			case r.since.IsZero():
				n += int(last)
			case !l.gone[o] && !r.met[o.zone].IsZero() && l.last[o].Sub(r.met[o.zone]) > settled:
				n++
			}
		}
	}
	return n
}
