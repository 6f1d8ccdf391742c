package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/pleach-go/pleach"

// goPages returns a page for each public package, and one that lists them. The public packages are
// those with a recorded surface in api/.
func goPages(root string) (map[string]string, error) {
	surfaces, err := filepath.Glob(filepath.Join(root, "api", "*.txt"))
	if err != nil {
		return nil, err
	}
	pages := make(map[string]string)
	list := "# Go packages\n\n| package | contents |\n|---|---|\n"
	for _, file := range append(surfaces, "sql") {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		dir := strings.ReplaceAll(name, "-", "/")
		if name == "pleach" {
			dir = "."
		}
		p, fset, err := parse(filepath.Join(root, dir), path.Join(module, dir))
		if err != nil {
			return nil, err
		}
		text, err := goPage(p, fset)
		if err != nil {
			return nil, err
		}
		pages["go-"+name] = text
		list += fmt.Sprintf("| [`%s`](go-%s.md) | %s |\n", p.ImportPath, name, escape(p.Synopsis(p.Doc)))
	}
	pages["go"] = list
	return pages, nil
}

func parse(dir, importPath string) (*doc.Package, *token.FileSet, error) {
	fset := token.NewFileSet()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		// Files for other systems declare the same names.
		name := strings.TrimSuffix(e.Name(), ".go")
		return name == e.Name() || strings.HasSuffix(name, "_test") || strings.HasSuffix(name, "_other") ||
			strings.HasSuffix(name, "_windows")
	})
	var files []*ast.File
	for _, e := range entries {
		f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	return p, fset, err
}

// goPage writes the documentation of a package.
func goPage(p *doc.Package, fset *token.FileSet) (string, error) {
	var b bytes.Buffer
	printer := p.Printer()
	printer.HeadingLevel = 4
	printer.DocLinkURL = func(l *comment.DocLink) string { return linkURL(p, l) }
	markdown := func(text string) { b.Write(outsideCode(printer.Markdown(p.Parser().Parse(text)))); b.WriteByte('\n') }
	var failed error
	declare := func(decl ast.Decl) {
		if f, ok := decl.(*ast.FuncDecl); ok {
			f.Body = nil
		}
		var code bytes.Buffer
		if err := format.Node(&code, fset, decl); err != nil && failed == nil {
			failed = err
		}
		fmt.Fprintf(&b, "```go\n%s\n```\n\n", code.Bytes())
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			declare(v.Decl)
			markdown(v.Doc)
		}
	}
	functions := func(level, receiver string, all []*doc.Func) {
		for _, f := range all {
			fmt.Fprintf(&b, "%s %s%s\n\n", level, receiver, f.Name)
			declare(f.Decl)
			markdown(f.Doc)
		}
	}
	fmt.Fprintf(&b, "# Package %s\n\n`import %q` ([pkg.go.dev](https://pkg.go.dev/%s))\n\n", p.Name, p.ImportPath,
		p.ImportPath)
	markdown(p.Doc)
	if len(p.Consts)+len(p.Vars) > 0 {
		b.WriteString("## Constants and variables\n\n")
		values(p.Consts)
		values(p.Vars)
	}
	if len(p.Funcs) > 0 {
		b.WriteString("## Functions\n\n")
		functions("###", "", p.Funcs)
	}
	for _, t := range p.Types {
		fmt.Fprintf(&b, "## Type %s\n\n", t.Name)
		declare(t.Decl)
		markdown(t.Doc)
		values(t.Consts)
		values(t.Vars)
		functions("###", "", t.Funcs)
		functions("###", t.Name+".", t.Methods)
	}
	return b.String(), failed
}

// linkURL is the heading of a name on its page, or its place on pkg.go.dev.
func linkURL(p *doc.Package, l *comment.DocLink) string {
	if l.ImportPath != "" && l.ImportPath != p.ImportPath {
		return l.DefaultURL("https://pkg.go.dev")
	}
	name := strings.ToLower(l.Recv + l.Name)
	switch {
	case l.Recv == "" && slices.ContainsFunc(p.Types, func(t *doc.Type) bool { return t.Name == l.Name }):
		return "#type-" + name
	case slices.ContainsFunc(p.Types, func(t *doc.Type) bool { return hasFunc(t, l) }) ||
		slices.ContainsFunc(p.Funcs, func(f *doc.Func) bool { return l.Recv == "" && f.Name == l.Name }):
		return "#" + name
	}
	// a constant, a variable or a field
	return "https://pkg.go.dev/" + p.ImportPath + "#" + strings.TrimPrefix(l.Recv+"."+l.Name, ".")
}

func hasFunc(t *doc.Type, l *comment.DocLink) bool {
	of := t.Funcs
	if l.Recv != "" {
		of = t.Methods
	}
	return (l.Recv == "" || l.Recv == t.Name) &&
		slices.ContainsFunc(of, func(f *doc.Func) bool { return f.Name == l.Name })
}

// outsideCode lets no text outside of blocks of code become HTML or a template of the site.
func outsideCode(markdown []byte) []byte {
	lines := bytes.Split(markdown, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("    ")) || bytes.HasPrefix(line, []byte("\t")) {
			continue
		}
		line = bytes.ReplaceAll(line, []byte(`\<`), []byte("<"))
		line = bytes.ReplaceAll(line, []byte("<"), []byte("&lt;"))
		lines[i] = bytes.ReplaceAll(line, []byte("{{"), []byte("&#123;&#123;"))
	}
	return bytes.Join(lines, []byte("\n"))
}
