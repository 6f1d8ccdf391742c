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
)

// Counts of what has grown too large. Each may only shrink: whoever makes one smaller
// lowers its limit.
const (
	maxRootFiles     = 25
	maxGroupFields   = 20
	maxConfigMethods = 3
	maxFields        = 30 // of a struct of a protocol
)

func TestWhatIsTooLargeShrinks(t *testing.T) {
	fsys := os.DirFS("../../..")
	root := parsed(t, fsys, ".")
	t.Logf("root: %d files, Group: %d fields, session: %d fields, Config: %d methods", len(root), structs(root)["Group"], structs(root)["session"], methods(root, "Config"))
	for what, count := range map[string][2]int{
		"files of the root package": {len(root), maxRootFiles},
		"fields of Group":           {structs(root)["Group"], maxGroupFields},
		"fields of session":         {structs(root)["session"], maxGroupFields}, // what was Group's
		"methods of Config":         {methods(root, "Config"), maxConfigMethods},
	} {
		if count[0] > count[1] || count[0] == 0 {
			t.Errorf("%d %s: at most %d", count[0], what, count[1])
		}
	}
	for _, r := range rules {
		if !r.pure {
			continue
		}
		for name, fields := range structs(parsed(t, fsys, r.pkg)) {
			if fields > 20 {
				t.Logf("%s.%s: %d fields", r.pkg, name, fields)
			}
			if fields > maxFields {
				t.Errorf("%s.%s has %d fields: at most %d, cut it into parts", r.pkg, name, fields, maxFields)
			}
		}
	}
}

// parsed are the files of a package but tests.
func parsed(t *testing.T, fsys fs.FS, pkg string) (files []*ast.File) {
	t.Helper()
	names, err := fs.Glob(fsys, path.Join(pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "_test.go") }) {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// structs counts the fields of each struct that has a name, embedded ones included.
func structs(files []*ast.File) map[string]int {
	counts := make(map[string]int)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					counts[spec.Name.Name] = s.Fields.NumFields()
				}
			}
			return true
		})
	}
	return counts
}

// methods counts those of a type and of pointers to it.
func methods(files []*ast.File, of string) (count int) {
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				if receiver(fn.Recv.List[0].Type) == of {
					count++
				}
			}
		}
	}
	return count
}

func receiver(e ast.Expr) string {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
