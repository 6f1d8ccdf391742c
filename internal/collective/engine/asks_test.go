package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// busyHost runs processes that share one processor, in virtual time: messages are received one after
// the other, and each takes cost.
type busyHost struct {
	engines []*Engine
	mu      sync.Mutex
	queue   []hostMessage
	sent    int
	cost    time.Duration
	wake    chan struct{}
	work    sync.WaitGroup
	end     context.CancelFunc
}

type hostMessage struct {
	from, to int
	bytes    []byte
}

type hostLink struct {
	h    *busyHost
	rank int
}

func (l hostLink) Send(_ context.Context, to int, head, body []byte) error {
	h := l.h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, hostMessage{l.rank, to, slices.Concat(head, body)})
	h.sent++
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return nil
}

// run receives messages until the context ends.
func (h *busyHost) run(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		h.mu.Lock()
		queue, cost := h.queue, h.cost
		h.queue = nil
		h.mu.Unlock()
		for _, m := range queue {
			time.Sleep(cost)
			if err := h.engines[m.to].Receive(m.from, m.bytes); err != nil {
				t.Error(err)
			}
		}
		if len(queue) > 0 {
			continue
		}
		select {
		case <-h.wake:
		case <-ctx.Done():
		}
	}
}

// messages returns how many messages were sent, and sets what one costs.
func (h *busyHost) messages(cost time.Duration) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cost = cost
	return h.sent
}

func newBusyHost(t *testing.T, c Config, cost time.Duration) *busyHost {
	ctx, end := context.WithCancel(t.Context())
	h := &busyHost{wake: make(chan struct{}, 1), cost: cost, end: end}
	for r := range c.Size {
		c.Rank, c.Link = r, hostLink{h, r}
		e, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		h.engines = append(h.engines, e)
	}
	h.work.Go(func() { h.run(ctx, t) })
	return h
}

// all makes a call on every process but some, and returns when it has returned everywhere.
func (h *busyHost) all(call func(c Comm) error, without ...int) (errs []error) {
	errs = make([]error, len(h.engines))
	var done sync.WaitGroup
	for r, e := range h.engines {
		if !slices.Contains(without, r) {
			done.Go(func() { errs[r] = call(e.Comm()) })
		}
	}
	done.Wait()
	return errs
}

func (h *busyHost) close() {
	h.end()
	h.work.Wait()
	for _, e := range h.engines {
		e.Close()
	}
}

// double is recursive doubling: every task hears of every other one in log2 steps.
func double(ctx context.Context, c Comm) error {
	s := Signature{Kind: Allreduce, Root: NoRoot, Length: 1, Element: 11}
	return c.Do(ctx, s, func(t *Task) error {
		for step, mask := 0, 1; mask < t.N; step, mask = step+1, 2*mask {
			if err := t.Send(t.ID^mask, step, make([]byte, 8)); err != nil {
				return err
			}
			if _, err := t.Receive(t.ID^mask, step); err != nil {
				return err
			}
		}
		return nil
	})
}

// Case 89: slow calls of many processes on few processors do not make each other slower. Processes ask
// others for their progress, but the messages per process and call do not grow with the number of
// processes, and when the load ends, calls are as fast as before it.
func TestNoStormOfAsks(t *testing.T) {
	sizes := []int{16, 64, 128, 256}
	if testutil.RaceEnabled || testing.Short() {
		sizes = sizes[:2]
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steps := bits.Len(uint(size)) - 1
				quiet := slowCall / 2 / time.Duration(size*steps) // a call takes half of slowCall
				h := newBusyHost(t, Config{Size: size}, quiet)
				defer h.close()
				measure := func(calls int, cost time.Duration) (each time.Duration, asks float64) {
					before, began := h.messages(cost), time.Now()
					for range calls {
						for r, err := range h.all(func(c Comm) error { return double(t.Context(), c) }) {
							if err != nil {
								t.Fatalf("rank %d: %v", r, err)
							}
						}
					}
					perRank := float64(h.messages(cost)-before) / float64(size*calls)
					return time.Since(began) / time.Duration(calls), perRank - float64(steps)
				}
				base, asks := measure(10, quiet)
				if asks != 0 {
					t.Errorf("quiet: %.1f asks and answers per process and call", asks)
				}
				loaded, asks := measure(20, 16*quiet)
				t.Logf("quiet: %v a call; loaded: %v, %.1f asks and answers per process and call", base, loaded, asks)
				if asks > 2 || loaded < slowCall {
					t.Errorf("loaded: %v a call, %.1f asks and answers per process and call", loaded, asks)
				}
				after, asks := measure(20, quiet)
				if asks > 1 || after > base+base/4 {
					t.Errorf("after the load: %v a call, before it %v; %.1f asks and answers per process and call", after, base, asks)
				}
			})
		})
	}
}

// A call that times out names the process that has not come, at every process and for every number of
// processes, although asks are paced.
func TestPacedAsksFindTheMissing(t *testing.T) {
	for _, size := range []int{4, 16, 64} {
		synctest.Test(t, func(t *testing.T) {
			h := newBusyHost(t, Config{Size: size}, time.Microsecond)
			defer h.close()
			h.all(func(c Comm) error { return double(t.Context(), c) })
			before := h.messages(time.Microsecond)
			missing := size / 3
			errs := h.all(func(c Comm) error {
				short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				return double(short, c)
			}, missing)
			for r, err := range errs {
				var late *TimeoutError
				var aborted *AbortError
				switch {
				case r == missing || errors.As(err, &aborted):
				case !errors.As(err, &late) || len(late.Missing) != 1 || late.Missing[0].Rank != missing:
					t.Errorf("%d processes, rank %d: %v", size, r, err)
				}
			}
			if each := (h.messages(time.Microsecond) - before) / size; each > 4*size {
				t.Errorf("%d processes: %d messages each in a call of two seconds", size, each)
			}
		})
	}
}
