// Package handoff decides which partitions a member of a group owns, and when: a state
// machine without I/O.
//
// Each view has a map from partition to member, a function of the view alone ([Map]), so
// members agree on it without a message. The member of the map is the only one that may
// begin to own the partition in that view, so (partition, view number) names at most one
// owner: that is the fencing token. What the machines tell each other, by [Message], is
// when: the owner of an earlier view has released the partition, or has not, and is gone.
//
//   - In every view each member reports what it holds. A member that holds what the map
//     gives to another one drains it and releases it.
//   - A member of the map begins at once when the holder has released the partition.
//   - If no member holds it, it waits for Config.Lease: an owner that has lost touch with a
//     majority stops within four fifths of that ([Machine.Confirm]).
//   - If the holder does not release it, or a member does not report, it waits for
//     Config.Handoff and Config.Lease.
package handoff
