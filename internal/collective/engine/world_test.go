package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// world is a job of engines in one goroutine bubble: one message is delivered or one view installed
// at a time, in random order, and everything comes to rest before the next. Time passes only if
// nothing is on its way, or now and then.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	engines []*Engine
	dead    []bool
	view    uint64
	mu      sync.Mutex
	queues  map[[2]int][]packet // by sender and receiver
	views   [][]installation    // by rank: those that are decided
	known   [][]uint64          // by rank: the incarnations in its view
	came    []uint64            // by rank: its incarnation
	steps   int
	kills   map[int]int // by step: the rank that dies then
	deaf    map[int]int // by rank: the step until which it gets no message
	errs    []error
	open    atomic.Int32 // programs that run
	program func(c Comm) error
	config  Config
}

type packet struct {
	came    uint64
	bytes   []byte
	release func()
}

type installation struct {
	view    uint64
	members []Member
}

var errKilled = errors.New("killed by the test")

type worldLink struct {
	w    *world
	rank int
	came uint64
}

func (l worldLink) Send(ctx context.Context, to int, head, body []byte) error {
	return l.SendOwned(ctx, to, head, body, func() {})
}

func (l worldLink) SendOwned(_ context.Context, to int, head, body []byte, release func()) error {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead[l.rank] || w.came[l.rank] != l.came || w.dead[to] || w.known[l.rank][to] != w.came[to] {
		return errKilled
	}
	k := [2]int{l.rank, to}
	w.queues[k] = append(w.queues[k], packet{l.came, slices.Concat(head, body), release})
	return nil
}

// runWorld runs a program as every process of a job until all have ended, and returns the errors of
// those that are alive.
func runWorld(t *testing.T, size int, seed uint64, set func(w *world), program func(c Comm) error) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = &world{
			t: t, rng: rand.New(rand.NewPCG(seed, 3)), view: 1, queues: make(map[[2]int][]packet), kills: make(map[int]int),
			deaf:    make(map[int]int),
			engines: make([]*Engine, size), dead: make([]bool, size), views: make([][]installation, size),
			errs:  make([]error, size),
			known: make([][]uint64, size), came: slices.Repeat([]uint64{1}, size), program: program,
		}
		set(w)
		for r := range size {
			w.known[r] = slices.Clone(w.came)
		}
		for r := range size {
			w.start(r, 1, 0)
		}
		for began := time.Now(); w.open.Load() > 0; {
			if !w.step() {
				testutil.Advance(20 * time.Millisecond)
			}
			if time.Since(began) > 20*time.Second {
				w.explain()
				break
			}
		}
		w.settle()
		for _, e := range w.engines {
			e.Close()
		}
		synctest.Wait()
	})
	return w
}

// settle delivers what is left.
func (w *world) settle() {
	for range 100 {
		for w.step() {
		}
		testutil.Advance(20 * time.Millisecond)
	}
}

func (w *world) explain() {
	for r, e := range w.engines {
		w.t.Errorf("rank %d hangs: dead %v, %+v", r, w.dead[r], e.Comm().Progress())
		e.End(errors.New("the test hangs"))
	}
}

func (w *world) start(rank int, view, waiting uint64) {
	c := w.config
	c.Rank, c.Size, c.View, c.Waiting, c.Link = rank, len(w.engines), view, waiting, worldLink{w, rank, max(view, waiting)}
	c.Poison = func(b []byte) {
		for i := range b {
			b[i] = 0xaa
		}
	}
	e, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.engines[rank] = e
	for r := range w.engines {
		e.PeerUp(r)
	}
	w.open.Add(1)
	go func() {
		err := w.program(e.Comm())
		w.mu.Lock()
		if w.engines[rank] == e {
			w.errs[rank] = err
		}
		w.mu.Unlock()
		w.open.Add(-1)
	}()
}

// step makes one step, and reports whether there was one to make.
func (w *world) step() bool {
	synctest.Wait()
	w.check()
	w.mu.Lock()
	w.steps++
	victim, dies := w.kills[w.steps]
	w.mu.Unlock()
	if dies {
		w.kill(victim)
		return true
	}
	if w.rng.IntN(50) == 0 {
		testutil.Advance(25 * time.Millisecond)
	}
	var choices []func()
	w.mu.Lock()
	for from := range w.engines {
		for to := range w.engines {
			k := [2]int{from, to}
			for len(w.queues[k]) > 0 && w.queues[k][0].came < w.known[to][from] {
				w.queues[k] = w.queues[k][1:] // lost with its sender
			}
			if q := w.queues[k]; len(q) > 0 && q[0].came == w.known[to][from] && !w.dead[to] && w.steps >= w.deaf[to] {
				choices = append(choices, func() { w.deliver(k) })
			}
		}
	}
	w.mu.Unlock()
	for r := range w.engines {
		if len(w.views[r]) > 0 && !w.dead[r] {
			choices = append(choices, func() { w.install(r) })
		}
	}
	if len(choices) == 0 {
		return w.waitsForDeaf()
	}
	choices[w.rng.IntN(len(choices))]()
	return true
}

