package collective

// RaceDetector is for tests outside the package.
const RaceDetector = raceDetector
