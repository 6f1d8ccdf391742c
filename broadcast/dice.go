package broadcast

import (
	"math/bits"

	"github.com/pleach-go/pleach/protocol"
)

// dice is a process's own source of chance: SplitMix64 (Steele, Lea, Flood
// 2014), eight bytes of state. Seeded by broadcast and rank, it makes every
// broadcast repeatable whatever the order in which its processes are driven.
type dice uint64

func newDice(seed uint64, rank protocol.Rank) dice {
	d := dice(seed)
	d = dice(d.roll()) + dice(rank)
	return dice(d.roll())
}

func (d *dice) roll() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// other draws a rank other than p's own. Multiplying instead of dividing
// prefers some ranks by less than P/2^64.
func (d *dice) other(p *Process) protocol.Rank {
	n, _ := bits.Mul64(d.roll(), uint64(p.plan.ring.Size-1))
	r := protocol.Rank(n)
	if r >= p.rank() {
		r++
	}
	return r
}
