package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/ps"
	"github.com/pleach-go/pleach/collective"
)

// surveyText is a survey for people: the stragglers, then a line for each process.
func surveyText(s *ps.Survey) string {
	var b strings.Builder
	fmt.Fprintf(&b, "view %d: %d of %d processes", s.View, len(s.Processes), s.Size)
	if len(s.Failed) > 0 {
		fmt.Fprintf(&b, "; failed: %s", ranksCell(s.Failed))
	}
	if s.NoQuorum != "" {
		b.WriteString("\n" + cli.Printable(s.NoQuorum))
	}
	b.WriteString("\n\n")
	for _, h := range s.Stragglers {
		b.WriteString(stragglerText(&h) + "\n")
	}
	if len(s.Stragglers) > 0 {
		b.WriteString("\n")
	}
	rows := [][]string{{"rank", "calls", "doing", "for", "waits for", "last", "tasks"}}
	for _, p := range s.Processes {
		rows = append(rows, processRow(&p))
	}
	writeColumns(&b, rows)
	return b.String()
}

// stragglerText says which call a straggler has not come to, on one line.
func stragglerText(h *ps.Straggler) string {
	if h.Silent {
		return fmt.Sprintf("rank %d does not answer; others are in %s for %s", h.Rank, callText(&h.Call), ago(h.Call.Seconds))
	}
	text := fmt.Sprintf("rank %d has not arrived in %s", h.Rank, callText(&h.Call))
	if h.Last == nil {
		return text + "; it has finished no call yet"
	}
	return text + "; last: " + lastText(h.Last)
}

// callText names a call.
func callText(d *collective.CallStatus) string {
	return fmt.Sprintf("%s #%d", cli.Printable(d.Name), d.Call)
}

func lastText(d *collective.CallStatus) string {
	text := fmt.Sprintf("%s, %s ago", callText(d), ago(d.Seconds))
	if d.Error != "" {
		text += ", with an error"
	}
	return text
}

// ago is a time as people read it.
func ago(seconds float64) string {
	if seconds >= 100 {
		return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// processRow is a process in the table, in the world where it is in a call, or the last
// one made.
func processRow(p *ps.Process) []string {
	if p.Error != "" {
		return []string{fmt.Sprint(p.Rank), "-", "does not answer: " + cli.Printable(p.Error)}
	}
	w := p.Worlds[len(p.Worlds)-1]
	if i := slices.IndexFunc(p.Worlds, func(w collective.Progress) bool { return len(w.Current) > 0 }); i >= 0 {
		w = p.Worlds[i]
	}
	row := []string{fmt.Sprint(p.Rank), fmt.Sprint(w.Calls), "-", "-", "-", "-", ranksCell(w.Tasks)}
	if len(w.Current) > 0 {
		d := w.Current[0]
		row[2], row[3], row[4] = callText(&d), ago(d.Seconds), ranksCell(d.WaitsFor)
		if more := len(w.Current) - 1; more > 0 {
			row[2] += fmt.Sprintf(" and %d more", more)
		}
	}
	if w.Last != nil {
		row[5] = lastText(w.Last)
	}
	return row
}

// ranksCell is ranks in a table, or - for none.
func ranksCell(ranks []int) string { return cmp.Or(ranges(ranks, ",", len(ranks)), "-") }
