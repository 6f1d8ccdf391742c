//go:build race

package collective

// raceDetector slows everything down tenfold: tests do less.
const raceDetector = true
