package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pleach-go/pleach/internal/test/prose"
)

// README and docs, except the records of decisions, are in plain English.
func TestPagesArePlainEnglish(t *testing.T) {
	pages, complaints := checkProse(t, os.DirFS("../../.."))
	for _, c := range complaints {
		t.Error(c)
	}
	if pages < 40 {
		t.Errorf("%d pages", pages)
	}
}

func TestIdiomsAreFound(t *testing.T) {
	const fine = "A member is unresponsive. `folder` and [a page](lives.md) are code.\n"
	many := func(s string, n int) string { return strings.Repeat(s+"\n", n) }
	for text, want := range map[string]int{
		fine: 0,
		fine + "```\na folder\n```\n<!-- trouble -->\n": 0,
		fine + "It puts it into a folder.\n":            1,
		"The lead sends; no silent loss.\n":             2,
		many("It is what is sent.", 25):                 0,
		many("It is what is sent.", 26):                 1,
		many("It goes on.", 10) + many("Anew.", 10):     0,
		many("It goes on.", 10) + many("`Anew`.", 11):   1,
	} {
		fsys := fstest.MapFS{"README.md": {Data: []byte(text)}, "docs/adr/1.md": {Data: []byte("A folder.\n")}}
		if _, got := checkProse(t, fsys); len(got) != want {
			t.Errorf("%.40q: %q, want %d complaints", text, got, want)
		}
	}
}

// Every page is at most two clicks from the README: it or the index of the pages links to it. And
// together they are short enough to be read, apart from references and tables that are generated.
func TestPagesAreFoundAndShort(t *testing.T) {
	fsys := os.DirFS("../../..")
	read := func(name string) string {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	readme, index := read("README.md"), read("docs/README.md")
	if n := len(strings.Fields(readme)); n > 750 {
		t.Errorf("README.md has %d words, more than 750", n)
	}
	words := 0
	err := fs.WalkDir(fsys, "docs", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "docs/adr":
			return fs.SkipDir
		case !strings.HasSuffix(name, ".md"):
			return nil
		}
		if below := strings.TrimPrefix(name, "docs/"); below != "README.md" && !strings.Contains(readme, "]("+name) &&
			!strings.Contains(index, "]("+below) {
			t.Errorf("neither README.md nor docs/README.md links to %s", name)
		}
		if !slices.Contains([]string{"docs/operate/settings.md", "docs/operate/metrics.md"}, name) {
			words += len(strings.Fields(generated.ReplaceAllString(read(name), "")))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if words > 55_000 {
		t.Errorf("the pages have %d words, more than 55,000", words)
	}
	t.Logf("%d words", words)
}

var generated = regexp.MustCompile(`(?s)<!-- begin .*?<!-- end .*?-->`)

// Help texts are held to the same rules: agent/cmd/pleach, lab/cmd/pleach-lab and
// sql/cmd/pleach-sql check theirs.
func TestIdiomsInHelpAreFound(t *testing.T) {
	for help, want := range map[string]int{
		"Copy to a directory.":         0,
		"Copy to a folder.":            1,
		"  --folder   a `directory`":   0,
		"bench silent":                 0,
		"It goes on.":                  0,
		strings.Repeat("goes on ", 21): 1,
	} {
		if got := prose.Help(map[string]string{"a": help}, "silent"); len(got) != want {
			t.Errorf("%q: %q, want %d complaints", help, got, want)
		}
	}
}

func checkProse(t *testing.T, fsys fs.FS) (pages int, complaints []string) {
	t.Helper()
	counts := make([]int, len(prose.Rules))
	var where []string
	check := func(name string) {
		b, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for i := range prose.Rules {
			found := prose.Rules[i].Find(string(b))
			counts[i] += len(found)
			if len(found) > 0 {
				where = append(where, fmt.Sprintf("%s: %q", name, found))
			}
		}
		for _, c := range prose.Retired(prose.Markdown(string(b))) {
			complaints = append(complaints, name+": "+c)
		}
	}
	check("README.md")
	err := fs.WalkDir(fsys, "docs", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "docs/adr":
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			check(name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range prose.Rules {
		if counts[i] > r.Limit {
			complaints = append(complaints, fmt.Sprintf("%s occurs %d times, more than %d: %s", r.Name, counts[i], r.Limit,
				where))
		}
	}
	return pages, complaints
}
