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
	next   map[origin]uint64
	missed map[origin]map[uint64]bool // skipped numbers
	since  time.Time                  // it has joined, if it was not there from the beginning
	met    map[string]time.Time       // when it has received the first message of a zone
	hailed map[string]bool            // zones that it has received a greeting of
}

func newLedger() *ledger {
	return &ledger{began: time.Now(), sent: make(map[origin]uint64), last: make(map[origin]time.Time), gone: make(map[origin]bool)}
}

// received takes in a message that came so long after it was broadcast. A process that was
// there from the beginning expects the first message of each origin; another one takes the
// first that comes.
func (l *ledger) received(r *receipts, m *fleet.Message, late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := origin{m.Zone, m.ID}
	if r.met[m.Zone].IsZero() {
		r.met[m.Zone] = time.Now()
	}
	next, known := r.next[o]
	if !known && !r.since.IsZero() {
		next = m.Seq
	} else if !known {
		next = 1
	}
	switch {
	case m.Lost > 0:
		l.result.Lost += int(m.Lost)
		r.next[o] = m.Seq
		return
	case m.Seq < next && r.missed[o][m.Seq]:
		l.result.OutOfOrder++
		delete(r.missed[o], m.Seq)
		l.result.Lost--
		return
	case m.Seq < next:
		l.result.Twice++
		return
	}
	for seq := next; seq < m.Seq; seq++ {
		if r.missed[o] == nil {
			r.missed[o] = make(map[uint64]bool)
		}
		r.missed[o][seq] = true
		l.result.Lost++
	}
	r.next[o] = m.Seq + 1
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
				last = max(last, max(m.receipts.next[o], 1)-1)
			}
		}
		for _, m := range live {
			r := m.receipts
			next, known := r.next[o]
			switch {
			case m.origin == o:
			case known:
				n += int(last - min(last, next-1))
			case r.since.IsZero():
				n += int(last)
			case !l.gone[o] && !r.met[o.zone].IsZero() && l.last[o].Sub(r.met[o.zone]) > settled:
				n++
			}
		}
	}
	return n
}
