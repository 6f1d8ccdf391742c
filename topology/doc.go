// Package topology answers where a message goes: trees and the ring as
// arithmetic. Nothing here has state that changes, and no question allocates,
// so one [Tree] serves any number of processes, simulated or real.
//
// A [Shape] says how many children a process has and how deep the tree is; an
// [Order] says how ranks are laid over it. The interleaved order spreads every
// subtree over the whole ring, so that a dead inner node leaves many small gaps
// instead of one large one (Corrected Trees §3.2). The in-order numbering is
// what that is compared with.
package topology
