package tpch

// Each column has a random stream of its own: the Lehmer generator with the multiplier
// 16807 ("minimal standard", Park & Miller 1988). A row takes a fixed number of draws from
// it, so that any row's state follows from the seed.

const (
	modulus    = 1<<31 - 1
	multiplier = 16807
)

// lehmer is the state of a stream.
type lehmer uint64

// skip advances the stream by n draws.
func (l *lehmer) skip(n int) { *l = lehmer(uint64(*l) * power(multiplier, n) % modulus) }

// draw returns the next number between low and high. It rounds as dbgen does.
func (l *lehmer) draw(low, high int) int {
	*l = *l * multiplier % modulus
	return low + int(float64(*l)/modulus*float64(high-low+1))
}

// power returns base^n modulo the modulus, by repeated squaring.
func power(base uint64, n int) uint64 {
	p := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = p * base % modulus
		}
		base = base * base % modulus
	}
	return p
}

// newColumn returns the stream of a column with one draw per row, at a row.
func newColumn(seed lehmer, row int) lehmer {
	seed.skip(row)
	return seed
}

// lineColumn is the stream of a column of lineitem. An order reserves the draws of
// maxLines lines and leaves the rest unused.
type lineColumn struct {
	lehmer
	order lehmer // the state at the beginning of the order
}

func newLineColumn(seed lehmer, order int) lineColumn {
	seed.skip(order * maxLines)
	return lineColumn{lehmer: seed, order: seed}
}

// nextOrder advances the stream to the lines of the next order.
func (c *lineColumn) nextOrder() {
	c.order = c.order * orderStep % modulus
	c.lehmer = c.order
}

// orderStep is the multiplier of maxLines draws.
const orderStep = multiplier * multiplier % modulus * multiplier % modulus * multiplier % modulus *
	multiplier % modulus * multiplier % modulus * multiplier % modulus
