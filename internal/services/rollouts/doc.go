// Package rollouts decides which members of a group get a payload, and when: a state machine
// without I/O. All members apply the same commands in the same order, so none of them coordinates.
//
// A rollout goes through its waves. Each wave has four steps:
//
//   - The members of the wave take the payload ([Take]), apply it, and report ([Report]). A member
//     that begins says so first: the payload is never applied twice, and it is known who may have it.
//   - The payload runs for Spec.Hold.
//   - All members that have the payload are asked for their gates ([Answer]).
//   - If all have passed, the next wave begins.
//
// A member that cannot apply the payload, a gate that fails, a member that does not report within
// Spec.Timeout, and the loss of most members of a wave fail the rollout: it stops, and the members
// that may have the payload revert it if there is something to revert it with; or it pauses.
//
// The state has no times. The member with the lowest rank proposes a [Tick] when a time is over,
// and [Seen] when the view changes; one with a higher rank does if that one does not ([Clock]).
package rollouts
