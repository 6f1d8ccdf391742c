package loggp

import (
	"math/bits"
	"time"
)

// Model predicts the times of one job.
type Model struct {
	Network
	Layout
}

// combinePerByte is how long combining two bytes takes, in nanoseconds. It depends on the
// operator; this is the sum of float64 that are not in the cache.
const combinePerByte = 0.2

// In the two-level algorithms one task leads those of its host, and the leaders run the
// algorithm that would be best among as many hosts with one task each.

// Host is the model of the tasks of one host.
func (m Model) Host() Model { return Model{m.Network, Even(m.PerHost, 1)} }

// Leaders is the model of one task of each host.
func (m Model) Leaders() Model { return Model{Network{m.Between, m.Between}, Even(m.Hosts, 1)} }

// rounds returns the binary logarithm of the number of tasks, rounded up.
func (m Model) rounds() int { return bits.Len(uint(m.Tasks - 1)) }

func powerOfTwo(n int) bool { return n&(n-1) == 0 }

// crossing returns how many tasks of a host have their partner on another host, if each
// has one at a distance.
func (m Model) crossing(distance int, aligned bool) int {
	k := m.PerHost
	switch {
	case m.Hosts == 1:
		return 0
	case !m.Blocks || distance >= k:
		return k
	case aligned:
		return 0
	}
	return min(distance, k) // those at the border
}

// exchange returns the time of a step in which each task exchanges bytes with its partner.
func (m Model) exchange(distance int, aligned bool, bytes float64) float64 {
	if c := m.crossing(distance, aligned); c > 0 {
		return m.Between.hop(bytes, c)
	}
	return m.Inside.hop(bytes, 1)
}

// fold returns the time that it takes to reduce the number of tasks to a power of two,
// and to send the result to the others.
func (m Model) fold(bytes float64) float64 {
	if powerOfTwo(m.Tasks) {
		return 0
	}
	return 2*m.exchange(1, m.PerHost%2 == 0, bytes) + bytes*combinePerByte
}

// Doubling is an Allreduce by recursive doubling.
func (m Model) Doubling(bytes int) time.Duration {
	n := float64(bytes)
	t, aligned := m.fold(n), powerOfTwo(m.Tasks) && powerOfTwo(m.PerHost)
	for d := 1; 2*d <= m.Tasks; d *= 2 {
		t += m.exchange(d, aligned, n) + n*combinePerByte
	}
	return time.Duration(t)
}

// Halving is an Allreduce by recursive halving and doubling.
func (m Model) Halving(bytes int) time.Duration {
	n := float64(bytes)
	t, aligned := m.fold(n), powerOfTwo(m.Tasks) && powerOfTwo(m.PerHost)
	for d := 1; 2*d <= m.Tasks; d *= 2 {
		n /= 2
		t += 2*m.exchange(d, aligned, n) + n*combinePerByte
	}
	return time.Duration(t)
}

// Allreduce is the better of the two.
func (m Model) Allreduce(bytes int) time.Duration {
	return min(m.Doubling(bytes), m.Halving(bytes))
}

// AllreduceByLevels reduces inside each host, then among the leaders, and sends the result
// down inside each host.
func (m Model) AllreduceByLevels(bytes int) time.Duration {
	in := m.Host()
	return in.ReduceTree(bytes) + m.Leaders().Allreduce(bytes) + in.Tree(bytes)
}

// Tree is a Broadcast of a whole message along a binomial tree.
func (m Model) Tree(bytes int) time.Duration { return time.Duration(m.tree(float64(bytes), 0)) }

// ReduceTree is a Reduce along a binomial tree.
func (m Model) ReduceTree(bytes int) time.Duration {
	return time.Duration(m.tree(float64(bytes), combinePerByte))
}

func (m Model) tree(bytes, perByte float64) float64 {
	return m.path(m.rounds(), bytes) + float64(m.rounds())*bytes*perByte
}

// path returns the time of the longest path through a binomial tree. Its first edges are
// the longest ones, which lead to other hosts; a later one does if the tree's subtrees are
// not the hosts.
func (m Model) path(rounds int, bytes float64) float64 {
	between := 0
	switch {
	case m.Hosts == 1:
	case !m.Blocks:
		between = rounds
	default:
		between = bits.Len(uint(m.Hosts - 1))
		if !powerOfTwo(m.PerHost) {
			between = min(between+1, rounds)
		}
	}
	return float64(between)*m.Between.hop(bytes, 1) + float64(rounds-between)*m.Inside.hop(bytes, 1)
}

// TreeByLevels is a Broadcast among the leaders, and then inside each host.
func (m Model) TreeByLevels(bytes int) time.Duration {
	return m.Leaders().Tree(bytes) + m.Host().Tree(bytes)
}

// ReduceByLevels is the way back.
func (m Model) ReduceByLevels(bytes int) time.Duration {
	return m.Leaders().ReduceTree(bytes) + m.Host().ReduceTree(bytes)
}

// Reduce is the better of a tree and a chain.
func (m Model) Reduce(bytes, segment int) time.Duration {
	return min(m.ReduceTree(bytes), m.ReduceChain(bytes, segment))
}

// Chain is a Broadcast along a chain of all tasks, in segments.
func (m Model) Chain(bytes, segment int) time.Duration { return m.chain(bytes, segment, 0) }

// ReduceChain is a Reduce along a chain of all tasks, in segments.
func (m Model) ReduceChain(bytes, segment int) time.Duration {
	return m.chain(bytes, segment, combinePerByte)
}

// chain is how long the first segment takes to the end of the chain, and then the others
// behind it, one after the other over the slowest link.
func (m Model) chain(bytes, segment int, perByte float64) time.Duration {
	s := float64(min(bytes, segment))
	between := m.Hosts - 1
	if !m.Blocks {
		between = m.Tasks - 1
	}
	first := float64(between)*m.Between.hop(s, 1) + float64(m.Tasks-1-between)*m.Inside.hop(s, 1) +
		float64(m.Tasks-1)*s*perByte
	slowest := m.Inside.busy(s)
	if between > 0 {
		slowest = max(slowest, m.Between.busy(s))
	}
	more := max(0, (bytes+segment-1)/segment-1)
	return time.Duration(first + float64(more)*(slowest+s*perByte))
}

// Barrier is one by dissemination.
func (m Model) Barrier() time.Duration {
	var t float64
	for d := 1; d < m.Tasks; d *= 2 {
		t += m.exchange(d, false, 0)
	}
	return time.Duration(t)
}

// BarrierByLevels gathers inside each host, disseminates among the leaders, and releases
// inside each host.
func (m Model) BarrierByLevels() time.Duration {
	in := m.Host()
	return in.Tree(0) + m.Leaders().Barrier() + in.Tree(0)
}
