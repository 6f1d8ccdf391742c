package archtest

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The page of metrics lists those of package prom and of an agent, as their descriptions in
// the code name them. `make api` writes it.

const metricsPage = "docs/operate/metrics.md"

// metricRow is a metric of the page.
type metricRow struct {
	name, help string
	labels     []string
	histogram  bool
}

func TestMetricsSurfaceIsOnThePage(t *testing.T) {
	fsys := os.DirFS("../../..")
	page, err := fs.ReadFile(fsys, metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	want := page
	for name, rows := range map[string][]metricRow{
		"member":  metricsOf(t, fsys, "prom/metrics.go", "", "group"),
		"order":   metricsOf(t, fsys, "prom/services.go", "orderStats", "group"),
		"replica": metricsOf(t, fsys, "prom/services.go", "NewReplica", "group"),
		"leases":  metricsOf(t, fsys, "prom/services.go", "NewLeases", "group"),
		"shards":  metricsOf(t, fsys, "prom/services.go", "NewShards", "group", "shards"),
		"agent":   append(metricsOf(t, fsys, "agent/metrics.go", ""), metricsOf(t, fsys, "agent/services.go", "")...),
		"fleet":   metricsOf(t, fsys, "agent/fleet_metrics.go", ""),
	} {
		if len(rows) < 4 {
			t.Errorf("%d metrics of %s", len(rows), name)
		}
		want = between(t, metricsPage, want, name, metricTable(rows))
	}
	for file, constant := range map[string]string{
		"agent/api/types.go":  `Warn\w+ += "(\w+)"`,
		"agent/api/limits.go": `reason\w+ += "(\w+)"`,
	} {
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			t.Fatal(err)
		}
		values := regexp.MustCompile(constant).FindAllSubmatch(text, -1)
		if len(values) < 5 {
			t.Errorf("%s has %d values of a label", file, len(values))
		}
		for _, v := range values {
			if !bytes.Contains(page, fmt.Appendf(nil, "`%s`", v[1])) {
				t.Errorf("%s has no value %q of a label", metricsPage, v[1])
			}
		}
	}
	if testutil.RecordAPI.On() {
		if err := os.WriteFile("../../../"+metricsPage, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(page, want) {
		t.Errorf("%s is not what the code says: %s\nrun make api", metricsPage, firstDifference(string(page), string(want)))
	}
}

// Names of metrics in other pages, the dashboard and the alert rules are on the page.
func TestMetricNamesExist(t *testing.T) {
	fsys := os.DirFS("../../..")
	page, err := fs.ReadFile(fsys, metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"deploy/grafana/pleach.json", "deploy/prometheus/rules.yml", "deploy/prometheus/rules_test.yml"}
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/[^a]*/*.md"} { // decisions may name former ones
		names, err := fs.Glob(fsys, pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, names...)
	}
	used := 0
	for _, file := range files {
		if file == "docs/guide/c.md" {
			continue // its names are functions
		}
		text, err := fs.ReadFile(fsys, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricName.FindAllString(string(text), -1) {
			name = strings.TrimSuffix(name, "_bucket")
			used++
			if !bytes.Contains(page, []byte("`"+name+"`")) {
				t.Errorf("%s names the metric %s, which does not exist", file, name)
			}
		}
	}
	if used < 100 {
		t.Errorf("%d names of metrics were found", used)
	}
}

// metricName is a whole name. That of a family of metrics ends in an underscore, or before …
var metricName = regexp.MustCompile(`\bpleach_[a-z_]*[a-z]\b`)

// metricsOf returns the metrics that a file describes, or a function in it.
func metricsOf(t *testing.T, fsys fs.FS, file, function string, common ...string) (rows []metricRow) {
	t.Helper()
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		t.Fatal(err)
	}
	src, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, help ast.Expr, labels ...string) {
		n, h := literal(name), literal(help)
		if strings.Contains(n+h, "…") { // the constructors themselves
			return
		}
		rows = append(rows, metricRow{
			name: "pleach_" + strings.TrimPrefix(n, "pleach_"), help: h,
			labels: append(slices.Clone(common), labels...),
		})
	}
	ast.Inspect(src, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return function == "" || n.Name.Name == function
		case *ast.CallExpr:
			switch fun := n.Fun.(type) {
			case *ast.Ident:
				if len(n.Args) > 2 && slices.Contains([]string{"counter", "gauge", "count", "level"}, fun.Name) {
					add(n.Args[0], n.Args[1])
				}
			case *ast.SelectorExpr:
				if fun.Sel.Name == "NewDesc" {
					add(n.Args[0], n.Args[1], stringsIn(n.Args[2])...)
				}
			}
		case *ast.CompositeLit:
			fields := make(map[string]ast.Expr)
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := kv.Key.(*ast.Ident); ok {
						fields[strings.ToLower(key.Name)] = kv.Value
					}
				}
			}
			if fields["name"] != nil && fields["help"] != nil {
				add(fields["name"], fields["help"], stringsIn(fields["labels"])...)
				rows[len(rows)-1].histogram = fields["delays"] != nil
			}
		}
		return true
	})
	return rows
}

// stringsIn are the elements of a list of strings.
func stringsIn(e ast.Expr) (list []string) {
	if lit, ok := e.(*ast.CompositeLit); ok {
		for _, element := range lit.Elts {
			list = append(list, literal(element))
		}
	}
	return list
}

// metricTable is a table of metrics. Names of counters end in _total, which the linter of
// Prometheus checks in the tests of package prom.
func metricTable(rows []metricRow) string {
	var b strings.Builder
	b.WriteString("| name | type | labels | meaning |\n|---|---|---|---|\n")
	for _, r := range rows {
		kind := "gauge"
		if strings.HasSuffix(r.name, "_total") {
			kind = "counter"
		}
		if r.histogram {
			kind = "histogram"
		}
		labels := ""
		if len(r.labels) > 0 {
			labels = "`" + strings.Join(r.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, kind, cmp.Or(labels, "–"), strings.ReplaceAll(r.help, "|", `\|`))
	}
	return b.String()
}
