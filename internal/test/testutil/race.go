//go:build race

package testutil

// RaceEnabled reports whether the race detector is on. It slows a test down about
// tenfold, so long tests do less.
const RaceEnabled = true
