package silent

import (
	"fmt"
	"io"
	"strings"
)

// WriteTable writes results for people.
func WriteTable(w io.Writer, c Config, results []Result) error {
	var b strings.Builder
	ranks := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Silent), " ", ", "), "[]")
	if c.Interval == 0 {
		fmt.Fprintf(&b, "%d members, %d bytes at full rate; stopped: %s\n\n", c.Members, c.Size, ranks)
		fmt.Fprintf(&b, "%-10s %4s %11s %11s %6s %6s %9s\n", "system", "run", "before", "until view", "ratio", "lost", "view")
		for _, r := range results {
			fmt.Fprintf(&b, "%-10s %4d %9.0f/s %9.0f/s %6.2f %6d %9s\n",
				r.System, r.Run, r.RateBefore, r.RateAfter, r.RateAfter/max(r.RateBefore, 1), r.Lost, view(r))
		}
	} else {
		fmt.Fprintf(&b, "%d members, %d bytes every %v; stopped: %s; times in ms until the last live member has it\n\n",
			c.Members, c.Size, c.Interval, ranks)
		fmt.Fprintf(&b, "%-10s %4s %8s %8s %8s %8s %11s %9s %9s\n", "system", "run", "before", "first", "median", "worst",
			"incomplete", "messages", "view")
		for _, r := range results {
			fmt.Fprintf(&b, "%-10s %4d %8.2f %8.2f %8.2f %8.2f %11s %9.2f %9s\n",
				r.System, r.Run, r.BeforeMS, r.FirstMS, r.MedianMS, r.WorstMS, fmt.Sprintf("%d of %d", r.Incomplete, r.Sent),
				r.MessagesAfter, view(r))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// view says when there was a view without the silent members.
func view(r Result) string {
	if r.ViewMS == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f ms", r.ViewMS)
}
