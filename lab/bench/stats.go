package bench

import (
	"math"
	"time"
)

// Percentile is the smallest of sorted values that p percent of all are not
// above. Of none it is 0.
func Percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// Micros is a time in microseconds, to 0.1 µs.
func Micros(d time.Duration) float64 { return Round(float64(d.Nanoseconds())/1e3, 1) }

// Millis is a time in milliseconds, to 1 µs.
func Millis(d time.Duration) float64 { return Round(float64(d.Nanoseconds())/1e6, 3) }

// Round leaves out digits that mean nothing.
func Round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(v*scale) / scale
}
