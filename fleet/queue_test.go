package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// All items are taken, each once, by goroutines of which some end meanwhile: those that go
// on are woken for what is left. What waits at the end of the queue's life is still taken.
func TestQueueWhoseReceiversEnd(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			const items = 1000
			life, end := context.WithCancel(t.Context())
			q := newQueue(life, items, func(int) int { return 1 })
			var taken [items]atomic.Int32
			var receiving sync.WaitGroup
			receive := func(ctx context.Context) {
				receiving.Go(func() {
					for i := range q.all(ctx) {
						taken[i].Add(1)
					}
				})
			}
			brief, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 3 {
				receive(brief)
			}
			receive(t.Context())
			for i := range items {
				q.add(i)
				if i == items/2 {
					cancel()
				}
			}
			end()
			receiving.Wait()
			for i := range taken {
				if n := taken[i].Load(); n != 1 {
					t.Fatalf("item %d was taken %d times", i, n)
				}
			}
			if q.bytes != 0 || q.items.Len() != 0 {
				t.Errorf("%d bytes are left", q.bytes)
			}
		})
	}
}

// A receiver is woken by an item, by the end of its context, and by that of the queue.
func TestQueueWakesReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		defer end()
		q := newQueue(life, 10, func(int) int { return 1 })
		got := make(chan int)
		ctx, cancel := context.WithCancel(t.Context())
		for _, c := range []context.Context{ctx, t.Context()} {
			go func() {
				for i := range q.all(c) {
					got <- i
				}
				got <- -1
			}()
		}
		synctest.Wait()
		q.add(7)
		if i := <-got; i != 7 {
			t.Errorf("received %d", i)
		}
		synctest.Wait()
		for _, stop := range []func(){cancel, end} {
			stop()
			if i := <-got; i != -1 {
				t.Errorf("received %d", i)
			}
		}
	})
}

// A producer that calls room waits while the queue is too long, and not beyond its life.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		q := newQueue(life, 2, func(int) int { return 1 })
		var rooms atomic.Int32
		var waiting sync.WaitGroup
		for i := range 3 {
			q.add(i)
		}
		for range 2 {
			waiting.Go(func() { q.room(); rooms.Add(1) })
		}
		synctest.Wait()
		if n := rooms.Load(); n != 0 {
			t.Errorf("%d producers do not wait", n)
		}
		for range q.all(life) {
			break
		}
		waiting.Wait()
		q.add(3)
		waiting.Go(q.room)
		end()
		waiting.Wait()
	})
}
