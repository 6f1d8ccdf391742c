package tcp

import (
	"slices"
	"sync"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

func TestTableHasOnePeerPerRank(t *testing.T) {
	ranks := []protocol.Rank{0, 1, pageSize - 1, pageSize, 5*pageSize + 3, MaxRanks - 1}
	peers := newTable(MaxRanks)
	for _, r := range ranks {
		if p := peers.get(r); p != nil {
			t.Errorf("rank %d is there at the start", r)
		}
	}
	const adders = 4
	var added [adders][]*peer
	var wg sync.WaitGroup
	for i := range added {
		wg.Go(func() {
			for _, r := range ranks {
				added[i] = append(added[i], peers.add(&peer{rank: r}))
			}
		})
	}
	wg.Wait()
	if all := slices.Collect(peers.all()); !slices.Equal(all, added[0]) {
		t.Errorf("%d peers, not in order of rank", len(all))
	}
	for i := range added {
		for k, r := range ranks {
			if p := added[i][k]; p != peers.get(r) || p.rank != r {
				t.Errorf("rank %d: added %+v, got %+v", r, p, peers.get(r))
			}
		}
	}
	if n := len(newTable(pageSize)) + len(newTable(pageSize+1)); n != 1+2 {
		t.Errorf("%d pages", n)
	}
}
