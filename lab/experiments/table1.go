package experiments

import (
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// Table1Rates are the fault rates of Corrected Trees' Table 1, as fractions.
func Table1Rates() []float64 { return []float64{0.0001, 0.001, 0.01, 0.02, 0.04} }

// Table1Shapes are its trees.
func Table1Shapes(l, o protocol.Time) []topology.Shape {
	return []topology.Shape{topology.Binomial(), topology.KAry(4), topology.Lame(2), topology.Optimal(l, o)}
}
