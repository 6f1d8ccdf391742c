// Package simulation runs whole groups under one seed: deterministic simulation testing,
// as FoundationDB (Zhou et al. 2021) and TigerBeetle do it.
//
// A simulation has a virtual clock, a network, hosts, detectors' probes and programs,
// all of which draw from the seed. Everything else is the real code: each process is a
// [lifecycle.Machine] until it is a member, with a [member.RestartedVoter] if its disk has a place, and
// then a [member.Machine]. The network delays, blocks, resets and fills up; processes pause,
// crash, restart and come twice; programs broadcast and receive at their own pace, and may
// use the machines of internal/services, as packages ordered, replicated, lease and shard
// do. Then the faults end. During a run the [checker] holds the members to what the group
// promises, and afterwards to all of them being one group again.
//
// A run depends on nothing but its seed, so the seed is all that a failure needs to be
// replayed.
//
// All of it is tests: no program links it.
package simulation
