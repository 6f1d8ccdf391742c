//go:build !race

package experiments

// raceEnabled makes tests that compute a lot and share nothing smaller.
const raceEnabled = false
