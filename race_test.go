//go:build race

package pleach_test

// raceEnabled makes tests that start many processes smaller.
const raceEnabled = true
