package logp_test

import (
	"slices"
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

func TestParseDeath(t *testing.T) {
	correction := protocol.Correction
	for text, want := range map[string]logp.Death{
		"5@12":         {Rank: 5, At: 12},
		"5@12!":        {Rank: 5, At: 12, Torn: true},
		"7#3":          {Rank: 7, AfterSends: 3},
		"5@correction": {Rank: 5, Phase: &correction},
	} {
		got, err := logp.ParseDeath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if (got.Phase == nil) != (want.Phase == nil) || got.Phase != nil && *got.Phase != *want.Phase {
			t.Errorf("%s: phase %v", text, got.Phase)
		}
		got.Phase, want.Phase = nil, nil
		if got != want {
			t.Errorf("%s: %+v, not %+v", text, got, want)
		}
	}
	for _, text := range []string{"", "5", "@3", "5@", "5@0", "x@3", "-1@3", "5#0", "5#correction", "5@2@3"} {
		if d, err := logp.ParseDeath(text); err == nil {
			t.Errorf("%q is read as %+v", text, d)
		}
	}
}

func FuzzParseDeath(f *testing.F) {
	for _, seed := range []string{"5@12", "5@correction", "7#3!", "@", "#"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := logp.ParseDeath(text)
		if err == nil && (d.Rank < 0 || d.At == 0 && d.Phase == nil && d.AfterSends == 0) {
			t.Errorf("%q is read as %+v, which never happens", text, d)
		}
	})
}

// RandomDead draws different ranks, never the root, every other rank equally
// often.
func TestRandomDead(t *testing.T) {
	const size, root, n, draws = 20, 7, 6, 20000
	var count [size]int
	for seed := range uint64(draws) {
		dead := logp.RandomDead(size, root, n, seed)
		if len(dead) != n || !slices.IsSorted(dead) || len(slices.Compact(slices.Clone(dead))) != n {
			t.Fatalf("seed %d: %v", seed, dead)
		}
		for _, r := range dead {
			count[r]++
		}
	}
	if count[root] != 0 {
		t.Error("the root was drawn")
	}
	for r, c := range count {
		mean := draws * n / (size - 1)
		if r != root && (c < mean*95/100 || c > mean*105/100) {
			t.Errorf("rank %d was drawn %d times, others %d", r, c, mean)
		}
	}
	if all := logp.RandomDead(5, 0, 99, 1); len(all) != 4 {
		t.Errorf("more dead than there are: %v", all)
	}
}
