//go:build !shifted

package main

// shiftClock does nothing in a program whose package time is Go's own.
func shiftClock(shift) {}
