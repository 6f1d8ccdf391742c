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

const module = "github.com/pleach-go/pleach"

// anything, in a rule's list, allows every import of that kind.
const anything = "..."

// A rule says what one package may do. Folders are relative to the module's
// root, and "x/..." stands for everything below x.
type rule struct {
	pkg string
	// may lists the packages of this module that it may import.
	may []string
	// outside lists the modules, and "C", that it may import besides the
	// standard library. The core has none, so that using Pleach costs a program
	// no dependency and no C compiler.
	outside []string
	// tests marks packages that are nothing but tests. What they may import counts for their
	// test files too.
	tests bool
	// pure marks state machines: no I/O, clock, goroutine, randomness of
	// their own, or state outside a value.
	pure bool
}

// rules is the module's layering. Arrows run down only: a protocol never
// imports a driver (logp, node), and no driver knows a protocol by name.
var rules = []rule{
	// Protocols.
	{pkg: "protocol", pure: true},
	{pkg: "internal/queue", pure: true},
	{pkg: "topology", pure: true, may: []string{"protocol"}},
	{pkg: "broadcast", pure: true, may: []string{"protocol", "topology"}},
	{pkg: "internal/stream", pure: true, may: []string{"protocol", "topology", "broadcast", "internal/queue", "internal/wire"}},
	{pkg: "internal/membership", pure: true, may: []string{"protocol", "topology", "broadcast", "internal/wire"}},
	{pkg: "internal/heartbeat", pure: true, may: []string{"protocol"}},
	{pkg: "internal/founding", pure: true, may: []string{"protocol", "internal/wire"}},
	{pkg: "internal/control", may: []string{"protocol", "internal/door", "internal/wire", "internal/membership", "internal/founding"}},
	{pkg: "internal/lifecycle", pure: true, may: []string{"protocol", "internal/control", "internal/membership", "internal/founding", "internal/member", "internal/heartbeat"}},
	{pkg: "internal/p2p", pure: true, may: []string{"protocol", "internal/membership", "internal/queue", "internal/wire"}},
	{pkg: "internal/direct", pure: true, may: []string{"protocol", "internal/membership", "internal/queue"}},
	{pkg: "internal/freshness", pure: true, may: []string{"protocol", "internal/membership", "internal/wire"}},
	{pkg: "internal/member", pure: true, may: []string{"protocol", "internal/stream", "internal/membership", "internal/heartbeat", "internal/p2p"}},

	// Drivers, and what they stand on.
	{pkg: "logp", may: []string{"protocol", "topology"}},
	{pkg: "internal/alarm"},
	{pkg: "internal/current", may: []string{"protocol", "internal/direct", "internal/freshness", "internal/membership", "internal/stream"}},
	{pkg: "internal/node", may: []string{"protocol", "transport", "internal/alarm", "internal/wire", "detect"}},
	{pkg: "internal/wire", may: []string{"protocol"}},
	{pkg: "detect", may: []string{"protocol"}},
	{pkg: "bootstrap", may: []string{"protocol"}},
	{pkg: "transport", may: []string{"protocol"}},
	{pkg: "transport/mem", may: []string{"protocol", "transport"}},
	{pkg: "transport/fault", may: []string{"protocol", "transport"}},
	{pkg: "transport/tcp", may: []string{"protocol", "transport", "internal/door", "internal/wire", "internal/dedup", "internal/notify"}},

	// Calls block on contexts, so these are no protocols. The engine knows no
	// collective's algorithm, and collective no network.
	{pkg: "internal/collective/loggp"},
	{pkg: "internal/collective/engine", may: []string{"internal/collective/loggp", "internal/wire", "internal/notify"}},
	{pkg: "collective", may: []string{"internal/collective/engine", "internal/collective/loggp"}},

	// What programs import: puts protocols and driver together.
	{pkg: ".", may: []string{
		"protocol", "topology", "broadcast", "collective", "detect", "bootstrap", "transport", "transport/...",
		"internal/stream", "internal/membership", "internal/heartbeat", "internal/founding", "internal/lifecycle", "internal/control", "internal/p2p", "internal/direct", "internal/member", "internal/collective/engine", "internal/collective/loggp",
		"internal/door", "internal/node", "internal/wire", "internal/notify", "internal/dedup", "internal/prefetch", "internal/job", "internal/operator", "internal/folder",
		"internal/client", "internal/current", "internal/entry", "internal/catchup", "internal/peers",
	}},

	// What a program adds to a group.
	{pkg: "prom", may: []string{".", "lease", "ordered", "replicated", "shard"}, outside: []string{"github.com/prometheus/client_golang/prometheus"}},

	// Many groups as one, from the public API alone.
	{pkg: "fleet/internal/relay", pure: true, may: []string{"protocol", "internal/queue"}},
	{pkg: "fleet/internal/simulation", tests: true, may: []string{"fleet/internal/relay", "internal/testutil"}},
	{pkg: "fleet", may: []string{".", "fleet/internal/relay", "internal/queue"}},

	// What services build on a group, from its public API alone.
	{pkg: "internal/services/sequencer", pure: true, may: []string{"internal/wire", "protocol"}},
	{pkg: "ordered", may: []string{".", "protocol", "internal/services/sequencer", "internal/notify"}},
	{pkg: "internal/services/session", pure: true, may: []string{"internal/wire"}},
	{pkg: "replicated", may: []string{".", "ordered", "internal/services/session", "internal/notify"}},
	{pkg: "internal/services/leases", pure: true, may: []string{"internal/wire", "protocol"}},
	{pkg: "internal/services/tokens", may: []string{"internal/door"}},
	{pkg: "lease", may: []string{".", "replicated", "internal/services/leases", "internal/services/tokens", "internal/notify"}},
	{pkg: "internal/services/handoff", pure: true, may: []string{"protocol"}},
	{pkg: "shard", may: []string{".", "protocol", "internal/services/handoff", "internal/services/tokens"}},

	// What is built on collectives and useful alone.
	{pkg: "samplesort", may: []string{"collective"}},
	{pkg: "checkpoint", may: []string{"collective"}},
	{pkg: "workqueue", may: []string{".", "collective"}},
	{pkg: "internal/tpch"},

	// Users of the library. Nothing imports them.
	{pkg: "bench/...", may: []string{anything}, outside: []string{anything}},
	{pkg: "cmd/...", may: []string{anything}, outside: []string{anything}},
	{pkg: "examples/...", may: []string{anything}, outside: []string{anything}},

	// The agent: a member for programs in any language.
	{pkg: "internal/agent/command", outside: []string{"go.yaml.in/yaml/v3"}},
	{pkg: "internal/agent/discover", may: []string{"internal/agent/command"}},
	{pkg: "internal/agent/config", may: []string{".", "fleet", "internal/door", "internal/agent/command", "internal/agent/discover"}, outside: []string{"go.yaml.in/yaml/v3"}},
	{pkg: "internal/agent/retain", may: []string{"internal/notify", "internal/queue"}},
	{pkg: "internal/agent/journal", may: []string{"internal/folder"}},
	{pkg: "internal/agent/backfill", may: []string{"internal/agent/retain"}},
	{pkg: "internal/agent/kv", may: []string{"internal/notify", "internal/wire"}},
	{pkg: "internal/agent/limit", may: []string{"internal/door", "internal/notify"}},
	{pkg: "internal/agent/rights", may: []string{"internal/door"}},
	{pkg: "internal/agent/api", may: []string{".", "fleet", "lease", "shard", "internal/agent/kv", "internal/agent/limit", "internal/agent/retain", "internal/agent/rights", "internal/dedup", "internal/transfer"}},
	{pkg: "internal/agent/client", may: []string{"internal/agent/api", "internal/agent/retain", "internal/transfer"}},
	{pkg: "internal/agent/ui"},
	{pkg: "internal/agent", may: []string{".", "detect", "fleet", "lease", "replicated", "shard", "prom", "protocol", "topology", "internal/agent/...", "internal/folder", "internal/notify", "internal/transfer"}, outside: []string{"github.com/prometheus/client_golang"}},

	{pkg: "internal/archtest", may: []string{"internal/figures"}},
	{pkg: "internal/figures"},
	{pkg: "internal/figures/measure", may: []string{"internal/figures", "internal/bench/..."}},
	{pkg: "internal/bench/...", may: []string{anything}, outside: []string{anything}},
	{pkg: "internal/cli", may: []string{"internal/wire"}, outside: []string{"github.com/spf13/cobra"}},
	{pkg: "internal/cli/clitest", may: []string{"internal/testutil"}, outside: []string{"github.com/rogpeppe/go-internal/testscript", "github.com/spf13/cobra"}},
	{pkg: "internal/chart", outside: []string{anything}},
	{pkg: "internal/launch", may: []string{"internal/door"}},
	{pkg: "internal/experiments/...", may: []string{anything}, outside: []string{anything}},
	{pkg: "internal/draw", may: []string{"protocol", "topology", "logp"}},
	{pkg: "internal/netns"},
	{pkg: "internal/security", may: []string{anything}},
	{pkg: "internal/testutil"},
	{pkg: "internal/notify"},
	{pkg: "internal/trouble"},
	{pkg: "internal/simulation", tests: true, may: []string{"internal/testutil", "protocol", "internal/control", "internal/founding", "internal/lifecycle", "internal/member", "internal/membership", "internal/stream", "internal/heartbeat", "internal/p2p", "internal/direct", "internal/wire", "internal/services/sequencer", "internal/services/session", "internal/services/leases", "internal/services/handoff"}},
	{pkg: "internal/door"},
	{pkg: "internal/prefetch"},
	{pkg: "internal/folder", may: []string{"internal/door", "internal/membership", "internal/wire"}},
	{pkg: "internal/client", may: []string{"transport", "transport/tcp", "internal/control", "internal/door", "internal/dedup", "internal/founding", "internal/membership"}},
	{pkg: "internal/operator", may: []string{"internal/client", "internal/control", "internal/membership"}},
	{pkg: "internal/peers", may: []string{"protocol", "detect", "transport", "transport/tcp", "internal/membership"}},
	{pkg: "internal/entry", may: []string{
		"protocol", "detect", "transport", "transport/tcp", "internal/lifecycle", "internal/control", "internal/member", "internal/membership", "internal/heartbeat",
		"internal/client", "internal/dedup", "internal/folder", "internal/node", "internal/notify", "internal/peers",
	}},
	{pkg: "internal/catchup", may: []string{"protocol", "internal/client", "internal/control", "internal/dedup", "internal/door", "internal/founding", "internal/member", "internal/membership"}},
	{pkg: "internal/job", may: []string{"protocol", "internal/door", "internal/collective/engine", "internal/membership", "internal/p2p", "internal/notify"}},
	{pkg: "internal/dedup"},
	{pkg: "internal/ps", may: []string{".", "bootstrap", "collective"}},
	{pkg: "internal/transfer", may: []string{".", "internal/notify"}},
}

