package experiments

import "math/bits"

// collectiveModel is what the textbook says of a call without failures.
type collectiveModel struct{ latency, messages int }

// hop is what a message takes, from the start of its send to the end of its
// receive.
func (r *collectiveRun) hop() int { return 2*r.o + r.l }

// model holds where P is a power of two: dissemination, binomial trees, recursive
// doubling and the scan of Hillis and Steele all take log2 P hops.
func (r *collectiveRun) model() collectiveModel {
	if r.f > 0 {
		return r.correctedModel()
	}
	p, rounds := r.size, bits.Len(uint(r.size))-1
	m := collectiveModel{latency: r.hop() * rounds}
	switch r.call {
	case "broadcast", "reduce":
		m.messages = p - 1
	case "scan": // in each round, those who have nobody so far on send nothing
		m.messages = p*rounds - (p - 1)
	default:
		m.messages = p * rounds
	}
	return m
}

// correctedModel is that of Küttler and Härtig, Fault-tolerant Reduce and Allreduce
// operations based on correction (2026). Messages: "f(f+1)·⌊(n−1)/(f+1)⌋ + a(a−1)
// for up-correction (a: size of the last, smaller group) and n−1 for the tree"; an
// Allreduce goes the same ways back, and takes twice as many.
//
// The latency is that of the longest path: an exchange in the group, the last of
// whose f sends starts (f−1)·o after the first; up a binomial tree of groups; and a
// hop to the root. Back it is the same hops, and f sends to the group at the end.
// Ports that have to receive two messages at once make it a little more.
func (r *collectiveRun) correctedModel() collectiveModel {
	groups, last := (r.size-1)/(r.f+1), (r.size-1)%(r.f+1)+1
	tree := r.hop() * (depth(groups) + 1)
	m := collectiveModel{
		latency:  r.hop() + (r.f-1)*r.o + tree,
		messages: r.f*(r.f+1)*groups + last*(last-1) + r.size - 1,
	}
	if r.call == "allreduce" {
		m.latency += tree + r.f*r.o
		m.messages *= 2
	}
	return m
}

// depth is that of a binomial tree of n: the most bits that a number below it has.
func depth(n int) (most int) {
	for i := range n {
		most = max(most, bits.OnesCount(uint(i)))
	}
	return most
}
