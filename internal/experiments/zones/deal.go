package zones

import "github.com/pleach-go/pleach/protocol"

// deal gives each process a rank in the flat group, at random: a group that knows no
// zones has its members in the order in which they came. It is a Feistel network, which
// takes no memory for a billion processes: a permutation of the least square of a power
// of two that holds them all, walked until it ends among them.
type deal struct {
	size protocol.Rank
	half uint // bits
	seed uint64
}

func newDeal(size protocol.Rank, seed uint64) deal {
	d := deal{size: size, half: 1, seed: seed}
	for size > 1<<(2*d.half) {
		d.half++
	}
	return d
}

// rank is the rank of a process.
func (d deal) rank(process protocol.Rank) protocol.Rank {
	const rounds = 4
	mask := uint64(1)<<d.half - 1
	for {
		left, right := uint64(process)>>d.half, uint64(process)&mask
		for round := range uint64(rounds) {
			left, right = right, left^mix(right^d.seed+round<<32)&mask
		}
		process = protocol.Rank(left<<d.half | right)
		if process < d.size {
			return process
		}
	}
}

// mix is the finalizer of SplitMix64.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
