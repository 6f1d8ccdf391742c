package fleet

import (
	"slices"
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
	within []time.Duration // of broadcasts within a zone
	all    []*receipts     // of all processes, also of dead ones
}

// receipts are what a process has received of each origin.
type receipts struct {
	member *member
	since  time.Time // when it has joined, if it was not there from the beginning
	sample uint64    // one of so many messages is timed

	mu     sync.Mutex
	of     map[origin]*progress
	met    map[string]time.Time // when it has received the first message of a zone
	hailed map[string]bool      // zones that it has received a greeting of
	late   []time.Duration      // of deliveries from other zones
	result Result               // counts of deliveries
}

// progress is how far a process is with the messages of an origin.
type progress struct {
	next   uint64
	missed map[uint64]bool // skipped numbers
}

func newReceipts(m *member) *receipts {
	return &receipts{
		member: m, sample: 1, of: make(map[origin]*progress), met: make(map[string]time.Time),
		hailed: make(map[string]bool),
	}
}

// meet returns the progress with an origin, as it is before its first message, m, came.
// A process that was there from the beginning expects number 1, but of an origin that sends
// greetings until the zones have met; another one takes what comes.
func (r *receipts) meet(o origin, m *fleet.Message) *progress {
	p := r.add(o)
	if !r.since.IsZero() || greeting(m) {
		p.next = m.Seq
	}
	return p
}

// add returns the progress with an origin that nothing came from yet.
func (r *receipts) add(o origin) *progress {
	p := &progress{next: 1, missed: make(map[uint64]bool)}
	r.of[o] = p
	if r.met[o.zone].IsZero() {
		r.met[o.zone] = time.Now()
	}
	return p
}

// lost takes in that messages of an origin are lost.
func (r *receipts) lost(e *fleet.LostError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := origin{e.Zone, e.ID}
	p := r.of[o]
	if p == nil {
		p = r.add(o)
	}
	r.result.Lost += int(e.Last - e.First + 1)
	p.next = e.Last + 1
}

func newLedger() *ledger {
	return &ledger{
		began: time.Now(), sent: make(map[origin]uint64), last: make(map[origin]time.Time),
		gone: make(map[origin]bool),
	}
}

// note notes that an origin broadcasts, unless it was killed.
func (l *ledger) note(o origin) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone[o] {
		return false
	}
	l.sent[o]++
	l.last[o] = time.Now()
	return true
}

// greeting reports whether a message is only to tell that zones have met.
func greeting(m *fleet.Message) bool { return len(m.Data) < minSize }

// received takes in a message that came so long after it was broadcast.
func (r *receipts) received(m *fleet.Message, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := origin{m.Zone, m.ID}
	p := r.of[o]
	if p == nil {
		p = r.meet(o, m)
	}
	switch {
	case m.Seq < p.next && p.missed[m.Seq]:
		r.result.OutOfOrder++
		delete(p.missed, m.Seq)
		r.result.Lost--
		return
	case m.Seq < p.next:
		r.result.Twice++
		return
	}
	for ; p.next < m.Seq; p.next++ {
		p.missed[p.next] = true
		r.result.Lost++
	}
	p.next++
	if greeting(m) {
		r.hailed[m.Zone] = true
		return
	}
	r.result.Deliveries++
	if m.Zone != r.member.zone && m.Seq%r.sample == 0 {
		r.late = append(r.late, late)
	}
}

// position is up to where a process has the messages of an origin, if it has any.
func (r *receipts) position(o origin) (upTo uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.of[o]; p != nil {
		return p.next - 1, true
	}
	return 0, false
}

// totals adds up what all processes have received.
func (l *ledger) totals() (sum Result, late []time.Duration) {
	for _, r := range l.all {
		r.mu.Lock()
		sum.Lost += r.result.Lost
		sum.Twice += r.result.Twice
		sum.OutOfOrder += r.result.OutOfOrder
		sum.Deliveries += r.result.Deliveries
		late = append(late, r.late...)
		r.mu.Unlock()
	}
	slices.Sort(late)
	return sum, late
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
				upTo, _ := m.receipts.position(o)
				last = max(last, upTo)
			}
		}
		for _, m := range live {
			r := m.receipts
			upTo, ok := r.position(o)
			switch {
			case m.origin == o:
			case ok:
				n += int(last - min(last, upTo))
			case r.since.IsZero():
				n += int(last)
			case !l.gone[o] && r.settled(o.zone, l.last[o]):
				n++
			}
		}
	}
	return n
}

// settled reports whether a process had met a zone long before a broadcast of it.
func (r *receipts) settled(zone string, broadcast time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.met[zone].IsZero() && broadcast.Sub(r.met[zone]) > settled
}