// impure are the standard packages, with all below them, that would let a
// protocol see or change the world outside its machine. A protocol that needs
// randomness is given a seed or a source.
var impure = []string{
	"crypto/rand", "log", "math/rand", "net", "os", "runtime", "sync", "syscall", "time", "unsafe",
}

func TestModuleKeepsItsArchitecture(t *testing.T) {
	root := os.DirFS("../..")
	packages, complaints := check(t, root, rules)
	for _, c := range complaints {
		t.Error(c)
	}
	// Looking in the wrong place would find nothing wrong.
	if !slices.Contains(packages, "protocol") {
		t.Errorf("package protocol was not looked at; saw only %v", packages)
	}
}

// check looks at every Go file of the module in fsys but tests, which may
// import and do what they like: a driver's tests need protocols to drive. Packages
// that are nothing but tests are held to their rules. Build
// tags are not evaluated, so code for other systems is held to the rules too.
func check(t *testing.T, fsys fs.FS, rules []rule) (packages, complaints []string) {
	t.Helper()
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipped(fsys, name) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		pkg := path.Dir(name)
		r, ok := ruleFor(rules, pkg)
		if strings.HasSuffix(name, "_test.go") && !r.tests {
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

		if !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		complain := func(pos token.Pos, format string, args ...any) {
			complaints = append(complaints, fmt.Sprintf("%s: %s", fset.Position(pos), fmt.Sprintf(format, args...)))
		}
		if !ok {
			complain(f.Package, "package %q has no line in the rules of internal/archtest: add one that says what it may import", pkg)
			return nil
		}
		checkImports(r, f, complain)
		if r.pure {
			checkPure(f, complain)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages, complaints
}

// skipped reports whether the go command too would pass over a folder.
func skipped(fsys fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil // A module of its own.
}

func ruleFor(rules []rule, pkg string) (rule, bool) {
	for _, r := range rules {
		if matches(r.pkg, pkg) {
			return r, true
		}
	}
	return rule{}, false
}

// matches reports whether a folder is the pattern, or below it for "x/...".
func matches(pattern, pkg string) bool {
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return within(above, pkg)
	}
	return pattern == anything || pattern == pkg
}

// within reports whether an import path or folder is parent or below it.
func within(parent, name string) bool {
	return name == parent || strings.HasPrefix(name, parent+"/")
}

type complainer func(pos token.Pos, format string, args ...any)

func checkImports(r rule, f *ast.File, complain complainer) {
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			complain(spec.Pos(), "import %s: %v", spec.Path.Value, err)
			continue
		}
		switch first, _, _ := strings.Cut(imported, "/"); {
		case within(module, imported):
			local := strings.TrimPrefix(imported, module+"/")
			if imported == module {
				local = "."
			}
			if !slices.ContainsFunc(r.may, func(p string) bool { return matches(p, local) }) {
				complain(spec.Pos(), "package %q may not import %q of this module, only %q", r.pkg, local, r.may)
			}
		case imported == "C" || strings.Contains(first, "."):
			if !slices.ContainsFunc(r.outside, func(m string) bool { return m == anything || within(m, imported) }) {
				complain(spec.Pos(), "package %q may not import %q: besides the standard library and this module, only %q", r.pkg, imported, r.outside)
			}
		case r.pure && slices.ContainsFunc(impure, func(p string) bool { return within(p, imported) }):
			complain(spec.Pos(), "package %q is a protocol and may not import %q", r.pkg, imported)
		}
	}
}

