// Package collectives measures collective operations among processes on this host.
// Each call is measured in two failure modes, run-through and report, and compared
// with Open MPI if that is asked for. Systems are interleaved in one run, because only
// ratios of one run mean anything.
package collectives
