package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every case that docs/develop/evidence.md promises has a test, and every test of a case has
// its row there.
func TestEveryCaseIsPromisedAndTested(t *testing.T) {
	text, err := os.ReadFile("../../../docs/develop/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	promised, tested := map[string]bool{}, map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|.*TestCase(\d+)…`).FindAllSubmatch(text, -1) {
		if string(row[1]) != string(row[2]) {
			t.Errorf("the row of case %s names a test of case %s", row[1], row[2])
		}
		promised[string(row[1])] = true
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`(?m)^func TestCase(\d+)\D`).FindAllSubmatch(source, -1) {
			tested[string(f[1])] = true
		}
	}
	for number := range promised {
		if !tested[number] {
			t.Errorf("docs/develop/evidence.md promises case %s, and no TestCase%s… checks it", number, number)
		}
	}
	for number := range tested {
		if !promised[number] {
			t.Errorf("docs/develop/evidence.md has no row of case %s", number)
		}
	}
}