// checkPure finds what a protocol may not do and no import gives away.
func checkPure(f *ast.File, complain complainer) {
	for _, decl := range f.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
			checkVars(d, complain)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			complain(n.Pos(), "a protocol starts no goroutine")
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			complain(n.Pos(), "a protocol has no channels")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				complain(n.Pos(), "a protocol has no channels")
			}
		case *ast.CallExpr:
			if name := calledName(n); name == "print" || name == "println" || strings.HasPrefix(name, "fmt.Print") {
				complain(n.Pos(), "a protocol prints nothing")
			}
		}
		return true
	})
}

// checkVars complains of package variables: two machines in one process, or
// two runs of a simulator, must not be able to reach each other. Assertions
// (var _ X = …) hold nothing, and error values are constants in all but name.
func checkVars(d *ast.GenDecl, complain complainer) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec) // The only kind a var declaration has.
		for i, name := range v.Names {
			if name.Name == "_" {
				continue
			}
			if strings.HasPrefix(strings.ToLower(name.Name), "err") && len(v.Values) == len(v.Names) {
				if call, ok := v.Values[i].(*ast.CallExpr); ok {
					if made := calledName(call); made == "errors.New" || made == "fmt.Errorf" {
						continue
					}
				}
			}
			complain(name.Pos(), "a protocol has no package variable (%s): use a constant, a function or a field", name.Name)
		}
	}
}

