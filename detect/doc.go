// Package detect notices members that may have died.
//
// A [Detector] only reports suspicions and their withdrawal. It never removes a
// member: the members agree on that (membership), because a detector can be
// wrong. A member that was slow or stopped for a while must not lose its rank for
// that, and must not cost others theirs when it resumes.
//
//   - [Connections] probes a peer as soon as a connection to it breaks. It finds
//     dead processes, whose host refuses connections, within milliseconds.
//   - Groups with views find hung processes among ring neighbors by heartbeats, which
//     they report through a [Tracker].
//   - Package [github.com/pleach-go/pleach/detect/swim] probes permanently, and
//     finds silent hosts within seconds.
//   - [Feed] passes on the knowledge of an external source.
//   - [None] suspects no peer.
//   - [All] combines several detectors.
//
// A program's own detector is built on [Tracker].
//
// Broadcasts need no detector: corrected trees reach every live member although
// others are dead.
package detect
