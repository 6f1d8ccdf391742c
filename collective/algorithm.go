package collective

import (
	"fmt"
	"strings"
)

// choices are which algorithm a call takes. It depends on the call's kind and length
// and the number of tasks only, because all tasks must take the same, and the result
// must not depend on anything else. Lengths are in bytes; of elements that go
// through a Codec nobody knows it before they are there, so it is 0.
type algorithms struct {
	// halvingFrom is from how long on an Allreduce takes halving, and chainFrom
	// a Reduce a chain. A Broadcast takes one beyond treeUpTo.
	halvingFrom, chainFrom, treeUpTo int
	// piece is how long pieces are that follow each other along a chain: the
	// next one comes while one is passed on.
	piece int
	// bruckFrom is from how many tasks on the parts of an Alltoall travel
	// together, if they are no longer than together.
	bruckFrom, together int
}

// standardChoices are for few processors, where what counts is how many messages
// and copies there are in all: along a chain nobody sends anything twice. Around
// these lengths the algorithms take the same time, within what pleach bench
// collectives can tell apart on two processors.
func standardAlgorithms() algorithms {
	return algorithms{
		halvingFrom: 16 << 10, chainFrom: 512 << 10, treeUpTo: 512 << 10, piece: 128 << 10,
		bruckFrom: 9, together: 512,
	}
}

// Choice is which algorithm a collective takes, from a number of bytes and of tasks
// on.
type AlgorithmRule struct {
	Collective string `json:"collective"`
	From       int    `json:"from_bytes"`
	Tasks      int    `json:"from_tasks"`
	Algorithm  string `json:"algorithm"`
}

// Table is the choices that are made.
type AlgorithmTable []AlgorithmRule

// Choices returns the table.
func Algorithms() AlgorithmTable {
	c := standardAlgorithms()
	return AlgorithmTable{
		{barrier.String(), 0, 1, "dissemination"},
		{broadcasting.String(), 0, 1, "binomial tree"},
		{broadcasting.String(), c.treeUpTo + 1, 1, fmt.Sprintf("chain, in pieces of %d bytes; the first one by a binomial tree", c.piece)},
		{scattering.String(), 0, 1, "binomial tree"},
		{gathering.String(), 0, 1, "binomial tree"},
		{reducing.String(), 0, 1, "binomial tree"},
		{reducing.String(), c.chainFrom, 1, fmt.Sprintf("chain, in pieces of %d bytes", c.piece)},
		{allreducing.String(), 0, 1, "recursive doubling"},
		{allreducing.String(), c.halvingFrom, 1, "recursive halving and doubling (Rabenseifner)"},
		{allgathering.String(), 0, 1, "Bruck"},
		{reduceScattering.String(), 0, 1, "1-factor"},
		{alltoall.String(), 0, 1, "1-factor"},
		{alltoall.String(), 0, c.bruckFrom, "Bruck, for parts that are small"},
		{alltoall.String(), c.together + 1, c.bruckFrom, "1-factor, for those that are not"},
		{scanning.String(), 0, 1, "recursive doubling"},
		{agreeing.String(), 0, 1, "vote, store, commit"},
	}
}

// String returns the table as text.
func (t AlgorithmTable) String() string {
	var b strings.Builder
	for _, c := range t {
		fmt.Fprintf(&b, "%-14s from %6d bytes, %d tasks: %s\n", c.Collective, c.From, c.Tasks, c.Algorithm)
	}
	return b.String()
}
