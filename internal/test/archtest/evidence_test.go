package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTests = regexp.MustCompile("`(?:[a-z]+\\.)?((?:Test|Example|Fuzz)[A-Za-z0-9_]*)(…?)`")
	testFuncs  = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)
)

// The evidence of a promise is a test that there is.
func TestEvidenceExists(t *testing.T) {
	fsys := os.DirFS("../../..")
	var all []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && strings.HasPrefix(path.Base(name), ".") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(fsys, name)
		for _, f := range testFuncs.FindAllSubmatch(src, -1) {
			all = append(all, string(f[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := fs.ReadFile(fsys, "docs/develop/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	named := namedTests.FindAllSubmatch(page, -1)
	if len(named) < 100 {
		t.Errorf("docs/develop/evidence.md names %d tests", len(named))
	}
	for _, n := range named {
		if name, begins := string(n[1]), len(n[2]) > 0; !exists(all, name, begins) {
			t.Errorf("docs/develop/evidence.md names %s, which is no test", name)
		}
	}
}

// exists reports whether a test has a name, or begins with it and goes on with another word.
func exists(all []string, name string, begins bool) bool {
	for _, test := range all {
		if rest, ok := strings.CutPrefix(test, name); ok && (rest == "" || begins && (rest[0] < '0' || rest[0] > '9')) {
			return true
		}
	}
	return false
}