// waitsForDeaf reports whether a process does not get its messages yet.
func (w *world) waitsForDeaf() bool {
	for _, until := range w.deaf {
		if w.steps < until {
			testutil.Advance(20 * time.Millisecond)
			return true
		}
	}
	return false
}

func (w *world) deliver(k [2]int) {
	w.mu.Lock()
	m := w.queues[k][0]
	w.queues[k] = w.queues[k][1:]
	w.mu.Unlock()
	e := w.engines[k[1]]
	b := e.Buffer(len(m.bytes))
	copy(b, m.bytes)
	m.release()
	if err := e.Receive(k[0], b); err != nil {
		w.t.Errorf("rank %d refuses a message of rank %d: %v", k[1], k[0], err)
	}
}

func (w *world) install(rank int) {
	v := w.views[rank][0]
	w.views[rank] = w.views[rank][1:]
	w.mu.Lock()
	w.known[rank] = make([]uint64, len(w.engines))
	for _, m := range v.members {
		w.known[rank][m.Rank] = m.Incarnation
	}
	w.mu.Unlock()
	w.engines[rank].InstallMembers(v.view, v.members)
}

// kill ends a process, which loses some of what it has sent last. The others get a view without it.
func (w *world) kill(rank int) {
	if w.dead[rank] {
		return
	}
	w.mu.Lock()
	w.dead[rank] = true
	for to := range w.engines {
		q := w.queues[[2]int{rank, to}]
		w.queues[[2]int{rank, to}] = q[:w.rng.IntN(len(q)+1)]
		delete(w.queues, [2]int{to, rank})
	}
	w.mu.Unlock()
	w.views[rank] = nil
	w.engines[rank].End(errKilled)
	w.nextView()
}

func (w *world) nextView() {
	w.view++
	var members []Member
	for r, came := range w.came {
		if !w.dead[r] {
			members = append(members, Member{r, came})
		}
	}
	for _, m := range members {
		w.views[m.Rank] = append(w.views[m.Rank], installation{w.view, members})
	}
}