// calledName returns the name of a called function as written, such as
// "println" or "fmt.Println", or "" for other calls.
func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return x.Name + "." + fun.Sel.Name
		}
	}
	return ""
}

// A check that cannot fail is worth nothing: each rule is broken once.
func TestCheckComplains(t *testing.T) {
	const noComplaint = ""
	for _, c := range []struct {
		about, file, src string
		want             string
	}{
		{"an arrow down", "broadcast/a.go", `import "github.com/pleach-go/pleach/topology"`, noComplaint},
		{"an arrow up in a test", "topology/a_test.go", `import "github.com/pleach-go/pleach/broadcast"`, noComplaint},
		{"an arrow up in a package of tests", "internal/simulation/a_test.go", `import "github.com/pleach-go/pleach"`, `may not import "."`},
		{"an arrow up", "topology/a.go", `import "github.com/pleach-go/pleach/broadcast"`, `may not import "broadcast"`},
		{"an arrow up under another name", "topology/a.go", `import p "github.com/pleach-go/pleach/broadcast"`, `may not import "broadcast"`},
		{"the contract knows nobody", "protocol/a.go", `import "github.com/pleach-go/pleach/topology"`, `may not import "topology"`},
		{"a protocol that knows a driver", "broadcast/a.go", `import "github.com/pleach-go/pleach/logp"`, `may not import "logp"`},
		{"a protocol that knows the root package", "broadcast/a.go", `import "github.com/pleach-go/pleach"`, `may not import "."`},
		{"a driver that knows a protocol", "logp/a.go", `import "github.com/pleach-go/pleach/broadcast"`, `may not import "broadcast"`},
		{"a driver that knows a protocol", "internal/node/a.go", `import "github.com/pleach-go/pleach/internal/membership"`, `may not import "internal/membership"`},
		{"a driver's test", "logp/a_test.go", `import "github.com/pleach-go/pleach/broadcast"`, noComplaint},
		{"a package below one that is allowed", "internal/node/a.go", `import "github.com/pleach-go/pleach/transport/tcp"`, `may not import "transport/tcp"`},
		{"the root package picks transports", "a.go", `import "github.com/pleach-go/pleach/transport/tcp"`, noComplaint},
		{"the root package knows no command", "a.go", `import "github.com/pleach-go/pleach/cmd/pleach"`, `may not import "cmd/pleach"`},
		{"the command", "cmd/pleach/a.go", `import ("github.com/pleach-go/pleach/logp"; "github.com/spf13/cobra"; "os"; "time")`, noComplaint},

		{"a dependency of the core", "logp/a.go", `import "github.com/spf13/cobra"`, `may not import "github.com/spf13/cobra"`},
		{"a module that only starts like ours", "logp/a.go", `import "github.com/pleach-go/pleachier"`, `may not import "github.com/pleach-go/pleachier": besides`},
		{"C in the core", "internal/wire/a.go", `import "C"`, `may not import "C"`},
		{"the library of metrics", "prom/a.go", `import "github.com/prometheus/client_golang/prometheus"`, noComplaint},
		{"the library of metrics in the core", "a.go", `import "github.com/prometheus/client_golang/prometheus"`, `may not import "github.com/prometheus/client_golang/prometheus"`},
		{"a detector's library", "detect/a.go", `import "github.com/hashicorp/memberlist"`, `may not import "github.com/hashicorp/memberlist"`},

		{"a new package", "shrubbery/a.go", ``, `package "shrubbery" has no line in the rules`},
		{"a new package below an old one", "broadcast/gossip/a.go", ``, `package "broadcast/gossip" has no line`},
		{"a test of a new package", "shrubbery/a_test.go", `import "os"`, noComplaint},
		{"test data", "topology/testdata/a.go", `import "os"`, noComplaint},
		{"a hidden folder", ".cache/a.go", `import "os"`, noComplaint},
		{"a module of its own", "nested/a.go", `import "os"`, noComplaint},

		{"standard packages without effects", "broadcast/a.go", `import ("errors"; "fmt"; "math/bits"; "slices")`, noComplaint},
		{"a clock", "broadcast/a.go", `import "time"`, `may not import "time"`},
		{"a clock in the simulator", "logp/a.go", `import "time"`, noComplaint},
		{"a clock in a file for another system", "topology/a_windows.go", `import "time"`, `may not import "time"`},
		{"randomness", "broadcast/a.go", `import "math/rand/v2"`, `may not import "math/rand/v2"`},
		{"the network", "internal/membership/a.go", `import "net/netip"`, `may not import "net/netip"`},
		{"files", "internal/p2p/a.go", `import "os/signal"`, `may not import "os/signal"`},
		{"a logger", "protocol/a.go", `import "log/slog"`, `may not import "log/slog"`},
		{"locks", "broadcast/a.go", `import "sync/atomic"`, `may not import "sync/atomic"`},
		{"the scheduler", "broadcast/a.go", `import "runtime"`, `may not import "runtime"`},
		{"randomness of the system", "broadcast/a.go", `import "crypto/rand"`, `may not import "crypto/rand"`},
		{"the system", "broadcast/a.go", `import "syscall"`, `may not import "syscall"`},
		{"memory", "broadcast/a.go", `import "unsafe"`, `may not import "unsafe"`},

		{"a goroutine", "broadcast/a.go", `func f() { go f() }`, `starts no goroutine`},
		{"a channel", "broadcast/a.go", `type t struct { c chan int }`, `has no channels`},
		{"sending", "broadcast/a.go", `func f() { g() <- 1 }`, `has no channels`},
		{"receiving", "broadcast/a.go", `func f() { <-g() }`, `has no channels`},
		{"selecting", "broadcast/a.go", `func f() { select {} }`, `has no channels`},
		{"a goroutine in the simulator", "logp/a.go", `func f(c chan int) { go f(c) }`, noComplaint},
		{"printing", "broadcast/a.go", `import "fmt"; func f() { fmt.Println() }`, `prints nothing`},
		{"printing for debugging", "broadcast/a.go", `func f() { println() }`, `prints nothing`},
		{"formatting", "broadcast/a.go", `import "fmt"; func f() string { return fmt.Sprint() }`, noComplaint},

		{"a package variable", "topology/a.go", `var table = []int{1}`, `no package variable (table)`},
		{"one in a group", "topology/a.go", `var ( _ = 1; cache map[int]int )`, `no package variable (cache)`},
		{"one that looks like an error", "topology/a.go", `var errCount int`, `no package variable (errCount)`},
		{"one that is set to an error", "topology/a.go", `var last = errors.New("x")`, `no package variable (last)`},
		{"errors", "topology/a.go", `var ( ErrA = errors.New("a"); errB = fmt.Errorf("b: %w", ErrA) )`, noComplaint},
		{"an assertion", "topology/a.go", `var _ fmt.Stringer = T(0)`, noComplaint},
		{"constants and local variables", "topology/a.go", `const c = 1; func f() { var v int; _ = v }`, noComplaint},
		{"a package variable in the simulator", "logp/a.go", `var table = []int{1}`, noComplaint},
	} {
		fsys := fstest.MapFS{
			c.file:          {Data: []byte("package p; " + c.src)},
			"nested/go.mod": {},
		}
		_, complaints := check(t, fsys, rules)
		switch {
		case c.want == noComplaint:
			if len(complaints) != 0 {
				t.Errorf("%s: %s: %s\nunexpected complaints: %q", c.about, c.file, c.src, complaints)
			}
		case len(complaints) != 1 || !strings.Contains(complaints[0], c.want):
			t.Errorf("%s: %s: %s\ncomplaints %q, want one with %q", c.about, c.file, c.src, complaints, c.want)
		}
	}
}

// The first rule that matches counts, so none may hide another, and a list may
// only name packages that have rules: a typo would forbid in silence.
func TestRulesAreConsistent(t *testing.T) {
	for i, r := range rules {
		if first, _ := ruleFor(rules[:i], r.pkg); first.pkg != "" {
			t.Errorf("rule %q is hidden by %q", r.pkg, first.pkg)
		}
		for _, m := range r.may {
			if m == anything {
				continue
			}
			if _, ok := ruleFor(rules, strings.TrimSuffix(m, "/...")); !ok {
				t.Errorf("rule %q allows %q, which has no rule", r.pkg, m)
			}
		}
	}
}
