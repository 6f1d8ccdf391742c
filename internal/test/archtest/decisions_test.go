package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// Decisions have one form, and the list of them has each by its title.
func TestDecisionsAreListed(t *testing.T) {
	records, complaints := checkDecisions(t, os.DirFS("../../../docs/adr"))
	for _, c := range complaints {
		t.Error(c)
	}
	if records < 40 {
		t.Errorf("%d records", records)
	}
}

func TestUnlistedDecisionsAreFound(t *testing.T) {
	const list = "| [7](0007-a.md) | A is b | accepted |\n"
	for text, want := range map[string]int{
		"# 7. A is b\n\nStatus: accepted\n":    0,
		"# 7. A is c\n\nStatus: accepted\n":    1,
		"# 8. A is b\n\nStatus: accepted\n":    1,
		"# 7. A is b\n\n*accepted*\n":          1,
		"# 7. A is b\n\nStatus: replaced by\n": 1,
	} {
		fsys := fstest.MapFS{"README.md": {Data: []byte(list)}, "0007-a.md": {Data: []byte(text)}}
		if _, got := checkDecisions(t, fsys); len(got) != want {
			t.Errorf("%q: %q, want %d complaints", text, got, want)
		}
	}
}

var decision = regexp.MustCompile(`^# (\d+)\. (.+)\n\nStatus: (accepted|rejected|replaced)\b`)

func checkDecisions(t *testing.T, fsys fs.FS) (records int, complaints []string) {
	t.Helper()
	list, err := fs.ReadFile(fsys, "README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(fsys, "0*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			t.Fatal(err)
		}
		d := decision.FindSubmatch(text)
		if d == nil {
			complaints = append(complaints, path.Join("docs/adr", file)+
				": write # N. The decision, and Status: accepted, rejected or replaced by [N](…) in line 3")
			continue
		}
		if row := "| [" + string(d[1]) + "](" + file + ") | " + string(d[2]) + " | " +
			string(d[3]); !strings.Contains(string(list), row) {
			complaints = append(complaints, "docs/adr/README.md has no row "+row)
		}
	}
	return len(files), complaints
}
