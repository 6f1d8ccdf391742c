//go:build !race

package logp_test

// raceEnabled makes tests that compute a lot and share nothing smaller.
const raceEnabled = false
