// Package alarm wakes a driver at a time more precisely than [time.Timer] does. While a
// process is idle, Go's runtime waits for timers and for connections in one call, which
// counts in milliseconds: a timer of 0.2 ms fires after 1 ms. Corrections of a broadcast
// that takes 0.3 ms wait for such timers.
package timers

import "time"

// Alarm calls a function at the time that was set last.
type Alarm interface {
	// Set sets when to call the function next, from now on, and replaces the time before.
	// The function may still be called for that one.
	Set(d time.Duration)
	// Stop ends the alarm. It does not interrupt a running call of the function.
	Stop()
}

// Coarse returns an alarm that calls f by a [time.Timer]. It follows the virtual time of
// tests.
func Coarse(f func()) Alarm {
	a := coarse{time.AfterFunc(time.Hour, f)}
	a.timer.Stop()
	return a
}

// Precise returns an alarm that calls f in real time, on Linux to less than a millisecond.
func Precise(f func()) Alarm {
	if a := newFine(f); a != nil {
		return &both{Coarse(f), a}
	}
	return Coarse(f)
}

// coarse is an alarm by Go's timers.
type coarse struct{ timer *time.Timer }

func (c coarse) Set(d time.Duration) { c.timer.Reset(d) }
func (c coarse) Stop()               { c.timer.Stop() }

// fineBelow is up to which time an alarm is worth a system call.
const fineBelow = 4 * time.Millisecond

// both sets near times by the fine alarm, and others by the coarse one. A time of the other
// one that was set before stays: a call too many is harmless.
type both struct{ coarse, fine Alarm }

func (b *both) Set(d time.Duration) {
	if d < fineBelow {
		b.fine.Set(d)
		return
	}
	b.coarse.Set(d)
}

func (b *both) Stop() {
	b.coarse.Stop()
	b.fine.Stop()
}
