package group_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// ledger is a state: what each root's messages come to, in their order. It knows if one is
// missing or there twice.
type ledger struct {
	Next, Digest [3]uint64
	restored     bool
	failed       error
	onSnapshot   func() error
	onRestore    func()
}

// digest adds a message to what those before come to.
func digest(before uint64, m []byte) uint64 {
	for _, b := range m {
		before = before*1099511628211 ^ uint64(b)
	}
	return before
}

func (l *ledger) apply(m pleach.Message, err error) {
	if err != nil {
		l.failed = errors.Join(l.failed, err)
		return
	}
	root, number := binary.BigEndian.Uint32(m.Data), uint64(binary.BigEndian.Uint32(m.Data[4:]))
	if int(root) != m.From || number != l.Next[root] {
		l.failed = errors.Join(l.failed, fmt.Errorf("message %d of root %d after %d", number, root, l.Next[root]))
		return
	}
	l.Next[root]++
	l.Digest[root] = digest(l.Digest[root], m.Data)
}

// Snapshot implements [pleach.State].
func (l *ledger) Snapshot(w io.Writer) error {
	if l.onSnapshot != nil {
		if err := l.onSnapshot(); err != nil {
			return err
		}
	}
	return binary.Write(w, binary.BigEndian, [2][3]uint64{l.Next, l.Digest})
}

// Restore implements [pleach.State].
func (l *ledger) Restore(r io.Reader) error {
	var both [2][3]uint64
	if l.restored || l.Next != [3]uint64{} {
		l.failed = errors.New("restored twice, or after messages")
	}
	err := binary.Read(r, binary.BigEndian, &both)
	l.Next, l.Digest, l.restored = both[0], both[1], true
	if l.onRestore != nil {
		l.onRestore()
	}
	return err
}

// check compares a ledger with what the roots have broadcast.
func (l *ledger) check(history *[3]history) error {
	for r := range history {
		if want := history[r].digest(l.Next[r]); l.Digest[r] != want {
			return fmt.Errorf("after %d messages of root %d: %x, want %x", l.Next[r], r, l.Digest[r], want)
		}
	}
	return l.failed
}

// history is what the messages of a root come to, after each number of them.
type history struct {
	mu      sync.Mutex
	digests []uint64
}

func (h *history) add(m []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.digests) == 0 {
		h.digests = []uint64{0}
	}
	h.digests = append(h.digests, digest(h.digests[len(h.digests)-1], m))
}

func (h *history) digest(n uint64) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n == 0 {
		return 0
	}
	return h.digests[n]
}

// roots are three members that broadcast, with what they have broadcast.
type roots struct {
	groups  []*pleach.Group
	ledgers [3]*ledger
	history [3]history
	sent    atomic.Int64
	all     sync.WaitGroup
}

// startRoots starts them, at 20 messages a millisecond together, until ctx ends.
func startRoots(ctx context.Context, t *testing.T) *roots {
	r := &roots{}
	for i := range r.ledgers {
		r.ledgers[i] = &ledger{}
	}
	r.groups = service(t, 3, func(i int, c *pleach.Config) { c.State = r.ledgers[i] })
	for i, g := range r.groups {
		r.all.Go(func() {
			for m, err := range g.Messages(ctx) {
				r.ledgers[i].apply(m, err)
			}
		})
		r.all.Go(func() {
			began := time.Now()
			for number := 0; ctx.Err() == nil; number++ {
				m := message(i, number, 32)
				r.history[i].add(m)
				if err := g.Broadcast(ctx, m); err != nil && ctx.Err() == nil {
					t.Errorf("root %d: %v", i, err)
					return
				}
				r.sent.Add(1)
				time.Sleep(time.Until(began.Add(time.Duration(number) * time.Millisecond * 3 / 20)))
			}
		})
	}
	return r
}

// joinAndCheck joins, receives some messages of each root after the state, compares, and
// leaves or crashes.
func (r *roots) joinAndCheck(ctx context.Context, number int) error {
	l := &ledger{}
	c := pleach.Config{Group: "service", State: l}
	wrong := make(chan error, 1)
	enough := func(m pleach.Message, err error, from *[3]uint64) bool {
		if *from == [3]uint64{} {
			*from = l.Next
		}
		l.apply(m, err)
		return l.failed != nil || l.Next[0] >= from[0]+20 && l.Next[1] >= from[1]+20 && l.Next[2] >= from[2]+20
	}
	if number%2 == 1 { // every other one receives by a handler
		var from [3]uint64
		done := false
		c.OnMessage = func(m pleach.Message, err error) {
			if !done && enough(m, err, &from) {
				done = true
				wrong <- l.check(&r.history)
			}
		}
	}
	g, err := pleach.Join(ctx, c, r.groups[number%3].Self().Address)
	if err != nil {
		return err
	}
	if c.OnMessage == nil {
		var from [3]uint64
		for m, err := range g.Messages(ctx) {
			if enough(m, err, &from) {
				break
			}
		}
		wrong <- errors.Join(l.check(&r.history), ctx.Err(), g.Err())
	}
	select {
	case err = <-wrong:
	case <-ctx.Done():
		err = fmt.Errorf("rank %d has got too little: %+v, %w", g.Rank(), l, ctx.Err())
	}
	if !l.restored {
		err = errors.Join(err, errors.New("it has no state"))
	}
	if number%5 == 4 {
		return errors.Join(err, g.Abort())
	}
	return errors.Join(err, g.Close())
}

