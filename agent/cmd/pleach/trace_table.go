package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/cli"
)

// timelineWidth is how many columns the timeline of a trace has.
const timelineWidth = 40

// text is a trace for people: the tree that the message has taken, and when it has arrived.
func (t *traceJSON) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "view %d: rank %d to %s, %d bytes\n\n", t.View, t.Root, cli.Count(t.Members-1, "member"), t.Bytes)
	rows := [][]string{{"rank", "by", "after", "identity", "timeline"}}
	rows = append(rows, []string{fmt.Sprint(t.Root), "", "", "", ""})
	writeColumns(&b, t.addRows(rows, t.Root, "", make(map[int]bool)))
	var last int64
	paths := make(map[string]int)
	for _, a := range t.Arrivals {
		last = max(last, a.After)
		paths[a.Path]++
	}
	fmt.Fprintf(&b, "\nthe last after %v; %d by tree, %d by correction, %d by repair\n",
		cli.Micro(time.Duration(last)), paths["tree"], paths["correction"], paths["repair"])
	if len(t.Missing) > 0 {
		fmt.Fprintf(&b, "no report of %s: %s\n", cli.Count(len(t.Missing), "rank"), ranges(t.Missing, ",", 16))
	}
	return b.String()
}

// addRows adds a row for each member that got the message from a rank, and for those below.
// A member whose sender has not reported is shown below the root.
func (t *traceJSON) addRows(rows [][]string, rank int, indent string, shown map[int]bool) [][]string {
	shown[rank] = true
	var children []*arrivalJSON
	for i := range t.Arrivals {
		if a := &t.Arrivals[i]; a.From == rank || rank == t.Root && !t.reported(a.From) {
			children = append(children, a)
		}
	}
	slices.SortStableFunc(children, func(a, b *arrivalJSON) int { return cmp.Compare(a.After, b.After) })
	for i, a := range children {
		if shown[a.Rank] {
			continue // impossible, unless a member reports nonsense
		}
		branch, below := "├ ", "│ "
		if i == len(children)-1 {
			branch, below = "└ ", "  "
		}
		rows = append(rows, []string{
			indent + branch + fmt.Sprint(a.Rank), a.Path, fmt.Sprint(cli.Micro(time.Duration(a.After))),
			cli.Printable(a.Identity), t.timeline(a),
		})
		rows = t.addRows(rows, a.Rank, indent+below, shown)
	}
	return rows
}

// reported reports whether a rank is the root, or has reported.
func (t *traceJSON) reported(rank int) bool {
	return rank == t.Root || slices.ContainsFunc(t.Arrivals, func(a arrivalJSON) bool { return a.Rank == rank })
}

// timeline draws an arrival on one scale for all.
func (t *traceJSON) timeline(a *arrivalJSON) string {
	var most int64 = 1
	for i := range t.Arrivals {
		most = max(most, t.Arrivals[i].After)
	}
	line := []rune(strings.Repeat("·", timelineWidth))
	line[min(max(a.After, 0)*timelineWidth/most, timelineWidth-1)] = '●'
	return string(line)
}
