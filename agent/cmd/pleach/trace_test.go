package main

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// The tree is the one that the message has taken. A member whose sender has not reported is
// there, too.
func TestTraceText(t *testing.T) {
	v := pleach.NewView(7, 5, pleach.Member{Rank: 0, ID: "a"}, pleach.Member{Rank: 1, ID: "b"},
		pleach.Member{Rank: 2, ID: "c"},
		pleach.Member{Rank: 3, ID: "d"}, pleach.Member{Rank: 4, ID: "e"})
	report := newTraceJSON(&pleach.Trace{
		Root: 0, View: 7, Missing: []int{4},
		Arrivals: []pleach.Arrival{
			{Rank: 1, From: 0, Path: pleach.PathTree, After: 40 * time.Microsecond},
			{Rank: 2, From: 1, Path: pleach.PathCorrection, After: 100 * time.Microsecond},
			{Rank: 3, From: 4, Path: pleach.PathRepair, After: 400 * time.Microsecond},
		},
	}, v, 64)
	const want = `view 7: rank 0 to 4 members, 64 bytes

rank   by          after  identity  timeline
0                                   
├ 1    tree        40µs   b         ····●···································
│ └ 2  correction  100µs  c         ··········●·····························
└ 3    repair      400µs  d         ·······································●

the last after 400µs; 1 by tree, 1 by correction, 1 by repair
no report of 1 rank: 4
`
	if got := report.text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
