//go:build unix

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// site is a place for a bug: what stands there, and what will stand there instead.
type site struct {
	File     string `json:"file"` // from the module's root
	Line     int    `json:"line"`
	Function string `json:"function"`
	Kind     string `json:"kind"`
	Before   string `json:"before"`
	After    string `json:"after"`

	offset int
}

// folder is the folder of the package, from the module's root.
func (s *site) folder() string { return filepath.ToSlash(filepath.Dir(s.File)) }

func (s *site) String() string {
	return fmt.Sprintf("%s:%d %s: %s: %s → %s", s.File, s.Line, s.Function, s.Kind, oneLine(s.Before), oneLine(s.After))
}

// oneLine shortens an expression.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 70 {
		text = string(r[:69]) + "…"
	}
	return text
}

// Kinds of bugs. Their order has no meaning.
const (
	operator     = "operator"
	conditionOff = "condition off"
	callLeftOut  = "call left out"
)

// exchanged is what each operator becomes: the mistakes that are easily made.
var exchanged = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// sitesOf returns the places for bugs in a package, in the order of its files.
func sitesOf(root, folder string) ([]site, error) {
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []site
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		sites, err := sitesIn(relative, source)
		if err != nil {
			return nil, err
		}
		all = append(all, sites...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no places for bugs in %s: is that the folder of a package?", folder)
	}
	return all, nil
}

// sitesIn returns the places for bugs in a file.
func sitesIn(name string, source []byte) ([]site, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	if err != nil {
		return nil, err
	}
	var all []site
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		add := func(kind string, from, to token.Pos, instead func(before string) string) {
			at := files.Position(from)
			before := string(source[at.Offset:files.Position(to).Offset])
			all = append(all, site{
				File: name, Line: at.Line, Function: nameOf(f), Kind: kind,
				Before: before, After: instead(before), offset: at.Offset,
			})
		}
		ast.Inspect(f, func(n ast.Node) bool {
			inspect(n, add)
			return true
		})
	}
	slices.SortStableFunc(all, func(a, b site) int { return cmp.Compare(a.offset, b.offset) })
	return all, nil
}

// inspect adds the places that a node is.
func inspect(n ast.Node, add func(kind string, from, to token.Pos, instead func(string) string)) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other, ok := exchanged[n.Op]; ok {
			// The whole expression is its name, so that a list of names outlives edits elsewhere.
			add(operator, n.Pos(), n.End(), func(before string) string {
				at := int(n.OpPos - n.Pos())
				return before[:at] + other.String() + before[at+len(n.Op.String()):]
			})
		}
	case *ast.IfStmt:
		if n.Init == nil {
			add(conditionOff, n.Cond.Pos(), n.Cond.End(), func(before string) string { return "false && (" + before + ")" })
		}
	case *ast.ExprStmt:
		if _, ok := n.X.(*ast.CallExpr); ok {
			add(callLeftOut, n.Pos(), n.End(), func(before string) string { return "if false { " + before + " }" })
		}
	}
}

// nameOf returns a function's name, with its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
