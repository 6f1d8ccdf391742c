package notify

import (
	"sync"
	"sync/atomic"
	"testing"
)

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A notification wakes every goroutine that has asked before it, and none that asks
// after it.
func TestNotifyWakesAllThatWait(t *testing.T) {
	var n Notifier
	n.Notify() // no goroutine waits: nothing is remembered
	first, second := n.Wait(), n.Wait()
	if closed(first) || closed(second) {
		t.Fatal("woken without a notification")
	}
	n.Notify()
	if !closed(first) || !closed(second) {
		t.Fatal("not woken")
	}
	if closed(n.Wait()) {
		t.Fatal("woken by a notification of the past")
	}
}

func TestNotifyDoesNotAllocate(t *testing.T) {
	var n Notifier
	if allocs := testing.AllocsPerRun(100, n.Notify); allocs > 0 {
		t.Fatalf("%v allocations", allocs)
	}
}

// No wake-up is lost, whenever a change happens between Wait and the check.
func TestNoWakeUpIsLost(t *testing.T) {
	for range 2000 {
		var n Notifier
		var changed atomic.Bool
		var done sync.WaitGroup
		for range 2 {
			done.Go(func() {
				for {
					next := n.Wait()
					if changed.Load() {
						return
					}
					<-next
				}
			})
		}
		done.Go(func() {
			changed.Store(true)
			n.Notify()
		})
		done.Wait()
	}
}
