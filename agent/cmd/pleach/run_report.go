package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/pleach-go/pleach/agent/launch"
)

// maxReported bounds the lines of a report and the ranges of ranks in one: more
// cannot be taken in.
const maxReported = 20

// writeRunReport writes how processes ended, unless all exited with 0.
func writeRunReport(w io.Writer, r *launch.Report) {
	for _, f := range r.Missed {
		fmt.Fprintf(w, "pleach: %v came too late: rank %d had ended\n", f, f.Rank)
	}
	for _, f := range r.Unmatched {
		fmt.Fprintf(w, "pleach: %v did nothing: rank %d printed no line that matches\n", f, f.Rank)
	}
	texts, ranks := []string{}, map[string][]int{}
	unsuccessful := 0
	for _, o := range r.Outcomes {
		if o.Kind == launch.Succeeded {
			continue
		}
		unsuccessful++
		ranks[o.Text] = append(ranks[o.Text], o.Rank)
		if len(ranks[o.Text]) == 1 {
			texts = append(texts, o.Text)
		}
	}
	indent := "  "
	if onPurpose(r) {
		indent = "pleach: "
	} else if unsuccessful > 0 {
		fmt.Fprintf(w, "pleach: %d of %d processes did not exit with 0\n", unsuccessful, len(r.Outcomes))
	}
	for i, text := range texts {
		if i == maxReported {
			fmt.Fprintf(w, "%sand %d other ways\n", indent, len(texts)-i)
			break
		}
		fmt.Fprintf(w, "%s%s: %s\n", indent, text, rankList(ranks[text]))
	}
	if unsuccessful > 0 {
		writeSuccess(w, r)
	}
}

// onPurpose reports whether every process exited with 0 or was ended by an injected fault.
func onPurpose(r *launch.Report) bool {
	return r.Interrupted == nil && !slices.ContainsFunc(r.Outcomes, func(o launch.Outcome) bool {
		return o.Kind != launch.Succeeded && o.Kind != launch.Ended
	})
}

// writeSuccess says that the job has succeeded although some processes have not, if it has.
func writeSuccess(w io.Writer, r *launch.Report) {
	var finished, others []int
	for _, o := range r.Outcomes {
		switch o.Kind {
		case launch.Failed:
			return
		case launch.Succeeded:
			finished = append(finished, o.Rank)
		default:
			others = append(others, o.Rank)
		}
	}
	switch {
	case r.Interrupted != nil || len(finished) == 0:
	case r.Complete:
		fmt.Fprintf(w, "pleach: success: %d survivors completed the job without %s\n", len(finished), rankList(others))
	case len(finished) == 1:
		fmt.Fprintf(w, "pleach: success: the other process exited with 0\n")
	default:
		fmt.Fprintf(w, "pleach: success: the other %d processes exited with 0\n", len(finished))
	}
}

// rankList writes ascending ranks in words: rank 3, or ranks 0-3, 7.
func rankList(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return "ranks " + ranges(ranks, ", ", maxReported)
}
