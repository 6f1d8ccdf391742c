package main

import (
	"fmt"
	"slices"
	"strconv"
)

// readmeColumns are those of the table in README, to which parts add rows.
var readmeColumns = []string{"", "Pleach", "compared with", "result"}

// span prints the lowest and the highest of values.
func span(values []float64) string {
	if len(values) == 0 {
		return none
	}
	low, high := digits(slices.Min(values)), digits(slices.Max(values))
	if low == high {
		return low
	}
	return low + " – " + high
}

// none stands where there is no value.
const none = "–"

// digits prints a value with two digits that mean something, or as a whole number. What is not
// above 0 is no value: nothing takes no time, and less only where a host was disturbed.
func digits(v float64) string {
	switch {
	case v <= 0:
		return none
	case v < 1:
		return fmt.Sprintf("%.2f", v)
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(int(v + 0.5))
}

// thousands prints a number with commas.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// median returns the middle one of values, the upper one of two, or 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// micros prints a number of microseconds as a time.
func micros(us float64) string {
	switch {
	case us <= 0:
		return none
	case us < 1000:
		return digits(us) + " µs"
	}
	return millis(us / 1000)
}

// millis prints a number of milliseconds as a time.
func millis(ms float64) string {
	switch {
	case ms <= 0:
		return none
	case ms < 1:
		return digits(ms*1000) + " µs"
	case ms < 1000:
		return digits(ms) + " ms"
	}
	return digits(ms/1000) + " s"
}

// perSecond prints a rate with three digits.
func perSecond(rate float64) string {
	unit := 1
	for float64(unit)*1000 <= rate {
		unit *= 10
	}
	return thousands(int(rate/float64(unit)+0.5)*unit) + "/s"
}

// ratio prints how often b is in a.
func ratio(a, b float64) string {
	if a <= 0 || b <= 0 {
		return none
	}
	return fmt.Sprintf("%.2f", a/b)
}
