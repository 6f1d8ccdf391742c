package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The page of settings has what the code says of each: the comments of Config and its groups,
// and the flags of an agent. `make api` writes it anew.

const settingsPage = "docs/operate/settings.md"

// groups are the fields of Config that are structs, and their types.
var groups = []string{"Network", "Security", "Detection", "Recovery", "Delivery", "Limits", "Job"}

// maxConfig is how many settings a reader can take in at once.
const maxConfig = 26

func TestConfigIsGrouped(t *testing.T) {
	root := parsed(t, os.DirFS("../../.."), ".")
	for _, of := range append([]string{"Config"}, groups...) {
		var n int
		for _, f := range fieldsOf(root, of) {
			n += len(f.Names)
		}
		if n == 0 || n > maxConfig {
			t.Errorf("%s has %d fields, want 1 to %d: put those that belong together in a group", of, n, maxConfig)
		}
	}
}

func TestSettingsPageIsTheCode(t *testing.T) {
	fsys := os.DirFS("../../..")
	page, err := fs.ReadFile(fsys, settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	root := parsed(t, fsys, ".")
	want := page
	tables := map[string]string{
		"Config": fieldRows(root, "Config", "Config."),
		"agent":  agentRows(parsed(t, fsys, "agent/cmd/pleach")),
	}
	for _, group := range groups {
		tables[group] = fieldRows(root, group, "Config."+group+".")
	}
	for name, rows := range tables {
		if strings.Count(rows, "\n") < 3 {
			t.Errorf("%d settings of %s", strings.Count(rows, "\n"), name)
		}
		if strings.Contains(rows, noComment) {
			t.Errorf("a setting of %s has no comment: %s", name, rows)
		}
		want = between(t, settingsPage, want, name, "| setting | default | description |\n|---|---|---|\n"+rows)
	}
	if testutil.RecordAPI.On() {
		if err := os.WriteFile("../../../"+settingsPage, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, want) {
		t.Errorf("%s is not what the code says: %s\nrun make api", settingsPage, firstDifference(string(page), string(want)))
	}
}

func TestSettingsWithoutCommentsAreFound(t *testing.T) {
	fsys := os.DirFS("testdata/settings")
	const want = "| `A`, `B` | – | both, [T](x) and `p.U` \\| more |\n| `C` | – | **no comment** |\n" +
		"| `D` | 1.5 s, or more | D is a time. If negative, none. |\n| `E` | false | E does. If false, it does not. |\n"
	if got := fieldRows(parsed(t, fsys, "."), "Config", ""); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// between replaces the lines between the marks of a table in a page.
func between(t *testing.T, path string, page []byte, name, lines string) []byte {
	t.Helper()
	begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->", name)
	before, rest, found := bytes.Cut(page, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no marks of %s", path, name)
	}
	return bytes.Join([][]byte{before, begin, []byte(lines), end, after}, nil)
}

// fieldRows returns a row for each comment of a struct's fields, which may be of several.
func fieldRows(files []*ast.File, of, prefix string) string {
	var b strings.Builder
	var names []string
	fields := fieldsOf(files, of)
	for i, f := range fields {
		names = append(names, "`"+prefix+f.Names[0].Name+"`")
		if i+1 < len(fields) && fields[i+1].Doc == nil && adjacent(f, fields[i+1]) {
			continue // the comment is of the next one, too
		}
		first := fields[i+1-len(names)]
		text, value := zeroValue(plain(first.Doc), f.Type)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(names, ", "), value, text)
		names = nil
	}
	return b.String()
}

// whenZero is the sentence of a comment that names a setting's default.
var whenZero = regexp.MustCompile(`(?:^| )If (?:zero|empty|nil), (?:or [^,]+, )?(.+?)\.( |$)`)

// zeroValue cuts the default of a setting out of its comment.
func zeroValue(text string, kind ast.Expr) (rest, value string) {
	if id, ok := kind.(*ast.Ident); ok && id.Name == "bool" {
		return text, "false"
	}
	m := whenZero.FindStringSubmatchIndex(text)
	if m == nil {
		return text, "–"
	}
	return strings.TrimSpace(text[:m[0]] + " " + text[m[1]:]), text[m[2]:m[3]]
}

// agentDefault is the part of a flag's help that names its default.
var agentDefault = regexp.MustCompile(` \(default ([^)]*)\)`)

// computedDefaults describe the results of functions in the help of flags.
var computedDefaults = map[string]string{
	"DefaultSocket": "/run/pleach/agent.sock for root; for others $XDG_RUNTIME_DIR/pleach/agent.sock or, without that variable, pleach-UID/agent.sock in the directory for temporary files",
}

// agentRows returns a row for each setting of an agent, by the help of its flag.
func agentRows(files []*ast.File) string {
	var b strings.Builder
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "agentSettings" {
				for _, setting := range v.Values[0].(*ast.CompositeLit).Elts {
					texts := setting.(*ast.CompositeLit).Elts
					help, value := strings.ReplaceAll(literal(texts[1]), "`", "*"), "–"
					if m := agentDefault.FindStringSubmatch(help); m != nil {
						help, value = strings.Replace(help, m[0], "", 1), m[1]
					}
					fmt.Fprintf(&b, "| `%s` | %s | %s |\n", literal(texts[0]), value, help)
				}
			}
			return true
		})
	}
	return b.String()
}

// literal returns a text of the code. A computed part is its description, or an ellipsis.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && computedDefaults[f.Sel.Name] != "" {
			return computedDefaults[f.Sel.Name]
		}
	}
	return "…"
}

// fieldsOf returns the exported fields of a type.
func fieldsOf(files []*ast.File, of string) []*ast.Field {
	return slices.DeleteFunc(slices.Clone(fieldsOfStruct(files, of)), func(f *ast.Field) bool {
		return len(f.Names) > 0 && !f.Names[0].IsExported()
	})
}

// adjacent reports whether no line is between two fields.
func adjacent(a, b *ast.Field) bool { return b.Pos()-a.End() <= 2 }

const noComment = "**no comment**"

// docLinks are doc links of Go comments.
var docLinks = regexp.MustCompile(`\[(\*?[A-Za-z][\w./]*)\]([^(]|$)`)

// plain returns a comment as one line of a table.
func plain(doc *ast.CommentGroup) string {
	if doc == nil {
		return noComment
	}
	text := strings.Join(strings.Fields(doc.Text()), " ")
	return strings.ReplaceAll(docLinks.ReplaceAllString(text, "`$1`$2"), "|", `\|`)
}
