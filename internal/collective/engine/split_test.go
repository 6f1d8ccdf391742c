package engine

import (
	"context"
	"slices"
	"testing"
)

// silentLink sends nothing.
type silentLink struct{}

func (silentLink) Send(context.Context, int, []byte, []byte) error { return nil }

// Processes that split before, between and after two failures agree on the owners of tasks,
// which depend on the order of failures.
func TestSplitOwnersDoNotDependOnWhen(t *testing.T) {
	views := [][]int{{0, 1, 2, 3, 4, 6, 7}, {0, 1, 2, 3, 6, 7}} // 5 fails, and then 4
	var want []int
	for before := range len(views) + 1 {
		e, err := New(Config{Rank: 0, Size: 8, View: 1, Link: silentLink{}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var sub Comm
		for i := range len(views) + 1 {
			if i == before {
				task := &Task{engine: e, call: &callState{number: 3}}
				sub, err = task.Split(everyRank(8), 1)
				if err != nil {
					t.Fatal(err)
				}
			}
			if i < len(views) {
				e.Install(uint64(i+2), views[i])
			}
		}
		var got []int
		for task := range 8 {
			got = append(got, sub.Owner(task))
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("split after %d failures: owners %v, want %v", before, got, want)
		}
	}
}
