//go:build unix

package logp_test

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/topology"
)

// BenchmarkSparse is one run of Corrected Trees' Table 1, drawing the dead
// included. All of the table, 100,000 runs for each of these, is to take ten
// minutes of two cores: 600 µs a run on average.
func BenchmarkSparse(b *testing.B) {
	const l, o = 2, 1
	for _, shape := range []topology.Shape{
		topology.Binomial(), topology.KAry(4), topology.Lame(2),
		topology.Optimal(l, o),
	} {
		for _, dead := range []int{6, 65, 655, 1310, 2621} {
			b.Run(fmt.Sprintf("%s/dead=%d", shape, dead), func(b *testing.B) {
				benchmarkSparse(b, shape, logp.Params{L: l, O: o}, dead)
			})
		}
	}
}

func benchmarkSparse(b *testing.B, shape topology.Shape, params logp.Params, dead int) {
	const size = 65536
	tree, err := topology.New(shape, topology.Interleaved, size, 0)
	if err != nil {
		b.Fatal(err)
	}
	lineage, err := logp.NewLineage(tree, params)
	if err != nil {
		b.Fatal(err)
	}
	sparse, err := logp.NewSparse(params, lineage, logp.SparseChecked, 0)
	if err != nil {
		b.Fatal(err)
	}
	set := logp.NewDeadSet(size)
	b.ReportAllocs()
	began := cpuTime(b)
	for seed := uint64(0); b.Loop(); seed++ {
		set.Draw(0, dead, seed)
		if _, err := sparse.Run(set); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N)/1e3, "cpu-µs/op")
}
