package archtest

import (
	"go/ast"
	"go/build"
	"go/doc/comment"
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

// Comments outlive what they refer to: every doc link to a name of this repository, and every file
// that a comment or a page for developers names, exists.
func TestReferencesExist(t *testing.T) {
	links, complaints := checkReferences(t, os.DirFS("../../.."))
	for _, c := range complaints {
		t.Error(c)
	}
	if links < 1000 {
		t.Errorf("%d references were checked", links)
	}
}

func TestDeadReferencesAreFound(t *testing.T) {
	const code = `package a

import (
	"io"
	"github.com/pleach-go/pleach/b"
)

type T struct{ F int }
type E struct{ io.Reader; b.Base }
type G[K, V any] struct{}
func (*G[K, V]) Get() {}
type I interface{ M() }
func (*T) Do() {}
type Alias = b.Other
func f() { _ = 1 }
`
	for text, want := range map[string]int{
		"// see [T], [T.Do], [T.F], [*T] and [I.M]":                 0,
		"// see [b.Base], [b.Base.Do], [io.Reader], [io.Reader.Up]": 0,
		"// [E.Any] may be a method of an embedded field":           0,
		"// [G.Get], https://pkg.go.dev":                            0,
		"// [G.None]":                                               1,
		"// [Alias.Any]":                                            0,
		"// [0], [1] and a[i]; [text]":                              0,
		"// see [T.None]":                                           1,
		"// see [I.None]":                                           1,
		"// see [None]":                                             1,
		"// see [b.None]":                                           1,
		"// see [b.Base.None]":                                      1,
		"// see a.go and b/b.go":                                    0,
		"// see ../b/b.go, b.go or x_test.go; a_*.go":               1,
		"// see internal/none/b.go":                                 1,
		"func g() { /* in code, [None] is a word */ }":              0,
	} {
		source := code
		if strings.HasPrefix(text, "//") {
			source += text + "\nfunc documented() {}\n"
		} else {
			source += text + "\n"
		}
		fsys := fstest.MapFS{
			"a/a.go": {Data: []byte(source)},
			"b/b.go": {Data: []byte("package b\n\ntype Base struct{}\nfunc (Base) Do() {}\ntype Other struct{}\n")},
		}
		if _, got := checkReferences(t, fsys); len(got) != want {
			t.Errorf("%s: %q, want %d complaints", text, got, want)
		}
	}
	page := fstest.MapFS{
		"docs/develop/a.md":    {Data: []byte("`a/a.go`, `a.go`, `gone.go`\n\n```\nx.go\n```\n")},
		"docs/operate/page.md": {Data: []byte("`elsewhere.go`\n")},
		"a/a.go":               {Data: []byte("package a\n")},
	}
	if _, got := checkReferences(t, page); len(got) != 1 {
		t.Errorf("%q, want one complaint", got)
	}
}

// symbols are the names of a package: its declarations, and the fields and methods of its types.
type symbols struct {
	name  string
	decls map[string]map[string]bool // by declaration; the names below it, or nil if it may have more
}

// checkReferences reads comments that document declarations, as pkg.go.dev shows them.
func checkReferences(t *testing.T, fsys fs.FS) (checked int, complaints []string) {
	t.Helper()
	fset := token.NewFileSet()
	files := map[string]*ast.File{}
	packages := map[string]*symbols{}
	eachGoFile(t, fsys, func(name string, src []byte) {
		f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
		at := path.Dir(name)
		if packages[at] == nil {
			packages[at] = &symbols{decls: map[string]map[string]bool{}}
		}
		if !strings.HasSuffix(name, "_test.go") {
			packages[at].name = f.Name.Name
		}
		packages[at].add(f)
	})
	for name, f := range files {
		local := packages[path.Dir(name)]
		imports := importsOf(f)
		parser := comment.Parser{
			LookupSym:     func(string, string) bool { return true },
			LookupPackage: func(name string) (string, bool) { return name, true },
		}
		for _, group := range f.Comments {
			line := fset.Position(group.Pos()).Line
			for _, mention := range filesIn(group.Text()) {
				checked++
				if !hasFile(files, mention) {
					complaints = append(complaints, position(name, line)+"there is no file "+mention)
				}
			}
		}
		for _, group := range documented(f) {
			line := fset.Position(group.Pos()).Line
			for _, l := range linksOf(parser.Parse(group.Text())) {
				at, ok := resolve(packages, imports, f.Name.Name, l.ImportPath)
				if !ok {
					continue // of the standard library, or no link
				}
				symbols := local
				if at != "" {
					symbols = packages[at]
				}
				checked++
				if why := symbols.lacks(l.Recv, l.Name); why != "" {
					complaints = append(complaints, position(name, line)+why)
				}
			}
		}
	}
	pages, err := fs.Glob(fsys, "docs/develop/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		lines, err := proseOf(fsys, page)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range lines {
			for _, mention := range filesIn(line) {
				checked++
				if !hasFile(files, mention) {
					complaints = append(complaints, position(page, i+1)+"there is no file "+mention)
				}
			}
		}
	}
	slices.Sort(complaints)
	return checked, complaints
}

