package archtest

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Lines that a reader sees whole: at most maxColumns characters. A line with a raw string, or with
// a text that is worth finding whole (longText characters or more), may be longer.
const (
	maxColumns = 120
	longText   = 40
)

func TestLinesAreShort(t *testing.T) {
	fsys := os.DirFS("../../..")
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		for _, line := range longLines(source) {
			t.Errorf("%s:%d is longer than %d characters", name, line, maxColumns)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// longLines returns the numbers of the lines of a Go file that are too long.
func longLines(source []byte) (long []int) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	may := make(map[int]bool) // lines that may be longer
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			break
		}
		raw := strings.HasPrefix(text, "`")
		directive := tok == token.COMMENT && strings.HasPrefix(text, "//go:")
		if tok == token.STRING && (raw || utf8.RuneCountInString(text) >= longText) || directive {
			first := file.Line(pos)
			for line := range strings.Count(text, "\n") + 1 {
				may[first+line] = true
			}
		}
	}
	for i, line := range strings.Split(string(source), "\n") {
		if utf8.RuneCountInString(line) > maxColumns && !may[i+1] {
			long = append(long, i+1)
		}
	}
	return long
}

func TestLongLinesAreFound(t *testing.T) {
	sum := "1" + strings.Repeat(" + 1", maxColumns/4)
	for name, c := range map[string]struct {
		source string
		want   []int
	}{
		"code":         {"var a = " + sum, []int{3}},
		"a comment":    {"// A" + strings.Repeat(" b", maxColumns/2), []int{3}},
		"a long text":  {fmt.Sprintf("var a = %q + f(%s)", strings.Repeat("t", longText), sum), nil},
		"a short text": {fmt.Sprintf("var a = %q + f(%s)", strings.Repeat("t", longText-3), sum), []int{3}},
		"a raw string": {"var a = `\n" + strings.Repeat("t", maxColumns+1) + "\n`\nvar b = " + sum, []int{6}},
		"just short":   {"//" + strings.Repeat("é", maxColumns-2), nil},
	} {
		if got := longLines([]byte("package p\n\n" + c.source + "\n")); !slices.Equal(got, c.want) {
			t.Errorf("%s: lines %v are long, want %v", name, got, c.want)
		}
	}
}
