// Package archtest holds the architecture of this module as a test: which
// package may import which, and what a protocol may not do.
//
// Pleach rests on one promise: the code that a simulator runs a billion times
// is the code that ships. The promise breaks without any test noticing when a
// protocol reads a clock, starts a goroutine or learns who drives it. So the
// rules are a test of their own, which needs nothing but the Go distribution.
package archtest
