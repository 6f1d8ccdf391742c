package collective

import (
	"fmt"
	"strings"
)

// Which algorithm a call takes depends on its kind and length only, because all
// tasks must take the same, and the result must not depend on anything else.
const (
	// halvingFrom is from how many bytes an Allreduce takes halving.
	halvingFrom = 16 << 10
	// pipeline is the longest piece that a tree passes on as a whole: the next
	// piece comes while it is.
	pipeline = 256 << 10
)

// Choice is which algorithm a collective takes, from a number of bytes on.
type Choice struct {
	Collective string
	From       int
	Algorithm  string
}

// Table is the choices that are made.
type Table []Choice

// Choices returns the table.
func Choices() Table {
	return Table{
		{barrier.String(), 0, "dissemination"},
		{broadcasting.String(), 0, "binomial tree"},
		{broadcasting.String(), pipeline, "binomial tree, pipelined"},
		{scattering.String(), 0, "binomial tree"},
		{gathering.String(), 0, "binomial tree"},
		{reducing.String(), 0, "binomial tree"},
		{reducing.String(), pipeline, "binomial tree, pipelined"},
		{allreducing.String(), 0, "recursive doubling"},
		{allreducing.String(), halvingFrom, "recursive halving and doubling"},
		{allgathering.String(), 0, "Bruck"},
		{reduceScattering.String(), 0, "1-factor"},
		{alltoall.String(), 0, "1-factor"},
		{scanning.String(), 0, "recursive doubling"},
		{agreeing.String(), 0, "vote, store, commit"},
	}
}

// String returns the table as text.
func (t Table) String() string {
	var b strings.Builder
	for _, c := range t {
		fmt.Fprintf(&b, "%-14s from %6d bytes: %s\n", c.Collective, c.From, c.Algorithm)
	}
	return b.String()
}
