// Package detect notices members that may have died.
//
// A [Detector] only reports suspicion, and its withdrawal. None removes anybody:
// that is for the members to agree on (package membership), because a detector
// can be wrong. One that was slow, or stopped for a while, must not lose its
// place for it, and must not cost others theirs once it goes on.
//
//   - [Connections] looks at once where a connection has broken. It finds dead
//     processes, whose system refuses connections, within milliseconds.
//   - [SWIM] asks all the time, and finds silent hosts within seconds.
//   - [Feed] passes on what somebody outside knows.
//   - [None] suspects nobody.
//   - [All] listens to several.
//
// Broadcasts need none of them: unknown dead are corrected around.
package detect
