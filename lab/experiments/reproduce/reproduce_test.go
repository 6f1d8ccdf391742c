package reproduce

import (
	"bytes"
	"encoding/xml"
	"os"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
)

// TestMain is also a member, where processes are measured: the program that runs
// is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[0] == "survivor" {
		if err := stabilization.Serve(os.Args[1], stabilization.PleachMember); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Every experiment is measured, drawn and judged, at its smallest size.
func TestEveryExperiment(t *testing.T) {
	data := map[*Source]Data{}
	claims := 0
	for _, e := range Catalog() {
		if data[e.Source] == nil {
			last := 0.0
			d, err := e.Source.Measure(t.Context(), Options{
				Size: Tiny, Survivor: []string{"survivor"},
				Progress: func(share float64) { last = max(last, share) },
			})
			if err != nil {
				t.Fatalf("%s: %v", e.Name, err)
			}
			if last > 1.000001 {
				t.Errorf("%s: %g of it is done", e.Name, last)
			}
			checkTables(t, e.Source, d)
			data[e.Source] = d
		}
		for _, c := range e.Claims(data[e.Source]) {
			claims++
			if c.Claim == "" || c.Stated == "" || c.Measured == "" || c.Verdict == "" ||
				!strings.HasPrefix(c.Paper, e.Paper+", ") {
				t.Errorf("%s: incomplete claim %+v", e.Name, c)
			}
		}
		for _, c := range e.Charts(data[e.Source]) {
			var svg bytes.Buffer
			if err := c.SVG(&svg); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
			if err := xml.Unmarshal(svg.Bytes(), new(struct{})); err != nil {
				t.Errorf("%s: %v", e.Name, err)
			}
		}
	}
	if claims < 60 {
		t.Errorf("%d claims", claims)
	}
}

// checkTables compares what a source leaves with what it says it does: a session
// looks for those.
func checkTables(t *testing.T, s *Source, d Data) {
	t.Helper()
	if len(d) != len(s.Tables) {
		t.Errorf("%s: %d tables, named are %v", s.Name, len(d), s.Tables)
	}
	for _, name := range s.Tables {
		if d[name] == nil || len(d[name].Rows) == 0 {
			t.Errorf("%s: table %s is empty", s.Name, name)
		}
	}
}

// Names are files and words of the command line, and titles tell experiments apart.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Catalog() {
		if seen[e.Name] || seen[e.Title] || e.Name == "" || e.Title == "" || e.About == "" ||
			strings.ContainsAny(e.Name, " /") {
			t.Errorf("experiment %q", e.Name)
		}
		seen[e.Name], seen[e.Title] = true, true
	}
}

// What costs nothing to measure in full must agree, but for the one finding.
func TestExactClaims(t *testing.T) {
	for _, e := range few("ct-figure-5", "ct-lemma-2", "sm-figure-6.1", "sm-figure-6.3", "sm-figure-6.6",
		"sm-figure-6.9") {
		d, err := e.Source.Measure(t.Context(), Options{Size: Full})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Claims(d) {
			if known := strings.Contains(c.Claim, "does not divide L"); (c.Verdict == Differs) != known {
				t.Errorf("%s: %s: stated %s, measured %s: %s", e.Name, c.Claim, c.Stated, c.Measured, c.Verdict)
			}
			if c.Verdict == Differs && c.Note == "" {
				t.Errorf("%s: %s: no reason why it differs", e.Name, c.Claim)
			}
		}
	}
}
