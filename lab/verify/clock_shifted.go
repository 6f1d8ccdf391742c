//go:build shifted

package main

import "time"

// shiftClock shifts the clock of this process. See buildMember.
func shiftClock(s shift) { time.ShiftClock(s.Step, s.Rate) }
