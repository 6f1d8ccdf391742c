package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// Pages move, and headings get other words: every relative link of every page leads to a
// file, and to a heading where it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, complaints := checkLinks(t, os.DirFS("../../.."))
	for _, c := range complaints {
		t.Error(c)
	}
	if pages < 20 {
		t.Errorf("%d pages were looked at", pages)
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"[a](b.md#two-words--more)":            0,
		"[a](b.md#that)":                       1, // heading in a code block
		"[a](b.md#none) and ![p](p.svg)":       2,
		"`[a](none.md)` [a](https://x.y/z.md)": 0,
		"[a](#here)\n\n## Here":                0,
		"[a](../out.md)":                       1,
		"[a](below/) [b](none/)":               1,
	} {
		fsys := fstest.MapFS{
			"docs/a.md":       {Data: []byte(text)},
			"docs/b.md":       {Data: []byte("# B\n\n```sh\n# That\n```\n\n## Two words, `more`\n## Two words – more\n")},
			"docs/below/c.md": {},
		}
		if _, got := checkLinks(t, fsys); len(got) != want {
			t.Errorf("%q: %q, want %d complaints", text, got, want)
		}
	}
}

var (
	links  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inCode = regexp.MustCompile("`[^`]*`")
	scheme = regexp.MustCompile(`^[a-z]+:`)
)

func checkLinks(t *testing.T, fsys fs.FS) (pages int, complaints []string) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := path.Base(name); name != "." && (strings.HasPrefix(base, ".") ||
				slices.Contains([]string{"testdata", "node_modules", "bin", "dist"}, base) || name == "site/reference") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".md"):
			return nil
		}
		pages++
		lines, err := proseOf(fsys, name)
		for i, line := range lines {
			for _, link := range links.FindAllStringSubmatch(inCode.ReplaceAllString(line, "`"), -1) {
				if why := deadLink(fsys, name, link[1]); why != "" {
					complaints = append(complaints, fmt.Sprintf("%s:%d: %s: %s", name, i+1, link[1], why))
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages, complaints
}

// deadLink says why a link of a page leads nowhere, or nothing if it does lead somewhere.
// What is outside of the repository is not looked at.
func deadLink(fsys fs.FS, page, link string) string {
	if scheme.MatchString(link) {
		return ""
	}
	file, heading, _ := strings.Cut(link, "#")
	target := path.Join(path.Dir(page), file)
	if file == "" {
		target = page
	}
	if _, err := fs.Stat(fsys, target); err != nil {
		return "no such file"
	}
	if heading == "" {
		return ""
	}
	lines, err := proseOf(fsys, target)
	if err != nil {
		return err.Error()
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "#") && anchor(strings.TrimLeft(line, "# ")) == heading {
			return ""
		}
	}
	return "no such heading"
}

// proseOf returns the lines of a page, with those of code blocks empty.
func proseOf(fsys fs.FS, name string) ([]string, error) {
	text, err := fs.ReadFile(fsys, name)
	lines := strings.Split(string(text), "\n")
	code := false
	for i, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence || code {
			lines[i] = ""
		}
		code = code != fence
	}
	return lines, err
}

// anchor is the name that a heading gets in a link: lower case, spaces as dashes, and no
// other marks.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
