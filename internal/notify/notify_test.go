package notify

import "testing"

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
