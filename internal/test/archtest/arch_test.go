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

// modules are those besides the library's that the rules hold for: library, agent, lab, in one
// direction. The others need cgo, or are bridges to one dependency.
var modules = []string{
	"agent", "contrib/arbiter", "contrib/groupcache", "contrib/grpc", "examples", "lab", "otel", "prom",
}

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
	{pkg: "internal/base/queue", pure: true},
	{pkg: "internal/base/header"},
	{pkg: "topology", pure: true, may: []string{"protocol"}},
	{pkg: "broadcast", pure: true, may: []string{"protocol", "topology"}},
	{pkg: "internal/machine/stream", pure: true, may: []string{
		"protocol", "topology", "broadcast", "internal/base/queue",
		"internal/base/header", "internal/base/wire",
	}},
	{
		pkg: "internal/machine/membership", pure: true,
		may: []string{"protocol", "topology", "broadcast", "internal/base/wire"},
	},
	{pkg: "internal/machine/heartbeat", pure: true, may: []string{"protocol"}},
	{pkg: "internal/machine/detection", pure: true, may: []string{"protocol"}},
	{pkg: "internal/machine/founding", pure: true, may: []string{"protocol", "internal/base/wire"}},
	{pkg: "internal/base/access"},
	{pkg: "internal/machine/control", may: []string{
		"protocol", "internal/base/access", "internal/base/wire",
		"internal/machine/membership", "internal/machine/founding",
	}},
	{pkg: "internal/machine/lifecycle", pure: true, may: []string{
		"protocol", "internal/machine/control",
		"internal/machine/membership", "internal/machine/founding", "internal/machine/member", "internal/machine/heartbeat",
		"internal/machine/unicast", "internal/base/wire",
	}},
	{pkg: "internal/machine/p2p", pure: true, may: []string{
		"protocol", "internal/machine/membership",
		"internal/base/queue", "internal/base/wire",
	}},
	{pkg: "internal/machine/unicast", pure: true, may: []string{
		"protocol", "internal/machine/membership",
		"internal/base/header", "internal/base/queue",
	}},
	{pkg: "internal/machine/freshness", pure: true, may: []string{
		"protocol", "internal/machine/membership",
		"internal/base/wire",
	}},
	{pkg: "internal/machine/member", pure: true, may: []string{
		"protocol", "internal/machine/stream",
		"internal/machine/membership", "internal/machine/heartbeat", "internal/machine/p2p", "internal/machine/detection",
	}},

	// Drivers, and what they stand on.
	{pkg: "logp", may: []string{"protocol", "topology"}},
	{pkg: "internal/driver/timers"},
	{pkg: "internal/driver/rounds", may: []string{
		"protocol", "internal/machine/unicast", "internal/machine/freshness",
		"internal/machine/membership", "internal/machine/stream",
	}},
	{pkg: "internal/driver/node", may: []string{
		"protocol", "transport", "internal/driver/timers", "internal/base/wire",
		"detect",
	}},
	{pkg: "internal/base/wire", may: []string{"protocol"}},
	{pkg: "detect", may: []string{"protocol", "internal/machine/detection"}},
	{pkg: "bootstrap", may: []string{"protocol"}},
	{pkg: "transport", may: []string{"protocol"}},
	{pkg: "transport/mem", may: []string{"protocol", "transport"}},
	{pkg: "transport/fault", may: []string{"protocol", "transport"}},
	{pkg: "internal/driver/tcp", may: []string{
		"protocol", "transport", "internal/driver/admission", "internal/base/wire",
		"internal/base/logsuppress", "internal/base/notify",
	}},

	// Calls block on contexts, so these are no protocols. The engine knows no
	// collective's algorithm, and collective no network.
	{pkg: "internal/collective/loggp"},
	{pkg: "internal/collective/engine", may: []string{
		"internal/collective/loggp", "internal/base/wire",
		"internal/base/notify",
	}},
	{pkg: "collective", may: []string{"internal/collective/engine", "internal/collective/loggp"}},

	// What programs import: puts protocols and driver together.
	{pkg: ".", may: []string{
		"protocol", "topology", "broadcast", "collective", "detect", "bootstrap", "transport", "transport/...",
		"internal/driver/tcp",
		"internal/machine/stream", "internal/machine/membership", "internal/machine/heartbeat", "internal/machine/founding",
		"internal/machine/lifecycle", "internal/machine/control", "internal/machine/p2p", "internal/machine/unicast",
		"internal/machine/member", "internal/collective/engine", "internal/collective/loggp",
		"internal/driver/admission", "internal/driver/node", "internal/base/header", "internal/base/wire",
		"internal/base/notify",
		"internal/base/logsuppress", "internal/driver/prefetch", "internal/driver/job", "internal/driver/operator",
		"internal/driver/datadir",
		"internal/base/access", "internal/driver/client", "internal/driver/rounds", "internal/driver/joining",
		"internal/driver/arbitration", "internal/driver/catchup", "internal/driver/detection",
	}},

	// What a program adds to a group.
	{pkg: "otel", may: []string{"."}, outside: []string{"go.opentelemetry.io/otel"}},
	{pkg: "contrib/arbiter", may: []string{"."}},
	{pkg: "contrib/arbiter/kubernetes/account"},
	{pkg: "contrib/arbiter/kubernetes", may: []string{"contrib/arbiter", "contrib/arbiter/kubernetes/account"}},
	{pkg: "contrib/arbiter/...", may: []string{"contrib/arbiter"}},
	{pkg: "contrib/groupcache", may: []string{"."}, outside: []string{"github.com/mailgun/groupcache/v2"}},
	{pkg: "contrib/grpc", may: []string{"."}, outside: []string{"google.golang.org/grpc"}},
	{
		pkg: "prom", may: []string{".", "lease", "ordered", "replicated", "shard"},
		outside: []string{"github.com/prometheus/client_golang/prometheus"},
	},

	// Many groups as one, from the public API alone.
	{pkg: "internal/machine/relay", pure: true, may: []string{"protocol", "internal/base/header", "internal/base/queue"}},
	{pkg: "internal/machine/backbone", pure: true, may: []string{"protocol"}},
	{pkg: "internal/test/fleetsimulation", tests: true, may: []string{
		"internal/machine/relay", "internal/machine/backbone", "internal/test/testutil",
	}},
	{pkg: "fleet", may: []string{
		".", "internal/machine/relay", "internal/machine/backbone", "internal/base/header", "internal/base/queue",
	}},

	// What services build on a group, from its public API alone.
	{pkg: "internal/services/sequencer", pure: true, may: []string{"internal/base/wire", "protocol"}},
	{pkg: "ordered", may: []string{".", "protocol", "internal/services/sequencer", "internal/base/notify"}},
	{pkg: "internal/services/session", pure: true, may: []string{"internal/base/wire"}},
	{pkg: "replicated", may: []string{".", "ordered", "internal/services/session", "internal/base/notify"}},
	{pkg: "internal/services/leases", pure: true, may: []string{"internal/base/wire", "protocol"}},
	{pkg: "internal/services/tokens", may: []string{"internal/driver/admission"}},
	{pkg: "lease", may: []string{
		".", "replicated", "internal/services/leases", "internal/services/tokens",
		"internal/base/notify",
	}},
	{pkg: "internal/services/handoff", pure: true, may: []string{"protocol"}},
	{pkg: "internal/services/rollouts", pure: true, may: []string{"protocol"}},
	{pkg: "rollout", may: []string{
		".", "protocol", "replicated", "internal/services/rollouts", "internal/base/notify",
	}},
	{pkg: "shard", may: []string{".", "protocol", "internal/services/handoff", "internal/services/tokens"}},

	// What is built on collectives and useful alone.
	{pkg: "samplesort", may: []string{"collective"}},
	{pkg: "checkpoint", may: []string{"collective"}},
	{pkg: "workqueue", may: []string{".", "collective"}},

	// Users of the library. Nothing imports them.
	{pkg: "examples/...", may: []string{anything}, outside: []string{anything}},
	{pkg: "lab/...", may: []string{anything}, outside: []string{anything}},

	// The agent: a member for programs in any language.
	{pkg: "agent/command", outside: []string{"go.yaml.in/yaml/v3"}},
	{pkg: "agent/discover", may: []string{"agent/command", "contrib/arbiter/kubernetes/account"}},
	{
		pkg: "agent/config", may: []string{
			".", "fleet", "internal/driver/admission", "agent/command", "agent/discover",
			"contrib/arbiter/etcd", "contrib/arbiter/file", "contrib/arbiter/kubernetes",
		},
		outside: []string{"go.yaml.in/yaml/v3"},
	},
	{pkg: "agent/gate", outside: []string{"github.com/prometheus/client_model/go"}},
	{pkg: "agent/retention", may: []string{"internal/base/notify", "internal/base/queue"}},
	{pkg: "agent/journal", may: []string{"internal/driver/datadir"}},
	{pkg: "agent/backfill", may: []string{"agent/retention"}},
	{pkg: "agent/kv", may: []string{"internal/base/notify", "internal/base/wire"}},
	{pkg: "agent/limit", may: []string{"internal/driver/admission", "internal/base/notify"}},
	{pkg: "agent/rights", may: []string{"internal/driver/admission"}},
	{pkg: "agent/api", may: []string{
		".", "fleet", "lease", "rollout", "shard", "agent/kv", "agent/limit", "agent/retention",
		"agent/rights", "internal/base/logsuppress", "agent/transfer",
	}},
	{pkg: "agent/client", may: []string{"agent/api", "agent/retention", "agent/transfer"}},
	{pkg: "agent/ui"},
	{
		pkg: "agent/cmd/...", may: []string{
			".", "agent/...", "bootstrap", "collective", "detect", "fleet",
			"internal/driver/admission", "lease", "protocol", "samplesort", "topology", "transport/mem",
		},
		outside: []string{anything},
	},
	{
		pkg: "agent", may: []string{
			".", "detect", "fleet", "lease", "replicated", "rollout", "shard", "prom", "protocol", "topology",
			"agent/...", "internal/driver/datadir", "internal/base/notify", "agent/transfer",
		},
		outside: []string{"github.com/prometheus/client_golang"},
	},

	{pkg: "internal/test/archtest"},
	{pkg: "agent/cli", may: []string{"internal/base/wire"}, outside: []string{"github.com/spf13/cobra"}},
	{
		pkg: "agent/cli/clitest", may: []string{"internal/test/prose", "internal/test/testutil"},
		outside: []string{"github.com/rogpeppe/go-internal/testscript", "github.com/spf13/cobra"},
	},
	{pkg: "agent/launch", may: []string{"internal/driver/admission"}},
	{pkg: "internal/test/netns"},
	{pkg: "agent/test/security", may: []string{anything}},
	{pkg: "internal/test/testutil"},
	{pkg: "internal/test/prose"},
	{pkg: "internal/base/notify"},
	{pkg: "internal/test/faults"},
	{
		pkg: "internal/test/simulation", tests: true,
		may: []string{
			"internal/test/testutil", "protocol", "internal/machine/control", "internal/machine/founding",
			"internal/machine/lifecycle", "internal/machine/member", "internal/machine/membership", "internal/machine/stream",
			"internal/machine/heartbeat", "internal/machine/detection", "internal/machine/p2p", "internal/machine/unicast",
			"internal/base/wire", "internal/services/sequencer", "internal/services/session", "internal/services/leases",
			"internal/services/handoff", "internal/services/rollouts",
		},
	},
	{pkg: "internal/driver/admission", may: []string{"internal/base/access"}},
	{pkg: "internal/driver/prefetch"},
	{pkg: "internal/driver/datadir", may: []string{
		"internal/driver/admission", "internal/machine/membership",
		"internal/base/wire",
	}},
	{pkg: "internal/driver/client", may: []string{
		"internal/base/access", "transport", "internal/driver/tcp",
		"internal/machine/control", "internal/driver/admission", "internal/base/logsuppress", "internal/machine/founding",
		"internal/machine/membership",
	}},
	{pkg: "internal/driver/operator", may: []string{
		"internal/driver/client", "internal/machine/control",
		"internal/machine/membership",
	}},
	{pkg: "internal/driver/detection", may: []string{
		"protocol", "detect", "transport", "internal/driver/tcp",
		"internal/machine/membership", "internal/machine/member", "internal/machine/detection",
	}},
	{pkg: "internal/driver/arbitration", may: []string{"protocol", "internal/machine/membership"}},
	{pkg: "internal/driver/joining", may: []string{
		"internal/driver/arbitration",
		"protocol", "detect", "transport", "internal/driver/tcp", "internal/machine/lifecycle", "internal/machine/control",
		"internal/machine/member", "internal/machine/membership", "internal/machine/heartbeat",
		"internal/driver/client", "internal/base/logsuppress", "internal/driver/datadir", "internal/driver/node",
		"internal/base/notify", "internal/driver/detection",
	}},
	{pkg: "internal/driver/catchup", may: []string{
		"internal/base/access", "protocol", "internal/driver/client",
		"internal/machine/control", "internal/base/logsuppress", "internal/machine/lifecycle", "internal/machine/member",
		"internal/machine/membership",
	}},
	{pkg: "internal/driver/job", may: []string{
		"protocol", "internal/driver/admission", "internal/collective/engine",
		"internal/machine/membership", "internal/machine/p2p", "internal/base/notify",
	}},
	{pkg: "internal/base/logsuppress"},
	{pkg: "agent/ps", may: []string{".", "bootstrap", "collective"}},
	{pkg: "agent/transfer", may: []string{".", "internal/base/notify"}},
}

