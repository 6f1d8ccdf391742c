// Package topology computes where a message goes: trees and the ring as
// arithmetic. Its values are immutable and no method allocates, so one [Tree]
// serves any number of processes, simulated or real.
//
// A [Shape] defines how many children a process has and how deep the tree is. An
// [Order] defines how ranks are assigned to its nodes. The interleaved order
// spreads every subtree over the whole ring, so that a dead inner node leaves
// many small gaps instead of one large one (Küttler et al., Corrected Trees for
// Reliable Group Communication, PPoPP 2019, §3.2). The in-order numbering exists
// for comparison.
package topology
