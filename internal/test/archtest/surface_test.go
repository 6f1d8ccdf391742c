package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// What is public is promised. The surface of every public package is recorded in
// api/, one file each, so that a change of it is a change of a file that a
// reviewer sees. `make api` records it anew.

// recorded is the folder with the surfaces, from here.
const recorded = "../../../api"

// public reports whether programs of other modules import a package.
func public(pkg string) bool {
	first, below, _ := strings.Cut(pkg, "/")
	return !strings.HasPrefix(below, "internal/") &&
		!slices.Contains([]string{"internal", "agent", "examples", "lab"}, first)
}

func TestSurfaceIsTheRecordedOne(t *testing.T) {
	surfaces := surfaces(t, os.DirFS("../../.."))
	if testutil.RecordAPI.On() {
		record(t, surfaces)
		return
	}
	entries, err := os.ReadDir(recorded)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := surfaces[e.Name()]; !ok {
			t.Errorf("api/%s: there is no such package any more: if that is on purpose, run make api", e.Name())
		}
	}
	for name, surface := range surfaces {
		want, err := os.ReadFile(filepath.Join(recorded, name))
		if err != nil || string(want) != surface {
			t.Errorf("api/%s is not what the package exports now: %s\nif that is on purpose, run make api and tell users in CHANGELOG.md",
				name, firstDifference(string(want), surface))
		}
	}
}

func record(t *testing.T, surfaces map[string]string) {
	t.Helper()
	if err := os.RemoveAll(recorded); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(recorded, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, surface := range surfaces {
		if err := os.WriteFile(filepath.Join(recorded, name), []byte(surface), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func firstDifference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("line %d: recorded %q, now %q", i+1, at(a, i), at(b, i))
		}
	}
	return "no difference"
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// surfaces returns the exported declarations of the public packages, by file name.
func surfaces(t *testing.T, fsys fs.FS) map[string]string {
	t.Helper()
	all := make(map[string]string)
	fset := token.NewFileSet()
	for dir, files := range publicFiles(t, fset, fsys) {
		name := strings.ReplaceAll(dir, "/", "-")
		if dir == "." {
			name = path.Base(module)
		}
		all[name+".txt"] = surface(t, fset, dir, files)
	}
	return all
}

// publicFiles returns the parsed files of each public package, without comments
// and without files for other systems than Linux.
func publicFiles(t *testing.T, fset *token.FileSet, fsys fs.FS) map[string]map[string]*ast.File {
	t.Helper()
	packages := make(map[string]map[string]*ast.File)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if d.IsDir() {
			if skipped(fsys, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || !public(dir) {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if !forLinux(name, f) {
			return nil
		}
		f, err = parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if packages[dir] == nil {
			packages[dir] = make(map[string]*ast.File)
		}
		packages[dir][name] = f
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// forLinux reports whether a file is compiled for Linux: the surface is recorded
// for one system, so that it is the same wherever the test runs.
func forLinux(name string, f *ast.File) bool {
	base := strings.TrimSuffix(path.Base(name), ".go")
	for _, other := range []string{"_other", "_windows", "_darwin"} {
		if strings.HasSuffix(base, other) {
			return false
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() < f.Package && strings.HasPrefix(c.Text, "//go:build !") {
				return false
			}
		}
	}
	return true
}

// surface prints the exported declarations of a package in a fixed order.
func surface(t *testing.T, fset *token.FileSet, dir string, files map[string]*ast.File) string {
	t.Helper()
	var list []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, files[name])
	}
	p, err := doc.NewFromFiles(fset, list, path.Join(module, dir))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s // import %q\n", p.Name, path.Join(module, dir))
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			declare(t, &b, fset, v.Decl)
		}
	}
	functions := func(fs []*doc.Func) {
		for _, f := range fs {
			f.Decl.Body = nil
			declare(t, &b, fset, f.Decl)
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, typ := range p.Types {
		declare(t, &b, fset, typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
	}
	return b.String()
}

// declare prints a declaration, without the blank lines that comments leave.
func declare(t *testing.T, b *bytes.Buffer, fset *token.FileSet, decl ast.Decl) {
	t.Helper()
	var text bytes.Buffer
	if err := format.Node(&text, fset, decl); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	for line := range strings.Lines(text.String() + "\n") {
		if strings.TrimSpace(line) != "" {
			b.WriteString(line)
		}
	}
}

// No exported declaration of a public package mentions a type of an internal one:
// a program could neither name it nor make it.
func TestNoInternalTypeIsExported(t *testing.T) {
	for _, c := range mentionsOfInternals(t, os.DirFS("../../..")) {
		t.Error(c)
	}
}

func TestMentionsOfInternalsAreFound(t *testing.T) {
	for src, want := range map[string]int{
		`func F(e *engine.Engine) {}`:                        1,
		`func f(e *engine.Engine) {}`:                        0,
		`type T struct { E engine.Engine; n engine.Number }`: 1,
		`type T struct { engine.Engine }`:                    1,
		`type T struct { e engine.Engine }`:                  0,
		`type t struct { E engine.Engine }`:                  0,
		`func (T) M() engine.Engine { panic(0) }`:            1,
		`func (t) M() engine.Engine { panic(0) }`:            0,
		`var V = engine.New()`:                               1,
		`var ErrV = engine.ErrV`:                             0,
		`type I interface { M(engine.Engine) }`:              1,
		`type A = engine.Engine`:                             1,
		`func F() { engine.New() }`:                          0,
	} {
		fsys := fstest.MapFS{"collective/a.go": {Data: []byte("package p\nimport \"" + module +
			"/internal/engine\"\ntype T int\ntype t int\n" + src)}}
		if got := mentionsOfInternals(t, fsys); len(got) != want {
			t.Errorf("%s: %d mentions %q, want %d", src, len(got), got, want)
		}
	}
}

func mentionsOfInternals(t *testing.T, fsys fs.FS) (complaints []string) {
	t.Helper()
	for _, files := range publicFiles(t, token.NewFileSet(), fsys) {
		for name, f := range files {
			internal := internalImports(f)
			for _, d := range f.Decls {
				if fd, ok := d.(*ast.FuncDecl); ok {
					fd.Body = nil
				}
			}
			ast.FileExports(f)
			for _, d := range f.Decls {
				g, general := d.(*ast.GenDecl)
				if general && g.Tok == token.IMPORT || unexportedReceiver(d) {
					continue
				}
				if general && g.Tok == token.VAR {
					dropErrors(g)
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
							complaints = append(complaints, fmt.Sprintf("%s: an exported declaration mentions %s.%s", name, x.Name,
								s.Sel.Name))
						}
					}
					return true
				})
			}
		}
	}
	return complaints
}

// dropErrors drops the values of error variables: their type is error.
func dropErrors(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		if v := spec.(*ast.ValueSpec); strings.HasPrefix(v.Names[0].Name, "Err") {
			v.Values = nil
		}
	}
}

// internalImports returns under which names a file imports internal packages.
func internalImports(f *ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !strings.HasPrefix(imported, module+"/internal/") {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

func unexportedReceiver(d ast.Decl) bool {
	fd, ok := d.(*ast.FuncDecl)
	if !ok || fd.Recv == nil {
		return false
	}
	name := ""
	ast.Inspect(fd.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return !ast.IsExported(name)
}
