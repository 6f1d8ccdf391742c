// Package calibrate measures the LogP parameters of a real network, between two
// processes over Pleach's own transport.
//
// The method is that of Culler and others for the LogP model: a message that is
// answered takes 2·(2o + L); of many that are sent back to back without waiting,
// each takes as long as the slower side is busy with it. In the papers' model
// that is o, as the gap g is not larger and the overheads of both sides are one
// number. L is what is left: half a round trip less 2o. What long messages take beyond
// short ones is LogGP's G. Collective calls pay other figures than bare frames, so two
// processes of a job measure them by calls.
//
// What comes out is what a program sees: system calls, wake-ups and, where two
// processes share a machine, waiting for its cores. Medians are taken, because
// interruptions only ever add; the spread says how much to believe them.
package calibrate
