//go:build !race

package broadcast_test

// raceEnabled tells the long tests to look at fewer cases.
const raceEnabled = false
