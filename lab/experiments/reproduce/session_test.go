package reproduce

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// few are experiments that take no time.
func few(names ...string) (some []Experiment) {
	for _, e := range Catalog() {
		for _, name := range names {
			if e.Name == name {
				some = append(some, e)
			}
		}
	}
	return some
}

func session(dir string) (s *Session, measured *[]string) {
	measured = new([]string)
	return &Session{
		Dir: dir, Version: "test", Options: Options{Size: Quick},
		Now: func(source string, share float64) {
			if share == 0 || len(*measured) == 0 || (*measured)[len(*measured)-1] != source {
				*measured = append(*measured, source)
			}
		},
	}, measured
}

// What is in the directory is not measured again, and the report is of all of it.
func TestSessionGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "folder")
	first, measured := session(dir)
	if o, err := first.Run(t.Context(), few("ct-figure-5")); err != nil || len(o.Done) != 1 || len(*measured) != 1 {
		t.Fatalf("%+v, %v, measured %v", o, err, *measured)
	}
	second, measured := session(dir)
	o, err := second.Run(t.Context(), few("ct-figure-5", "ct-lemma-2"))
	if err != nil || len(o.Done) != 2 || len(*measured) != 1 || (*measured)[0] != "ct-lemma-2" {
		t.Fatalf("%+v, %v, measured %v", o, err, *measured)
	}
	third, measured := session(dir)
	if o, err := third.Run(t.Context(), few("ct-lemma-2")); err != nil || len(o.Claims) != 7 || len(*measured) != 0 {
		t.Errorf("%d claims, %v, measured %v", len(o.Claims), err, *measured)
	}
	third.Force = true
	if _, err := third.Run(t.Context(), few("ct-lemma-2")); err != nil || len(*measured) != 1 {
		t.Errorf("%v, measured %v by force", err, *measured)
	}
	other, measured := session(dir)
	other.Version = "another"
	if _, err := other.Run(t.Context(), few("ct-lemma-2")); err != nil || len(*measured) != 1 {
		t.Errorf("%v, measured %v by another version", err, *measured)
	}
}

func TestSessionWritesAll(t *testing.T) {
	dir := t.TempDir()
	s, _ := session(dir)
	if _, err := s.Run(t.Context(), few("ct-figure-5")); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	var claims []map[string]any
	if err := json.Unmarshal([]byte(read("claims.json")), &claims); err != nil || len(claims) != 3 {
		t.Fatalf("%d claims, %v", len(claims), err)
	}
	for _, field := range []string{"claim", "paper", "stated", "measured", "verdict", "seed", "runs"} {
		if claims[0][field] == nil {
			t.Errorf("claims have no %s", field)
		}
	}
	report := read("report.html")
	for _, text := range []string{
		"<svg", "ct-figure-5", "3 claims: 3 agree", "seed 1", `id="only-differs"`,
		`<tr class="claim of-agrees">`,
	} {
		if !strings.Contains(report, text) {
			t.Errorf("the report has no %q", text)
		}
	}
	// One file, no network: nothing is loaded from anywhere.
	for _, text := range []string{"src=", "<script", "<link", "@import"} {
		if strings.Contains(report, text) {
			t.Errorf("the report has %q", text)
		}
	}
	for _, name := range []string{"ct-figure-5.svg", "ct-figure-5.png", "ct-figure-5-messages.csv"} {
		read(name)
	}
}

func TestSessionIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	s, _ := session(dir)
	ctx, cancel := context.WithCancel(t.Context())
	s.Now = func(source string, _ float64) {
		if source == "ct-lemma-2" {
			cancel()
		}
	}
	o, err := s.Run(ctx, few("ct-figure-5", "ct-lemma-2"))
	if err != nil || len(o.Done) != 1 || len(o.Left) != 1 || o.Left[0] != "ct-lemma-2" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := os.Stat(o.Report); err != nil {
		t.Error(err)
	}
}

// An interrupted measurement goes on with the cell it was at, and comes to the
// same numbers.
func TestMeasurementGoesOn(t *testing.T) {
	whole, dir := t.TempDir(), t.TempDir()
	s, _ := session(whole)
	if _, err := s.Run(t.Context(), few("ct-lemma-2")); err != nil {
		t.Fatal(err)
	}
	s, _ = session(dir)
	ctx, cancel := context.WithCancel(t.Context())
	reached := 0.0
	s.Now = func(_ string, share float64) {
		reached = share
		if share > 0.3 {
			cancel()
		}
	}
	if o, err := s.Run(ctx, few("ct-lemma-2")); err != nil || len(o.Left) != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
	var shares []float64
	s.Now = func(_ string, share float64) { shares = append(shares, share) }
	if o, err := s.Run(t.Context(), few("ct-lemma-2")); err != nil || len(o.Done) != 1 {
		t.Fatalf("%+v, %v", o, err)
	}
	// The first progress is that nothing is done, the second that the first cell
	// that is run is: the second of 24, as what is done is written now and then,
	// first after the first cell.
	if len(shares) < 2 || shares[0] != 0 || shares[1] < 1.5/24 || shares[1] > reached {
		t.Errorf("interrupted at %g, went on with %v", reached, shares)
	}
	const name = "ct-lemma-2-costs.csv"
	want, got := content(t, whole, name), content(t, dir, name)
	if _, want, _ := strings.Cut(want, "\n"); !strings.HasSuffix(got, want) {
		t.Errorf("in one go:\n%s\nin two:\n%s", want, got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.partial")); len(left) > 0 {
		t.Errorf("%v are left behind", left)
	}
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
