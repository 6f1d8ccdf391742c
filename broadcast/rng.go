package broadcast

import (
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// rng is a process's own source of randomness: SplitMix64 (Steele, Lea, Flood
// 2014), eight bytes of state. Seeded by broadcast and rank, it makes every
// broadcast repeatable whatever the order in which its processes are driven.
type rng uint64

func newRNG(seed uint64, rank protocol.Rank) rng {
	r := rng(seed)
	r = rng(r.uint64()) + rng(rank)
	return rng(r.uint64())
}

func (r *rng) uint64() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// other draws a rank other than p's own. Multiplying instead of dividing
// prefers some ranks by less than P/2^64.
func (r *rng) other(p *Process) protocol.Rank {
	n, _ := bits.Mul64(r.uint64(), uint64(p.plan.ring.Size-1))
	other := protocol.Rank(n)
	if other >= p.rank() {
		other++
	}
	return other
}
