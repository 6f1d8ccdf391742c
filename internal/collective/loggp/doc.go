// Package loggp predicts how long the algorithms of package collective take, by the LogGP
// model (Alexandrov, Ionescu, Schauser and Scheiman 1995): a message of n bytes takes
// o + L + nG + o, where the overhead o is what either side is busy with it, the latency L
// is spent on the way, and G is the time of a byte.
//
// A job has two kinds of links: those inside a host, which go through memory, and those
// between hosts. The processes of a host share its interface to the others: messages that
// several of them send at once follow each other there, each with nG and the gap g. The gap
// is taken as o/2, because a host has at least two processors that work on its messages.
//
// Everything here is a pure function of the figures, so that all processes of a job, given
// the same figures, choose the same algorithms.
package loggp
