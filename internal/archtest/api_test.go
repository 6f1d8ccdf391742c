package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A program outside the module cannot name a type of an internal package, so no exported
// declaration of a public package mentions one.
func TestNoInternalTypeIsExported(t *testing.T) {
	for _, complaint := range exportedInternals(t, os.DirFS("../..")) {
		t.Error(complaint)
	}
}

func TestExportedInternalTypeIsFound(t *testing.T) {
	const file = `package p
import "github.com/pleach-go/pleach/internal/x"
type core = x.T
type Fine core
func (f Fine) Method() int { return x.T(f).Value() }
func Wrong(x.T) {}
type AlsoWrong struct { Field []x.T; field x.T }
func (*unexported[T]) Fine(x.T) {}
func (*AlsoWrong) Method() *x.T { return nil }
`
	got := exportedInternals(t, fstest.MapFS{
		"p/p.go": {Data: []byte(file)}, "internal/x/x.go": {Data: []byte("package x\n\ntype T int\n")},
	})
	if len(got) != 3 {
		t.Errorf("%d complaints, want 3: %q", len(got), got)
	}
}

// exportedInternals returns where an exported declaration of a public package mentions a
// type of an internal package. Commands export nothing.
func exportedInternals(t *testing.T, fsys fs.FS) (complaints []string) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if base := path.Base(name); skipped(fsys, name) || base == "internal" || base == "cmd" {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		internal := internalImports(f)
		for _, decl := range f.Decls {
			for _, part := range exportedParts(decl) {
				ast.Inspect(part, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
							complaints = append(complaints, fmt.Sprintf("%s: %s.%s is internal, and exported here", fset.Position(n.Pos()), x.Name, s.Sel.Name))
						}
					}
					return true
				})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return complaints
}

// internalImports returns the names by which a file knows the module's internal packages.
func internalImports(f *ast.File) map[string]bool {
	names := make(map[string]bool)
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !within(module+"/internal", imported) {
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

// exportedParts returns what of a declaration a program outside the package can see:
// signatures, not bodies, and exported fields.
func exportedParts(decl ast.Decl) (parts []ast.Node) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			parts = append(parts, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				if slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) && s.Type != nil {
					parts = append(parts, s.Type)
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					parts = append(parts, exportedType(s.Type)...)
				}
			}
		}
	}
	return parts
}

// exportedReceiver reports whether a method's type is exported.
func exportedReceiver(recv *ast.FieldList) bool {
	var name *ast.Ident // the first one: type parameters follow
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == nil {
			name = id
		}
		return name == nil
	})
	return name.IsExported()
}

// exportedType returns the exported and embedded fields of a struct, or the whole type.
func exportedType(e ast.Expr) (parts []ast.Node) {
	s, ok := e.(*ast.StructType)
	if !ok {
		return []ast.Node{e}
	}
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
			parts = append(parts, field.Type)
		}
	}
	return parts
}