// impure are the standard packages, with all below them, that would let a
// protocol see or change the world outside its machine. A protocol that needs
// randomness is given a seed or a source.
var impure = []string{
	"crypto/rand", "log", "math/rand", "net", "os", "runtime", "sync", "syscall", "time", "unsafe",
}

func TestModuleKeepsItsArchitecture(t *testing.T) {
	root := os.DirFS("../../..")
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
			complain(f.Package, "package %q has no line in the rules of internal/test/archtest: add one that says what it may import", pkg)
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
	if base == "testdata" || base == "vendor" || base == "node_modules" || strings.HasPrefix(base, ".") ||
		strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil && !slices.Contains(modules, dir)
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
				complain(spec.Pos(), "package %q may not import %q: besides the standard library and this module, only %q", r.pkg,
					imported, r.outside)
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
		{
			"an arrow up in a package of tests", "internal/test/simulation/a_test.go", `import "github.com/pleach-go/pleach"`,
			`may not import "."`,
		},
		{"an arrow up", "topology/a.go", `import "github.com/pleach-go/pleach/broadcast"`, `may not import "broadcast"`},
		{
			"an arrow up under another name", "topology/a.go", `import p "github.com/pleach-go/pleach/broadcast"`,
			`may not import "broadcast"`,
		},
		{
			"the contract knows nobody", "protocol/a.go", `import "github.com/pleach-go/pleach/topology"`,
			`may not import "topology"`,
		},
		{
			"a protocol that knows a driver", "broadcast/a.go", `import "github.com/pleach-go/pleach/logp"`,
			`may not import "logp"`,
		},
		{
			"a protocol that knows the root package", "broadcast/a.go", `import "github.com/pleach-go/pleach"`,
			`may not import "."`,
		},
		{
			"a driver that knows a protocol", "logp/a.go", `import "github.com/pleach-go/pleach/broadcast"`,
			`may not import "broadcast"`,
		},
		{
			"a driver that knows a protocol", "internal/driver/node/a.go",
			`import "github.com/pleach-go/pleach/internal/machine/membership"`, `may not import "internal/machine/membership"`,
		},
		{"a driver's test", "logp/a_test.go", `import "github.com/pleach-go/pleach/broadcast"`, noComplaint},
		{
			"a package below one that is allowed", "internal/driver/node/a.go",
			`import "github.com/pleach-go/pleach/internal/driver/tcp"`, `may not import "internal/driver/tcp"`,
		},
		{
			"the root package picks transports", "a.go", `import "github.com/pleach-go/pleach/internal/driver/tcp"`,
			noComplaint,
		},
		{
			"the root package knows no command", "a.go", `import "github.com/pleach-go/pleach/agent/cmd/pleach"`,
			`may not import "agent/cmd/pleach"`,
		},
		{
			"the command", "agent/cmd/pleach/a.go",
			`import ("github.com/pleach-go/pleach/fleet"; "github.com/spf13/cobra"; "os"; "time")`, noComplaint,
		},
		{
			"the lab in the command", "agent/cmd/pleach/a.go", `import "github.com/pleach-go/pleach/lab/draw"`,
			`may not import "lab/draw"`,
		},
		{
			"the agent in the library", "a.go", `import "github.com/pleach-go/pleach/agent/launch"`,
			`may not import "agent/launch"`,
		},
		{
			"the simulator in the command", "agent/cmd/pleach/a.go", `import "github.com/pleach-go/pleach/logp"`,
			`may not import "logp"`,
		},

		{
			"a dependency of the core", "logp/a.go", `import "github.com/spf13/cobra"`,
			`may not import "github.com/spf13/cobra"`,
		},
		{
			"a module that only starts like ours", "logp/a.go", `import "github.com/pleach-go/pleachier"`,
			`may not import "github.com/pleach-go/pleachier": besides`,
		},
		{"C in the core", "internal/base/wire/a.go", `import "C"`, `may not import "C"`},
		{"the library of metrics", "prom/a.go", `import "github.com/prometheus/client_golang/prometheus"`, noComplaint},
		{
			"the library of metrics in the core", "a.go", `import "github.com/prometheus/client_golang/prometheus"`,
			`may not import "github.com/prometheus/client_golang/prometheus"`,
		},
		{
			"a detector's library", "detect/a.go", `import "github.com/hashicorp/memberlist"`,
			`may not import "github.com/hashicorp/memberlist"`,
		},

		{"a new package", "shrubbery/a.go", ``, `package "shrubbery" has no line in the rules`},
		{"a new package below an old one", "broadcast/gossip/a.go", ``, `package "broadcast/gossip" has no line`},
		{"a test of a new package", "shrubbery/a_test.go", `import "os"`, noComplaint},
		{"test data", "topology/testdata/a.go", `import "os"`, noComplaint},
		{"a hidden folder", ".cache/a.go", `import "os"`, noComplaint},
		{"a module of its own", "nested/a.go", `import "os"`, noComplaint},

		{
			"standard packages without effects", "broadcast/a.go", `import ("errors"; "fmt"; "math/bits"; "slices")`,
			noComplaint,
		},
		{"a clock", "broadcast/a.go", `import "time"`, `may not import "time"`},
		{"a clock in the simulator", "logp/a.go", `import "time"`, noComplaint},
		{"a clock in a file for another system", "topology/a_windows.go", `import "time"`, `may not import "time"`},
		{"randomness", "broadcast/a.go", `import "math/rand/v2"`, `may not import "math/rand/v2"`},
		{"the network", "internal/machine/membership/a.go", `import "net/netip"`, `may not import "net/netip"`},
		{"files", "internal/machine/p2p/a.go", `import "os/signal"`, `may not import "os/signal"`},
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
