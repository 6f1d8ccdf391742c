//go:build unix

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// maxReported bounds the lines of a report: more cannot be taken in.
const maxReported = 20

// runInterruption is the end of a run by a signal.
type runInterruption struct{ signal os.Signal }

func (i runInterruption) Error() string {
	return fmt.Sprintf("all processes were told to end (%v)", i.signal)
}

// Unwrap makes the exit code that of an interruption.
func (i runInterruption) Unwrap() error { return interruption{} }

// report says who ended how, unless all is well, and returns what the exit code
// is about.
func (j *job) report() error {
	var first *process
	texts, ranks := []string{}, map[string][]int{}
	notWell := 0
	for _, p := range j.processes {
		o := p.outcome()
		if o.kind == well {
			continue
		}
		notWell++
		if ranks[o.text] = append(ranks[o.text], p.rank); len(ranks[o.text]) == 1 {
			texts = append(texts, o.text)
		}
		if o.kind == failed && (first == nil || p.after < first.after) {
			first = p
		}
	}
	j.reportLate()
	if notWell > 0 {
		j.output.say("%d of %d processes did not exit with 0", notWell, j.size)
	}
	for i, text := range texts {
		if i == maxReported {
			fmt.Fprintf(j.output.stderr, "  and %d other ways\n", len(texts)-i)
			break
		}
		fmt.Fprintf(j.output.stderr, "  %s: %s\n", text, rankList(ranks[text]))
	}
	switch {
	case j.interrupted != nil:
		return j.interrupted
	case first != nil:
		return failure{fmt.Errorf("rank %d failed first, after %v: %s", first.rank, first.after, first.outcome().text)}
	}
	return nil
}

// reportLate says which strikes hit nobody. The end of a stop needs nobody.
func (j *job) reportLate() {
	if j.interrupted != nil {
		return
	}
	for _, s := range append(j.late, j.strikes...) {
		if s.kind != strikeContinue {
			j.output.say("%v came too late: rank %d had ended", s, s.rank)
		}
	}
}

// rankList writes ascending ranks shortly: rank 3, or ranks 0-3, 7.
func rankList(ranks []int) string {
	var parts []string
	for len(ranks) > 0 {
		n := 1
		for n < len(ranks) && ranks[n] == ranks[0]+n {
			n++
		}
		part := fmt.Sprint(ranks[0])
		if n > 1 {
			part += fmt.Sprintf("-%d", ranks[n-1])
		}
		parts = append(parts, part)
		ranks = ranks[n:]
	}
	word := "ranks "
	if len(parts) == 1 && !strings.Contains(parts[0], "-") {
		word = "rank "
	}
	if len(parts) > maxReported {
		parts = append(slices.Clip(parts[:maxReported]), "and more")
	}
	return word + strings.Join(parts, ", ")
}
