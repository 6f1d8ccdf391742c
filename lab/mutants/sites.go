//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// site is a place for a bug: what stands there, and what will stand there instead.
type site struct {
	File     string `json:"file"` // from the module's root
	Line     int    `json:"line"`
	Function string `json:"function"`
	Kind     string `json:"kind"`
	Before   string `json:"before"`
	After    string `json:"after"`

	id          int // of the bug in its package, from 1 on
	from, to    int // in the file
	left, right int // end of the left operand, and beginning of the right one, in the file
	minus, plus bool
	source      []byte // of the file
}

// directory is the directory of the package, from the module's root.
func (s *site) directory() string { return filepath.ToSlash(filepath.Dir(s.File)) }

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
func sitesOf(root, directory string) ([]site, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports,
	}, "./"+directory)
	if err != nil {
		return nil, err
	}
	p := loaded[0]
	for _, e := range p.Errors {
		err = errors.Join(err, e)
	}
	if err != nil {
		return nil, err
	}
	var all []site
	for i, name := range p.GoFiles {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		in := finding{files: p.Fset, types: p.TypesInfo, name: relative, source: source}
		all = append(all, in.sites(p.Syntax[i])...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no places for bugs in %s: is that the directory of a package?", directory)
	}
	for i := range all {
		all[i].id = i + 1
	}
	return all, nil
}

// finding finds the places for bugs in a file.
type finding struct {
	files    *token.FileSet
	types    *types.Info
	name     string
	source   []byte
	function string
	found    []site
}

// sites returns the places for bugs in the functions of a file. An outer one comes before
// those within it.
func (f *finding) sites(file *ast.File) []site {
	for _, d := range file.Decls {
		if function, ok := d.(*ast.FuncDecl); ok {
			f.function = nameOf(function)
			ast.Inspect(function, func(n ast.Node) bool {
				f.inspect(n)
				return true
			})
		}
	}
	slices.SortStableFunc(f.found, func(a, b site) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	return f.found
}

// inspect adds the places that a node has.
func (f *finding) inspect(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IfStmt:
		if n.Init == nil {
			f.add(conditionOff, n.Cond).After = "false"
		}
	case *ast.BlockStmt:
		f.calls(n.List)
	case *ast.CaseClause:
		f.calls(n.Body)
	case *ast.CommClause:
		f.calls(n.Body)
	}
}

// binary adds an operator that can be exchanged. The whole expression is its name, so that a
// list of names outlives edits elsewhere.
func (f *finding) binary(n *ast.BinaryExpr) {
	other, ok := exchanged[n.Op]
	of := f.types.Types[n]
	if !ok || of.Value != nil {
		return // constants are computed by the compiler
	}
	arithmetic := n.Op == token.ADD || n.Op == token.SUB
	if basic, ok := of.Type.Underlying().(*types.Basic); arithmetic && (!ok || basic.Info()&types.IsNumeric == 0 ||
		f.shifts(n.X) || f.shifts(n.Y)) {
		return // texts have no difference, and the type of a shifted constant is that of what is around it
	}
	s := f.add(operator, n)
	at := int(n.OpPos - n.Pos())
	s.After = s.Before[:at] + other.String() + s.Before[at+len(n.Op.String()):]
	s.left, s.right = f.offset(n.X.End()), f.offset(n.Y.Pos())
	s.plus, s.minus = n.Op == token.ADD, n.Op == token.SUB
}

// shifts reports whether an expression is a constant that is shifted by a variable.
func (f *finding) shifts(e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && (b.Op == token.SHL && f.types.Types[b.X].Value != nil || f.shifts(b.X) || f.shifts(b.Y))
}

// calls adds calls whose results are not used.
func (f *finding) calls(list []ast.Stmt) {
	for _, statement := range list {
		e, ok := statement.(*ast.ExprStmt)
		if !ok {
			continue
		}
		if call, ok := e.X.(*ast.CallExpr); ok && !isPanic(call) {
			f.add(callLeftOut, e).After = "nothing"
		}
	}
}

// isPanic reports whether a call panics: the compiler may know that nothing follows it.
func isPanic(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

func (f *finding) offset(p token.Pos) int { return f.files.Position(p).Offset }

func (f *finding) add(kind string, n ast.Node) *site {
	s := site{
		source: f.source, File: f.name, Line: f.files.Position(n.Pos()).Line, Function: f.function, Kind: kind,
		from: f.offset(n.Pos()), to: f.offset(n.End()),
	}
	s.Before = string(f.source[s.from:s.to])
	f.found = append(f.found, s)
	return &f.found[len(f.found)-1]
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
