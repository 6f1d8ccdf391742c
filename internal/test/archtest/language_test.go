package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// Comments, errors, log lines and help texts are in plain English. Tests are not read. Package prose
// has the rules for pages.
func TestCodeIsInPlainEnglish(t *testing.T) {
	texts, complaints := checkLanguage(t, os.DirFS("../../.."), unrevised)
	for _, c := range complaints {
		t.Error(c)
	}
	if texts < 10_000 {
		t.Errorf("%d texts were read", texts)
	}
}

// Directories leave the list once they are revised.
func TestUnrevisedDirectoriesHaveIdioms(t *testing.T) {
	_, complaints := checkLanguage(t, os.DirFS("../../.."), nil)
	for _, dir := range unrevised {
		if !slices.ContainsFunc(complaints, func(c string) bool {
			file, _, _ := strings.Cut(c, ":")
			return path.Dir(file) == dir
		}) {
			t.Errorf("%s is revised: take it off the list", dir)
		}
	}
}

func TestIdiomsInCodeAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"// It continues.":                              0,
		"// It goes on.":                                1,
		"// It goes\n// on.":                            1,
		"/* It goes on. */":                             1,
		"var s = \"x goes on\"":                         1,
		"var s = `anew`":                                1,
		"var goesOn, anew, beside int":                  0,
		"import \"anew\"":                               0,
		"// It is told, and begins anew.":               2,
		"type t struct {\n\ta int // the same, of b\n}": 1,
		"// The same, of b.\nvar b int":                 0,
		"// Seated at the table next to a doorbell.":    0,
	} {
		fsys := fstest.MapFS{
			"a/a.go":      {Data: []byte("package a\n\n" + text + "\n")},
			"a/a_test.go": {Data: []byte("package a\n\n// It goes on.\n")},
			"b/b.go":      {Data: []byte("package b\n\n// It goes on.\n")},
		}
		if _, got := checkLanguage(t, fsys, []string{"b"}); len(got) != want {
			t.Errorf("%q: %q, want %d complaints", text, got, want)
		}
	}
}

// idioms maps phrases to what they mean in plain English.
var idioms = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{phrase(`go(es)? on|going on|went on|gone on`), "continues, recovers, lasts"},
	{phrase(`anew`), "again, from scratch"},
	{phrase(`mend(s|ed|ing)?`), "repairs"},
	{phrase(`gets? on|got on|getting on`), "makes progress"},
	{phrase(`hardly (runs?|ran|running)`), "is starved of CPU"},
	{phrase(`folders?`), "directory"},
	{phrase(`seats?`), "persisted vote, restarted voter"},
	{phrase(`doors?`), "admission control, authentication"},
	{phrase(`troubles?`), "fault, failure"},
	{phrase(`likewise|(it|them|they|these) too`), "a noun phrase that stands alone"},
	{phrase(`(is|are|was|were|be|been) told`), "returns an error, fires an event, receives a frame"},
	{phrase(`as soon as may be`), "as soon as possible"},
	{phrase(`(fed|corrected) around`), "bypassed, repaired by correction"},
	{phrase(`(gives?|gave) (a|no|the) signs?`), "wakes, signals"},
	{phrase(`in the end`), "eventually, finally"},
	{phrase(`(is|are|was|be) no members?`), "is not a member"},
	{phrase(`laborator(y|ies)`), "lab"},
	{phrase(`to be had`), "available, could not be acquired"},
	{phrase(`beside`), "next to, compared with, at the same time as"},
	{phrase(`by itself`), "automatically, alone"},
	{phrase(`also (if|while)`), "even if, even while"},
	{phrase(`has not (its|the|a|an)`), "does not have, lacks"},
	{phrase(`what is due`), "pending work"},
	{phrase(`when last`), "the time of the last"},
}

// theSame begins a comment at the end of a line: it does not stand alone.
var theSame = regexp.MustCompile(`(?i)^// (the same|too)[,;:.]`)

func phrase(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + pattern + `)\b`) }

// unrevised are directories whose code is still to be rewritten.
var unrevised = []string{"lab/experiments", "lab/experiments/reproduce", "lab/figures/measure"}

func checkLanguage(t *testing.T, fsys fs.FS, unrevised []string) (texts int, complaints []string) {
	t.Helper()
	eachGoFile(t, fsys, func(name string, src []byte) {
		dir := path.Dir(name)
		if strings.HasSuffix(name, "_test.go") || dir == "internal/test/archtest" || dir == "internal/test/prose" ||
			slices.Contains(unrevised, dir) {
			return
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		check := func(pos token.Pos, text string) {
			texts++
			for _, idiom := range idioms {
				for _, found := range idiom.pattern.FindAllString(text, -1) {
					complaints = append(complaints, position(name, fset.Position(pos).Line)+found+": write "+idiom.instead)
				}
			}
		}
		for _, group := range f.Comments {
			check(group.Pos(), strings.ReplaceAll(group.Text(), "\n", " "))
			if first := group.List[0]; fset.Position(first.Pos()).Column > 1 && theSame.MatchString(first.Text) &&
				!startsLine(src, fset.Position(first.Pos()).Offset) {
				complaints = append(complaints, position(name, fset.Position(first.Pos()).Line)+
					"a comment that does not stand alone: "+first.Text)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				check(lit.Pos(), lit.Value)
			}
			return true
		})
	})
	return texts, complaints
}

// startsLine reports whether there are only blanks before an offset in its line.
func startsLine(src []byte, offset int) bool {
	line := src[strings.LastIndexByte(string(src[:offset]), '\n')+1 : offset]
	return strings.TrimSpace(string(line)) == ""
}
