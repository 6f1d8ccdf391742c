package topology_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

func TestRing(t *testing.T) {
	ring := topology.Ring{Size: 10}
	for _, test := range []struct{ got, want protocol.Rank }{
		{ring.Right(3, 4), 7},
		{ring.Right(9, 1), 0},
		{ring.Right(7, 25), 2},
		{ring.Left(3, 3), 0},
		{ring.Left(0, 1), 9},
		{ring.Left(2, 25), 7},
		{ring.Left(5, 10), 5},
		{ring.DistanceRight(8, 1), 3},
		{ring.DistanceLeft(8, 1), 7},
		{ring.DistanceLeft(1, 8), 3},
		{ring.DistanceRight(4, 4), 0},
	} {
		if test.got != test.want {
			t.Errorf("got %d, want %d", test.got, test.want)
		}
	}
}

func TestGaps(t *testing.T) {
	for _, test := range []struct {
		colored string // one character a rank, # if colored
		want    []topology.Gap
		longest protocol.Rank
	}{
		{"", nil, 0},
		{"#", nil, 0},
		{".", []topology.Gap{{First: 0, Length: 1}}, 1},
		{"####", nil, 0},
		{"....", []topology.Gap{{First: 0, Length: 4}}, 4},
		{"#...", []topology.Gap{{First: 1, Length: 3}}, 3},
		{"...#", []topology.Gap{{First: 0, Length: 3}}, 3},
		{"..#.", []topology.Gap{{First: 3, Length: 3}}, 3},
		{".#..#.", []topology.Gap{{First: 2, Length: 2}, {First: 5, Length: 2}}, 2},
		{"#.#..#", []topology.Gap{{First: 1, Length: 1}, {First: 3, Length: 2}}, 2},
	} {
		ring := topology.Ring{Size: protocol.Rank(len(test.colored))}
		colored := func(r protocol.Rank) bool { return test.colored[r] == '#' }
		if got := slices.Collect(ring.Gaps(colored)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.colored, got, test.want)
		}
		if got := ring.MaxGap(colored); got != test.longest {
			t.Errorf("%s: longest gap %d, want %d", test.colored, got, test.longest)
		}
		for range ring.Gaps(colored) {
			break
		}
	}
}

// TestGapsRandom compares with a search left and right of every rank.
func TestGapsRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		ring := topology.Ring{Size: 1 + protocol.Rank(rng.IntN(40))}
		density := rng.Float64()
		live := make([]bool, ring.Size)
		for i := range live {
			live[i] = rng.Float64() < density
		}
		live[rng.IntN(len(live))] = true
		colored := func(r protocol.Rank) bool { return live[r] }

		var want []topology.Gap
		for r := range ring.Size {
			if colored(r) || !colored(ring.Left(r, 1)) {
				continue
			}
			length := protocol.Rank(1)
			for !colored(ring.Right(r, length)) {
				length++
			}
			want = append(want, topology.Gap{First: r, Length: length})
		}
		got := slices.SortedFunc(ring.Gaps(colored), func(a, b topology.Gap) int { return int(a.First - b.First) })
		if !slices.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", live, got, want)
		}
	}
}
