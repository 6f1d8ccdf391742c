package reproduce

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

const goldenVerdicts = "testdata/verdicts.txt"

// leastNumeric is how many claims must have a number on both sides.
const leastNumeric = 30

// A quick reproduction, in the directory $PLEACH_REPRODUCED, comes to the verdicts
// that are recorded: a change that alters one must say so, in the golden file.
//
//	pleach-lab reproduce --quick --out DIR
//	PLEACH_REPRODUCED=DIR [PLEACH_UPDATE_GOLDEN=1] go test -run TestVerdicts ./lab/experiments/reproduce
func TestVerdicts(t *testing.T) {
	dir := testutil.Reproduced.Text()
	if dir == "" {
		t.Skip("no reproduction to judge: set PLEACH_REPRODUCED to its folder")
	}
	content, err := os.ReadFile(filepath.Join(dir, "claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	var claims []Claim
	if err := json.Unmarshal(content, &claims); err != nil {
		t.Fatal(err)
	}
	numeric := 0
	for _, c := range claims {
		if strings.ContainsFunc(c.Stated, unicode.IsDigit) && strings.ContainsFunc(c.Measured, unicode.IsDigit) {
			numeric++
		}
	}
	if numeric < leastNumeric {
		t.Errorf("%d numeric claims, want %d", numeric, leastNumeric)
	}
	if testutil.UpdateGolden.On() {
		if err := os.WriteFile(goldenVerdicts, []byte(verdicts(claims)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compareVerdicts(t, claims)
}

// compareVerdicts holds claims against the golden file, both ways. What is
// measured on this machine, which whatever else it does can spoil, may have any verdict, or
// be left out.
func compareVerdicts(t *testing.T, claims []Claim) {
	t.Helper()
	golden, err := readVerdicts()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		want, known := golden[verdictKey(c.Experiment, c.Claim)]
		delete(golden, verdictKey(c.Experiment, c.Claim))
		switch {
		case !known:
			t.Errorf("%s: %q is new: run with PLEACH_UPDATE_GOLDEN=1 if it should be", c.Experiment, c.Claim)
		case c.Verdict != want && !onThisMachine(c.Experiment):
			t.Errorf("%s: %q: %s, recorded is %s; stated %s, measured %s", c.Experiment, c.Claim, c.Verdict, want, c.Stated,
				c.Measured)
		}
	}
	for key := range golden {
		if experiment, _, _ := strings.Cut(key, "\t"); !onThisMachine(experiment) {
			t.Errorf("%q is recorded and is not claimed any more", key)
		}
	}
}

// onThisMachine tells the experiments on real processes.
func onThisMachine(experiment string) bool {
	return slices.Contains([]string{"ct-figure-11", "ct-figure-12", "sm-processes"}, experiment) ||
		strings.HasPrefix(experiment, "fc-")
}

func verdictKey(experiment, claim string) string { return experiment + "\t" + claim }

func verdicts(claims []Claim) string {
	var b strings.Builder
	b.WriteString("# What a quick reproduction comes to: experiment, claim, verdict.\n")
	for _, c := range claims {
		fmt.Fprintf(&b, "%s\t%s\n", verdictKey(c.Experiment, c.Claim), c.Verdict)
	}
	return b.String()
}

func readVerdicts() (map[string]Verdict, error) {
	f, err := os.Open(goldenVerdicts)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	golden := map[string]Verdict{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if at := strings.LastIndex(line, "\t"); at > 0 && !strings.HasPrefix(line, "#") {
			golden[line[:at]] = Verdict(line[at+1:])
		}
	}
	return golden, nil
}

// Every experiment has claims on record, and nothing else has.
func TestVerdictsAreOfExperiments(t *testing.T) {
	golden, err := readVerdicts()
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]bool{}
	for key := range golden {
		experiment, _, _ := strings.Cut(key, "\t")
		recorded[experiment] = true
	}
	for _, e := range Catalog() {
		if !recorded[e.Name] {
			t.Errorf("%s has no recorded verdicts", e.Name)
		}
		delete(recorded, e.Name)
	}
	for name := range recorded {
		t.Errorf("%s is recorded and is no experiment", name)
	}
}
