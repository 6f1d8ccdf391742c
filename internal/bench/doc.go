// Package bench measures how long a broadcast takes to reach every live member,
// and how many a second do when they follow each other back to back.
//
// Pleach is measured beside two systems that do nothing else, in the same run
// and interleaved with it, because only a ratio of one run means anything on a
// machine that others use too: bare, a binomial tree over persistent
// connections, and flat, a root that writes to all. Both send frames of the size
// of Pleach's; members that pass them on join those that have arrived into one
// write.
//
// A [system] says how one member works. A [group] is all members of a system with
// its own dead ones, within this process ([local]) or in processes of their own
// ([remote]). [Run] puts groups side by side. A [System] is one that comes from
// elsewhere, such as those of bench/peers; its group is [outside].
//
// [Stabilize] measures something else: how soon the members of a group agree that
// one of them was killed. Each is a process, a [Survivor], and tells what it sees.
package bench
