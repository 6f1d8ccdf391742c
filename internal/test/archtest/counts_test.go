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
	maxRootFiles      = 26
	maxGroupFields    = 20
	maxSessionFields  = 35 // with those of the structs that it embeds
	maxSessionMethods = 36 // with theirs
	maxConfigMethods  = 3
	maxFields         = 30  // of a struct of a protocol
	maxSleeps         = 158 // calls of time.Sleep in tests
)

func TestWhatIsTooLargeShrinks(t *testing.T) {
	fsys := os.DirFS("../../..")
	root := parsed(t, fsys, ".")
	sessionMethods, sessionFields := sizeOf(root, "session")
	t.Logf("root: %d files, Group: %d fields, session: %d fields and %d methods, Config: %d methods",
		len(root), structs(root)["Group"], sessionFields, sessionMethods, methods(root, "Config"))
	for what, count := range map[string][2]int{
		"files of the root package": {len(root), maxRootFiles},
		"fields of Group":           {structs(root)["Group"], maxGroupFields},
		"fields of session":         {sessionFields, maxSessionFields}, // its parts have types of their own
		"methods of session":        {sessionMethods, maxSessionMethods},
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

// A test waits for what it needs with testutil.Eventually, and lets virtual time pass with
// testutil.Advance. Only a paced load, an outage or simulated work sleeps.
func TestSleepsInTestsShrink(t *testing.T) {
	count := 0
	eachGoFile(t, os.DirFS("../../.."), func(name string, src []byte) {
		if strings.HasSuffix(name, "_test.go") {
			count += sleeps(t, name, src)
		}
	})
	t.Logf("%d calls of time.Sleep in tests", count)
	if count > maxSleeps || count == 0 {
		t.Errorf("%d calls of time.Sleep in tests: at most %d; wait with testutil.Eventually", count, maxSleeps)
	}
}

func TestSleepsAreCounted(t *testing.T) {
	src := `package p
		// time.Sleep(1)
		func f() { time.Sleep(1); go func() { defer time.Sleep(2) }() }`
	if n := sleeps(t, "p_test.go", []byte(src)); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

// sleeps counts the calls of time.Sleep in a file.
func sleeps(t *testing.T, name string, src []byte) (count int) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && calledName(call) == "time.Sleep" {
			count++
		}
		return true
	})
	return count
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

// sizeOf counts the methods and the fields of a struct, with those of the structs that it embeds.
func sizeOf(files []*ast.File, of string) (allMethods, fields int) {
	allMethods = methods(files, of)
	for _, f := range fieldsOfStruct(files, of) {
		if len(f.Names) > 0 {
			fields += len(f.Names)
			continue
		}
		m, n := sizeOf(files, receiver(f.Type))
		allMethods, fields = allMethods+m, fields+max(n, 1)
	}
	return allMethods, fields
}

// fieldsOfStruct returns the fields of a struct, or none if the package has no such struct.
func fieldsOfStruct(files []*ast.File, of string) (fields []*ast.Field) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == of {
				if s, ok := spec.Type.(*ast.StructType); ok {
					fields = s.Fields.List
				}
			}
			return true
		})
	}
	return fields
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

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
