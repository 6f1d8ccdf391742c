package logp

import (
	"math"
	"slices"
)

// Distribution sums up one figure over many runs.
type Distribution struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	P5     float64 `json:"p5"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p999"`
	Max    float64 `json:"max"`
}

// Distribute sums up a figure of every result. Percentiles are by nearest rank:
// a value that occurred, below or at which at least that share of runs lies.
func Distribute[R any](results []R, figure func(*R) float64) Distribution {
	if len(results) == 0 {
		return Distribution{}
	}
	values := make([]float64, len(results))
	var sum float64
	for i := range results {
		values[i] = figure(&results[i])
		sum += values[i]
	}
	slices.Sort(values)
	mean := sum / float64(len(values))
	var squares float64
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	percentile := func(p float64) float64 {
		rank := int(math.Ceil(p/100*float64(len(values)))) - 1
		return values[max(rank, 0)]
	}
	return Distribution{
		Mean:   mean,
		StdDev: math.Sqrt(squares / float64(len(values))),
		P5:     percentile(5),
		P50:    percentile(50),
		P95:    percentile(95),
		P99:    percentile(99),
		P999:   percentile(99.9),
		Max:    values[len(values)-1],
	}
}
