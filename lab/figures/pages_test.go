package figures_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/lab/figures"
)

// A page has the figures of its records, and every record is quoted.
func TestFiguresAreRecorded(t *testing.T) {
	fsys := os.DirFS("../..")
	pages, err := figures.Pages(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range figures.Stale(pages) {
		t.Errorf("%s differs from its records: %s\nrun make figures PART=pages", p.Name, firstDifference(p.Have, p.Want))
	}
	quoted := map[string]bool{}
	for _, p := range pages {
		for _, table := range p.Missing {
			t.Errorf("%s quotes %s, which has no record", p.Name, table)
		}
		for _, table := range p.Tables {
			quoted[table] = true
		}
	}
	records, err := fs.Glob(fsys, figures.Directory+"/*.json")
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records: %v", len(records), err)
	}
	for _, name := range records {
		part := strings.TrimSuffix(path.Base(name), ".json")
		r, err := figures.Read(fsys, part)
		if err != nil {
			t.Error(err)
		}
		for _, table := range r.Tables {
			if !quoted[part+"."+table.Name] {
				t.Errorf("no page quotes %s.%s", part, table.Name)
			}
		}
	}
}

var ofRecords = regexp.MustCompile(`(?s)<!-- begin figures.*?<!-- end figures -->`)

// README's figures are those of records: its section has no other table, and no prose elsewhere
// has a time or a rate.
func TestReadmeQuotesRecords(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Figures\n")
	section, _, ended := strings.Cut(section, "\n## ")
	if !found || !ended {
		t.Fatal("README.md has no section Figures, or nothing behind it")
	}
	if !ofRecords.MatchString(section) {
		t.Error("README's figures are not those of records")
	}
	if rest := ofRecords.ReplaceAllString(section, ""); strings.Contains(rest, "|") {
		t.Errorf("README has a table of figures besides those of records: %s", rest)
	}
	measured := regexp.MustCompile(`\d ?(ms|µs|kB|MB|GB|/s|×)\b`)
	prose := regexp.MustCompile("(?s)```.*?```|`[^`]*`").ReplaceAllString(ofRecords.ReplaceAllString(string(text), ""), "")
	if figure := measured.FindString(prose); figure != "" {
		t.Errorf("README has the figure %q outside its records", figure)
	}
}

func firstDifference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d", i+1)
		}
	}
	return "no difference"
}
