package reproduce

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Claim is something that a paper states in numbers.
type Claim struct {
	Claim string `json:"claim"`
	// Paper is where it is stated.
	Paper    string  `json:"paper"`
	Stated   string  `json:"stated"`
	Measured string  `json:"measured"`
	Verdict  Verdict `json:"verdict"`
	Seed     uint64  `json:"seed"`
	Runs     int     `json:"runs"`
	// Experiment is where the measured value comes from.
	Experiment string `json:"experiment"`
	// Note says why they differ, or what must be known to compare them.
	Note string `json:"note,omitempty"`

	where string // in the paper
}

// Verdict says what came of a claim.
type Verdict string

// The verdicts.
const (
	// Agrees: the same, as far as the paper's digits and the number of runs tell.
	Agrees Verdict = "agrees"
	// Differs: not the same; the note says why.
	Differs Verdict = "differs"
	// NotShown: neither, because so few runs, or this machine, cannot tell.
	NotShown Verdict = "not shown"
	// Answered: the papers leave it open, and this is the figure.
	Answered Verdict = "answered"
)

// verdict is that of a comparison.
func verdict(same bool) Verdict {
	if same {
		return Agrees
	}
	return Differs
}

// near reports whether a value is the stated one, give or take.
func near(value, stated, tolerance float64) bool { return math.Abs(value-stated) <= tolerance }

// within reports whether a value is the stated one but for a share of it.
func within(value, stated, share float64) bool { return near(value, stated, share*math.Abs(stated)) }

// figure writes a number with as many decimals as given, and thousands apart.
func figure(value float64, decimals int) string {
	text := strconv.FormatFloat(value, 'f', decimals, 64)
	whole, rest, hasRest := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if hasRest {
		return whole + "." + rest
	}
	return whole
}

// steps writes a number of steps.
func steps(n float64) string {
	if n == 1 {
		return "1 step"
	}
	return figure(n, 0) + " steps"
}

// percent writes a share.
func percent(share float64, decimals int) string {
	return figure(100*share, decimals) + "%"
}

// span writes the least and the greatest of some values.
func span(format func(float64) string, values ...float64) string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	if format(low) == format(high) {
		return format(low)
	}
	return fmt.Sprintf("%s–%s", format(low), format(high))
}
