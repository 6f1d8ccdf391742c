package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// What a reader skims as a condition changes nothing: the header of an if statement may declare
// variables, but neither assigns to existing ones nor calls a function for its effect alone. The
// usual `if err = f(); err != nil` is fine.
func TestConditionsChangeNothing(t *testing.T) {
	files, complaints := checkConditions(t, os.DirFS("../../.."))
	for _, c := range complaints {
		t.Error(c)
	}
	if files < 1500 {
		t.Errorf("%d files were read", files)
	}
}

func TestChangesInConditionsAreFound(t *testing.T) {
	for body, want := range map[string]int{
		"if x := f(); x > 0 {}":                            0,
		"if x, err := f(); err != nil {}":                  0,
		"if err = f(); err != nil {}":                      0,
		"if _, err = f(); err != nil {}":                   0,
		"if x, err = f(); err != nil {}":                   1,
		"if p.err = f(); p.err != nil {}":                  1,
		"if x[1] = y; y {}":                                1,
		"if n++; n == 3 {}":                                1,
		"if n += 2; n == 3 {}":                             1,
		"if f(); n == 3 {}":                                1,
		"if y { if n--; n == 3 {} }":                       1,
		"if x := f(); x {} else if n--; n == 3 {}":         1,
		"if x := func() { if n--; n > 0 {} }; x != nil {}": 1,
	} {
		fsys := fstest.MapFS{"a/a.go": {Data: []byte("package a\n\nfunc g() {\n" + body + "\n}\n")}}
		if _, got := checkConditions(t, fsys); len(got) != want {
			t.Errorf("%s: %q, want %d complaints", body, got, want)
		}
	}
}

func checkConditions(t *testing.T, fsys fs.FS) (files int, complaints []string) {
	t.Helper()
	eachGoFile(t, fsys, func(name string, src []byte) {
		files++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.IfStmt); ok && s.Init != nil && changes(s.Init) {
				complaints = append(complaints, position(name, fset.Position(s.Pos()).Line)+
					"the condition changes something: do so in a line before")
			}
			return true
		})
	})
	return files, complaints
}

// changes reports whether the statement before a condition is more than a declaration, or the
// assignment of an error.
func changes(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	return !ok || a.Tok != token.DEFINE && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "err" && id.Name != "_"
	})
}

// eachGoFile calls f with every Go file of all modules.
func eachGoFile(t *testing.T, fsys fs.FS, f func(name string, src []byte)) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go"):
			src, err := fs.ReadFile(fsys, name)
			if err != nil {
				return err
			}
			f(name, src)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