// goFile is the name or the path of a Go file.
var goFile = regexp.MustCompile(`[\w./-]*\w\.go\b`)

// filesIn returns the Go files that a text names.
func filesIn(text string) []string {
	return goFile.FindAllString(strings.ReplaceAll(text, "pkg.go.dev", ""), -1)
}

// hasFile reports whether some file has a path, or ends with it.
func hasFile(files map[string]*ast.File, mention string) bool {
	mention = strings.TrimLeft(mention, "./")
	if files[mention] != nil {
		return true
	}
	for name := range files {
		if strings.HasSuffix(name, "/"+mention) {
			return true
		}
	}
	return false
}

// documented returns the comments of a file that document declarations, fields and methods.
func documented(f *ast.File) (groups []*ast.CommentGroup) {
	add := func(group *ast.CommentGroup) {
		if group != nil {
			groups = append(groups, group)
		}
	}
	add(f.Doc)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Doc)
			return false
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc)
		case *ast.ValueSpec:
			add(n.Doc)
		case *ast.Field:
			add(n.Doc)
		}
		return true
	})
	return groups
}

func linksOf(d *comment.Doc) (links []*comment.DocLink) {
	var texts func([]comment.Text)
	texts = func(list []comment.Text) {
		for _, text := range list {
			switch text := text.(type) {
			case *comment.DocLink:
				links = append(links, text)
			case *comment.Link:
				texts(text.Text)
			}
		}
	}
	var blocks func([]comment.Block)
	blocks = func(list []comment.Block) {
		for _, block := range list {
			switch block := block.(type) {
			case *comment.Paragraph:
				texts(block.Text)
			case *comment.Heading:
				texts(block.Text)
			case *comment.List:
				for _, item := range block.Items {
					blocks(item.Content)
				}
			}
		}
	}
	blocks(d.Content)
	return links
}

// importsOf maps the names of imported packages to their paths.
func importsOf(f *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range f.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = p
	}
	return imports
}

// resolve returns the directory of the package that a link names; "": that of the comment. It is
// not ok if the package is not of this repository.
func resolve(packages map[string]*symbols, imports map[string]string, self, name string) (dir string, ok bool) {
	if name == "" || name == self {
		return "", true
	}
	if p, imported := imports[name]; imported {
		name = p
	} else if !strings.Contains(name, "/") {
		if standard(name) {
			return "", false
		}
		for dir, p := range packages {
			if p.name == name {
				return dir, true
			}
		}
		return "", false
	}
	if name == module {
		return ".", true
	}
	dir, ok = strings.CutPrefix(name, module+"/")
	return dir, ok && packages[dir] != nil
}

func standard(name string) bool {
	p, err := build.Default.Import(name, "", build.FindOnly)
	return err == nil && p.Goroot
}

// add takes the declarations of a file.
func (s *symbols) add(f *ast.File) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				s.decls[d.Name.Name] = map[string]bool{}
				continue
			}
			s.below(receiver(d.Recv.List[0].Type), d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						s.decls[name.Name] = map[string]bool{}
					}
				case *ast.TypeSpec:
					s.addType(spec)
				}
			}
		}
	}
}

const anyName = "*"

func (s *symbols) addType(spec *ast.TypeSpec) {
	s.below(spec.Name.Name, "")
	var list *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		s.below(spec.Name.Name, anyName) // it has the names of another type, or none
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			s.below(spec.Name.Name, name.Name)
		}
		if len(field.Names) == 0 {
			s.below(spec.Name.Name, anyName)
		}
	}
}

func (s *symbols) below(decl, name string) {
	if s.decls[decl] == nil {
		s.decls[decl] = map[string]bool{}
	}
	s.decls[decl][name] = true
}

// lacks says that a package has no such name, or nothing if it has.
func (s *symbols) lacks(recv, name string) string {
	if recv == "" {
		recv, name = name, ""
	}
	below, ok := s.decls[recv]
	switch {
	case recv == "":
		return ""
	case !ok:
		return "there is no " + recv + " in package " + s.name
	case name != "" && !below[name] && !below[anyName]:
		return recv + " of package " + s.name + " has no " + name
	}
	return ""
}
