// Package relay is the protocol of a fleet: how a message gets from a member of one zone
// to every member of all zones, as one member's state machine without I/O. Package fleet
// drives it over two groups.
//
// Every member of a zone keeps a log of the last messages, by their origin. What it does
// beyond that depends on its role:
//
//   - The origin broadcasts a message in its zone, and forwards it to the lead (forward.go).
//   - The lead, the first of the zone's delegates in the backbone, ships the messages of its
//     zone to one delegate of every other zone, its gateway, each from the position that the
//     gateway has named (links.go). It is the first of that zone, or one that is nearer
//     (trips.go).
//   - The gateway broadcasts them in its own zone, and acknowledges them when they are stable
//     there (gateway.go).
//   - The other delegates watch the acknowledgments, which the lead broadcasts as watermarks.
//     If those do not move, the next delegate ships, too (watch.go).
//   - A member that misses something asks a delegate of its own zone (repair.go).
//
// Positions are exchanged whenever a lead meets a gateway, and both sides ship what the other
// one lacks: anti-entropy (Demers et al., "Epidemic Algorithms for Replicated Database
// Maintenance", PODC 1987). That is how zones catch up which were cut off, and how a new
// lead finds out where the last one was.
package relay
