package pleach

// This file drives package lifecycle: processes that are no members introduce themselves
// to each other, so that each finds the place that the latest view of its group has for it.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/lifecycle"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/tcp"
)

// search drives the search of a process for its place.
type search struct {
	client  tcp.Config
	start   time.Time
	changed chan struct{}          // there may be something to ask
	found   chan lifecycle.Finding // what the process should do; the last one counts
	moved   chan struct{}          // the address of a process may have become known
	ctx     context.Context
	cancel  context.CancelFunc
	asking  sync.WaitGroup

	mu      sync.Mutex
	machine *lifecycle.Search
}

// newSearch begins the search of a process with a folder. A process without one has no
// place to find, and only introduces itself.
func (c *Config) newSearch(s *initialState, saved *membership.Seat) *search {
	f := &search{
		client: c.client(nil), start: time.Now(), changed: make(chan struct{}, 1), found: make(chan lifecycle.Finding, 1), moved: make(chan struct{}, 1),
		machine: lifecycle.New(lifecycle.Contact{ID: s.self.Identity, Address: s.self.Address}, s.seeds),
	}
	f.machine.Hold(saved, s.self.Nonce)
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if s.data != nil {
		f.asking.Go(f.run)
	}
	return f
}

// hold says which place the process has, and under which nonce it asks for another one.
func (f *search) hold(place *membership.Seat, nonce uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.machine.Hold(place, nonce)
	select {
	case <-f.found: // about the place before
	default:
	}
	give(f.changed)
}

// run asks until the search ends.
func (f *search) run() {
	for f.ctx.Err() == nil {
		timer := time.NewTimer(f.step())
		select {
		case <-f.changed:
		case <-timer.C:
		case <-f.ctx.Done():
		}
		timer.Stop()
	}
}

// step sends the questions that are due, and returns when the next ones are.
func (f *search) step() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		address, q, ok := f.machine.Next(f.now())
		if !ok {
			break
		}
		f.asking.Go(func() { f.ask(address, &q) })
	}
	return time.Duration(min(f.machine.Deadline()-f.now(), protocol.Time(time.Second)))
}

func (f *search) now() protocol.Time { return protocol.Time(time.Since(f.start)) + 1 }

// ask sends one question.
func (f *search) ask(address string, q *lifecycle.Question) {
	ctx, cancel := context.WithTimeout(f.ctx, foundingTimeout)
	defer cancel()
	i, err := askIntroduction(ctx, f.client, address, q)
	f.mu.Lock()
	defer f.mu.Unlock()
	defer give(f.changed)
	if err != nil {
		f.machine.Failed(f.now(), address)
		return
	}
	before, _ := f.machine.Address(i.ID)
	f.machine.Handle(f.now(), address, i)
	if after, _ := f.machine.Address(i.ID); after != before {
		give(f.moved)
	}
	if finding := f.machine.Finding(); finding != (lifecycle.Finding{}) {
		select {
		case <-f.found:
		default:
		}
		f.found <- finding
	}
}

// askIntroduction asks the process at an address to introduce itself.
func askIntroduction(ctx context.Context, c tcp.Config, address string, q *lifecycle.Question) (*lifecycle.Introduction, error) {
	b, err := requestOnce(ctx, c, address, control.Introduce{Question: *q})
	if err != nil {
		return nil, err
	}
	return lifecycle.DecodeIntroduction(b)
}

// address returns where a member is: its address in the view, unless its process has
// introduced itself elsewhere.
func (f *search) address(m *membership.Member) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if address, ok := f.machine.Address(m.Identity); ok {
		return address
	}
	return m.Address
}

// answer introduces this process to another one.
func (f *search) answer(q *lifecycle.Question) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.machine.Introduce(q)
	give(f.changed)
	return control.Accept(i.Encode(nil))
}

// close ends the search.
func (f *search) close() {
	f.cancel()
	f.asking.Wait()
}

// answerIntroduction introduces a member to a process that is none.
func (g *Group) answerIntroduction(q *lifecycle.Question, answer func([]byte)) {
	i := lifecycle.Introduction{
		Contact: lifecycle.Contact{ID: g.self.Identity, Address: g.self.Address}, Role: lifecycle.Member,
		Marks: []uint64{lifecycle.Mark(g.self.Identity, g.self.Nonce)},
	}
	err := g.node.Do(func(protocol.Time) {
		if v := g.machine.View(); v.Number != q.View {
			i.View, i.Decisions = &v, g.machine.Decisions()
		}
	})
	if err != nil || g.removal.Load() != nil || g.Err() != nil {
		answer(refuse(errNotAMember))
		return
	}
	answer(control.Accept(i.Encode(nil)))
}

// errNotAMember is the refusal of a process whose membership has ended.
var errNotAMember = errors.New("this process is no longer a member")
