// Package simulation runs whole fleets under one seed: zones, delegates, their backbone, links
// between zones, and programs that broadcast as fast as they may and read slowly. Members are
// killed and come back, zones are cut off or die, delegates get stuck. Each member is the
// shipped [relay.Machine] and the shipped [backbone.Machine]; this package has the part of package
// fleet's driver, and of the groups it is in: broadcasts in a zone are ordered by sender and reach
// all survivors or none, views come late and at different times, and queues are bounded.
//
// A backbone is a set of delegates with a view (backbone_test.go). Those of the view that reach each
// other decide the next one if they are a quorum; the others learn that they have none. Questions
// about backbones take time and get lost, and processes are gone or cut off when they are asked
// (delegate_test.go). When all faults are over, all zones come together in one backbone, within
// bounded time and few changes, and stay there (united_test.go).
//
// Package internal/test/simulation does the same for the machines of a group. A run depends on
// nothing but its seed, so the seed is all that a failure needs to be replayed.
//
// All of it is tests: no program links it.
package fleetsimulation
