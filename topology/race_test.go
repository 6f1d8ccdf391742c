//go:build race

package topology_test

// raceEnabled tells the long tests to look at fewer sizes.
const raceEnabled = true
