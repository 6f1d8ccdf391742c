package reproduce

import (
	_ "embed"
	"html/template"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// The report: one file that needs no network, with the claims at the top.

//go:embed report.html
var reportText string

// Section is an experiment in the report.
type Section struct {
	Experiment Experiment
	Claims     []Claim
	// Measured is the note of its data, Files what belongs to it in the directory.
	Measured string
	Files    []string
	Pictures []template.HTML
}

// writeReport fills in the template.
func writeReport(w io.Writer, s *Session, claims []Claim, present []Section) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"class":     func(v Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
		"count":     func(v Verdict) int { return Count(claims, v) },
		"claims":    func() int { return len(claims) - Count(claims, Answered) },
		"verdicts":  func() []Verdict { return []Verdict{Agrees, Differs, NotShown, Answered} },
		"thousands": func(n int) string { return figure(float64(n), 0) },
	}).Parse(reportText)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		Claims           []Claim
		Sections         []Section
		Size             Size
		Version, Machine string
		Date             string
	}{claims, present, s.Size, s.Version, machine(), time.Now().Format("2006-01-02")})
}

// Count counts the claims with a verdict.
func Count(claims []Claim, v Verdict) (n int) {
	for _, c := range claims {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// inline is a picture as it stands in a page: without the declarations that only
// a file has.
func inline(svg string) template.HTML {
	if i := strings.Index(svg, "<svg"); i >= 0 {
		svg = svg[i:]
	}
	return template.HTML(svg)
}

// machine says what this ran on.
func machine() string {
	text := runtime.GOOS + "/" + runtime.GOARCH + ", " + figure(float64(runtime.NumCPU()), 0) + " cores"
	content, err := os.ReadFile("/proc/cpuinfo") // elsewhere it stays unnamed
	if err != nil {
		return text
	}
	for line := range strings.Lines(string(content)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return text + ", " + strings.TrimSpace(value)
		}
	}
	return text
}