// live returns the ranks that are alive.
func (w *world) live() (ranks []int) {
	for r, dead := range w.dead {
		if !dead {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// check checks what holds after every step, in every engine.
func (w *world) check() {
	lowest := uint64(math.MaxUint64) // of the calls that processes have made
	for _, r := range w.live() {
		e := w.engines[r]
		w.checkEngine(e)
		e.mu.Lock()
		if e.generation.candidacy == nil && e.err == nil {
			lowest = min(lowest, e.calls.returned)
		}
		e.mu.Unlock()
	}
	for _, r := range w.live() {
		e := w.engines[r]
		e.mu.Lock()
		if e.generation.candidacy == nil && e.err == nil && e.log.lowWater > lowest {
			w.t.Errorf("step %d: rank %d has forgotten calls before %d, and another one has made %d", w.steps, r, e.log.lowWater,
				lowest)
		}
		e.mu.Unlock()
	}
}

func (w *world) checkEngine(e *Engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &e.calls
	if c.finished > c.completed || c.completed > c.returned || c.returned > c.next || e.log.lowWater > c.finished {
		w.t.Errorf("rank %d: low-water mark %d, finished %d, completed %d, returned %d, next %d", e.config.Rank,
			e.log.lowWater, c.finished, c.completed, c.returned, c.next)
	}
	bytes := 0
	for number, o := range c.byNumber {
		if number < e.log.lowWater || number != o.number {
			w.t.Errorf("rank %d keeps call %d as %d, below %d", e.config.Rank, o.number, number, e.log.lowWater)
		}
		for _, l := range o.log {
			bytes += l.size()
		}
	}
	if bytes != e.log.bytes || len(c.unused) > maxUnused {
		w.t.Errorf("rank %d: %d bytes logged, %d counted, %d calls unused", e.config.Rank, bytes, e.log.bytes, len(c.unused))
	}
	for _, o := range c.unused {
		if o.local != nil || len(o.mailbox.all())+len(o.log)+len(o.runs) > 0 || o.err != nil {
			w.t.Errorf("rank %d: an unused call has content: %+v", e.config.Rank, o)
		}
	}
	for _, n := range e.comms.nested {
		w.checkEngine(n)
	}
}

// results are those of tasks, by round and task.
type results struct {
	mu  sync.Mutex
	got map[[2]int]uint64
	bad []string
}

func (r *results) set(round, task int, got, want uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.got == nil {
		r.got = make(map[[2]int]uint64)
	}
	r.got[[2]int{round, task}] = got
	if got != want {
		r.bad = append(r.bad, fmt.Sprintf("round %d, task %d: %d, want %d", round, task, got, want))
	}
}

func input(task, round int) uint64 { return uint64(1000*round + 7*task + 1) }

func encoded(v uint64, n int) []byte {
	return append(binary.BigEndian.AppendUint64(nil, v), make([]byte, n)...)
}

// exchangeAll has every task get the sum of all inputs.
func exchangeAll(ctx context.Context, c Comm, mode FailureMode, round int, r *results) error {
	s := Signature{Kind: Allreduce, Mode: mode, Root: NoRoot, Length: 1, Element: 11}
	return c.Do(ctx, s, func(t *Task) error {
		sum, want := input(t.ID, round), uint64(0)
		for task := range t.N {
			want += input(task, round)
			if task == t.ID {
				continue
			}
			if err := t.Send(task, 0, encoded(input(t.ID, round), 100)); err != nil {
				return err
			}
		}
		for task := range t.N {
			if task == t.ID {
				continue
			}
			p, err := t.ReceivePayload(task, 0)
			if err != nil {
				return err
			}
			sum += binary.BigEndian.Uint64(p.Bytes)
			p.Release()
		}
		r.set(round, t.ID, sum, want)
		return nil
	})
}

// gatherAll has the root get the sum.
func gatherAll(ctx context.Context, c Comm, mode FailureMode, round int, r *results) error {
	root := round % c.Size()
	s := Signature{Kind: Gather, Mode: mode, Root: root, Length: NoLength, Element: 11}
	return c.Do(ctx, s, func(t *Task) error {
		if t.ID != root {
			r.set(round, t.ID, 0, 0)
			return t.Send(root, 0, encoded(input(t.ID, round), 10))
		}
		sum, want := input(root, round), uint64(0)
		for task := range t.N {
			want += input(task, round)
			if task == root {
				continue
			}
			b, err := t.Receive(task, 0)
			if err != nil {
				return err
			}
			sum += binary.BigEndian.Uint64(b)
		}
		r.set(round, t.ID, sum, want)
		return nil
	})
}

// passOn has every task get the input of the root, from one to the next.
func passOn(ctx context.Context, c Comm, mode FailureMode, round int, r *results) error {
	root := round % c.Size()
	s := Signature{Kind: Broadcast, Mode: mode, Root: root, Length: NoLength, Element: 11}
	return c.Do(ctx, s, func(t *Task) error {
		got, next := input(root, round), (t.ID+1)%t.N
		if t.ID != root {
			p, err := t.ReceivePayload((t.ID+t.N-1)%t.N, 1)
			if err != nil {
				return err
			}
			defer p.Release()
			got = binary.BigEndian.Uint64(p.Bytes)
		}
		r.set(round, t.ID, got, input(root, round))
		if next == root {
			return nil
		}
		return t.Send(next, 1, encoded(got, 20))
	})
}

var rounds = []func(context.Context, Comm, FailureMode, int, *results) error{exchangeAll, gatherAll, passOn}

// doom has some processes die at random steps, and leaves one.
func (w *world) doom(steps int) {
	for range w.rng.IntN(len(w.engines)) {
		w.kills[1+w.rng.IntN(steps)] = 1 + w.rng.IntN(len(w.engines)-1)
	}
	if w.rng.IntN(2) == 0 { // the first rank dies, and the last stays
		for at, r := range w.kills {
			w.kills[at] = len(w.engines) - 1 - r
		}
	}
}

// Calls that run through give every task its result, whichever processes die at which step, also if
// processes are slow, and if calls are held.
func TestRunThroughInAnyOrder(t *testing.T) {
	const calls = 9
	for seed := range uint64(120) {
		size := 2 + int(seed%4)
		var r results
		first := rounds[seed%3]
		w := runWorld(t, size, seed, func(w *world) {
			w.config.KeepCalls = []int{0, 3}[seed/4%2]
			w.doom(120)
			if seed%5 == 0 {
				w.deaf[w.rng.IntN(size)] = 60
			}
		}, func(c Comm) error {
			for i := range calls {
				release := func() {}
				if seed%8 == 0 && i%3 == 0 {
					release = c.Hold()
				}
				call := first
				if seed%2 == 0 {
					call = rounds[i%3]
				}
				if err := call(context.Background(), c, RunThrough, i, &r); err != nil {
					return err
				}
				release()
			}
			return exchangeAll(context.Background(), c, RunThrough, calls, &r)
		})
		for _, rank := range w.live() {
			if w.errs[rank] != nil {
				t.Errorf("seed %d: rank %d: %v", seed, rank, w.errs[rank])
			}
		}
		for i := range calls + 1 {
			for task := range size {
				if _, ok := r.got[[2]int{i, task}]; !ok {
					t.Errorf("seed %d: no process has the result of task %d in call %d", seed, task, i)
				}
			}
		}
		if len(r.bad) > 0 {
			t.Errorf("seed %d: %v", seed, r.bad)
		}
		if t.Failed() {
			return
		}
	}
}
