//go:build race

package membership

// raceEnabled tells the long tests to look at fewer cases.
const raceEnabled = true