// A joiner under load has the state at its cut, and every message after it: its state
// equals that of every other member, after the same messages. PLEACH_JOINS joins, two at a
// time.
func TestStateOfJoiners(t *testing.T) {
	joins := testutil.Joins.Or(12)
	ctx, cancel := context.WithCancel(t.Context())
	r := startRoots(ctx, t)
	began := time.Now()
	var next, different atomic.Int64
	var joiners sync.WaitGroup
	for range 2 {
		joiners.Go(func() {
			for number := int(next.Add(1)); number <= joins; number = int(next.Add(1)) {
				limited, done := context.WithTimeout(ctx, 2*time.Minute)
				if err := r.joinAndCheck(limited, number); err != nil {
					different.Add(1)
					t.Errorf("join %d: %v", number, err)
				}
				done()
			}
		})
	}
	joiners.Wait()
	took := time.Since(began)
	views := r.groups[0].View().Number
	cancel()
	r.all.Wait()
	for _, l := range r.ledgers {
		if err := l.check(&r.history); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d joins, %d differences; %.1f messages/ms of 3 roots for %v, %d views",
		joins, different.Load(), float64(r.sent.Load())/float64(took.Milliseconds()), took.Round(time.Millisecond), views)
}

// If the member that has to provide the state dies, the next one does.
func TestStateProviderDies(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked, release := make(chan struct{}), make(chan struct{})
	var blocks atomic.Bool
	ledgers := [3]*ledger{{onSnapshot: func() error {
		if blocks.Load() {
			close(asked)
			<-release
		}
		return nil
	}}, {}, {}}
	groups := service(t, 1, func(r int, c *pleach.Config) { c.State = ledgers[r] })
	var all sync.WaitGroup
	defer func() {
		cancel()
		all.Wait()
	}()
	receive := func(g *pleach.Group, l *ledger) {
		all.Go(func() {
			for m, err := range g.Messages(ctx) {
				l.apply(m, err)
			}
		})
	}
	// Two members whose ranks are 1 and 2 have the state first.
	receive(groups[0], ledgers[0])
	for r := 1; r < 3; r++ {
		restored := make(chan struct{})
		ledgers[r].onRestore = func() { close(restored) }
		g := member(t)(pleach.Join(ctx, pleach.Config{Group: "service", State: ledgers[r]}, groups[0].Self().Address))
		groups = append(groups, g)
		receive(g, ledgers[r])
		<-restored
		if err := g.SetMeta(ctx, "has the state"); err != nil { // the same view has both
			t.Fatal(err)
		}
	}
	if err := groups[2].Broadcast(ctx, message(2, 0, 10)); err != nil {
		t.Fatal(err)
	}
	if _, err := groups[2].WaitStable(ctx); err != nil {
		t.Fatal(err)
	}
	blocks.Store(true)
	l := &ledger{}
	joiner := member(t)(pleach.Join(ctx, pleach.Config{Group: "service", State: l}, groups[1].Self().Address))
	<-asked
	if err := groups[0].Abort(); err != nil {
		t.Error(err)
	}
	close(release)
	if err := groups[1].Broadcast(ctx, message(1, 0, 10)); err != nil {
		t.Fatal(err)
	}
	for m, err := range joiner.Messages(ctx) {
		l.apply(m, err)
		break
	}
	if l.failed != nil || !l.restored || l.Next != [3]uint64{0, 1, 1} {
		t.Errorf("%+v", l)
	}
}

// A state that cannot be written or read ends the membership of the joiner, with the cause.
func TestStateFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	groups := service(t, 1, func(_ int, c *pleach.Config) {
		c.State = &ledger{onSnapshot: func() error { return errors.New("disk on fire") }}
	})
	go func() {
		for range groups[0].Messages(ctx) { //nolint:revive // it only has to receive
		}
	}()
	g := member(t)(pleach.Join(ctx, pleach.Config{Group: "service", State: &ledger{}}, groups[0].Self().Address))
	for range g.Messages(ctx) {
		t.Error("a message without a state")
	}
	var failed *pleach.StateError
	if err := g.Err(); !errors.As(err, &failed) || failed.From != 0 || failed.Err.Error() != "disk on fire" {
		t.Errorf("%v", err)
	}
}

// With a state, a member receives its own messages, too.
func TestOwnMessages(t *testing.T) {
	groups := service(t, 1, func(_ int, c *pleach.Config) { c.State = &ledger{} })
	for _, size := range []int{8, 1000, 200_000} {
		want := message(0, size, size)
		if err := groups[0].Broadcast(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		for m := range groups[0].Messages(t.Context()) {
			if m.From != 0 || !bytes.Equal(m.Data, want) {
				t.Errorf("%d bytes from %d, want %d", len(m.Data), m.From, size)
			}
			break
		}
	}
}
