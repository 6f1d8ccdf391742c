package security

// Every "no" of the tables is tried on members and agents with holes as well: small changes of their
// source, each of which opens some of the cells. A cell whose attempt fails for another reason, such as a
// mistake of the client, would stay closed.
//
// All holes are in one test binary, which is built with an overlay, and are opened by their names.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// hole is a change of the source.
type hole struct {
	name    string
	patches []patch
}

// patch replaces a text that a file of the repository has once. OPEN reports whether the hole is open.
type patch struct{ file, old, new string }

// Files that have several holes.
const (
	authorizerFile  = "internal/driver/admission/authorizer.go"
	certificateFile = "internal/driver/admission/certificate.go"
	tlsFile         = "internal/driver/tcp/tls.go"
	serverFile      = "agent/api/server.go"
)

var holes = []hole{
	// Of members.
	{"group name", []patch{{
		"internal/base/wire/hello.go", "case theirs.Group != h.Group:",
		"case theirs.Group != h.Group && !OPEN:",
	}}},
	{"nonces are told", []patch{{
		"internal/machine/control/observed.go", "if o.Nonce != 0 {",
		"if o.Nonce != 0 && !OPEN {",
	}}},
	{
		"nonces are not compared",
		[]patch{{"internal/driver/tcp/roster.go", "m.Nonce == theirs.Process)", "m.Nonce == theirs.Process || OPEN)"}},
	},
	{"codes", []patch{{
		"internal/base/wire/secret.go", "{ return hmac.Equal(c[:], other[:]) }",
		"{ return OPEN || hmac.Equal(c[:], other[:]) }",
	}}},
	{"secret", []patch{{
		"config.go", "func (c *Config) check(m mode) error {\n	together",
		"func (c *Config) check(m mode) error {\n	if OPEN {\n		c.Security.Secret = nil\n	}\n	together",
	}}},
	{"TLS", []patch{{
		"config.go", "	alone := m == modeCreate || m == modeJoin\n",
		"	alone := m == modeCreate || m == modeJoin\n	if OPEN {\n		c.Security.TLS = nil\n	}\n",
	}}},
	{"authority", []patch{
		{
			tlsFile, "	c.ClientAuth = tls.RequireAndVerifyClientCert\n",
			"	c.ClientAuth = tls.RequireAndVerifyClientCert\n	if OPEN {\n		c.ClientAuth = tls.RequireAnyClientCert\n	}\n",
		},
		{tlsFile, "	return chain[0].Verify(options)", "	if OPEN {\n		return nil, nil\n	}\n	return chain[0].Verify(options)"},
	}},
	{"expiry", []patch{{
		tlsFile, "	c.MinVersion = tls.VersionTLS13\n",
		"	c.MinVersion = tls.VersionTLS13\n	if OPEN {\n		c.Time = planted.Earlier\n	}\n",
	}}},
	{"usage", []patch{{
		tlsFile, "	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil\n",
		"	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil\n	if OPEN {\n		c.ClientAuth, c.VerifyPeerCertificate = tls.RequireAnyClientCert, planted.AnyUsage(c.RootCAs)\n	}\n",
	}}},
	{"groups in URIs", []patch{
		{
			certificateFile, "u.kind == memberURI && u.group == d.Group && (id",
			"u.kind == memberURI && (u.group == d.Group || OPEN) && (id",
		},
		{certificateFile, "	return u.group == group ||", "	return u.group == group || OPEN ||"},
		{authorizerFile, "u.kind == memberURI && u.group == d.Group })", "u.kind == memberURI && (u.group == d.Group || OPEN) })"},
		{
			authorizerFile, "		return slices.Contains(uris, uri{group: d.Group, kind: operatorURI}) ||",
			"		return slices.ContainsFunc(uris, func(u uri) bool { return u.kind == operatorURI && (u.group == d.Group || OPEN) }) ||",
		},
	}},
	{"IDs in URIs", []patch{{certificateFile, "(id == \"\" || u.id == id)\n", "(id == \"\" || u.id == id || OPEN)\n"}}},
	{"names of certificates", []patch{
		{
			certificateFile, "	uris := urisOf(leaf)\n	if len(uris) == 0 {\n		return !d.URIs &&",
			"	uris := urisOf(leaf)\n	if OPEN {\n		return true\n	}\n	if len(uris) == 0 {\n		return !d.URIs &&",
		},
		{
			certificateFile, "	return slices.Contains(urisOf(leaf), uri{group: d.Group, id: id}) ||",
			"	return OPEN || slices.Contains(urisOf(leaf), uri{group: d.Group, id: id}) ||",
		},
		{
			authorizerFile, "	uris := urisOf(leaf)\n	if len(uris) == 0 && d.URIs {",
			"	uris := urisOf(leaf)\n	if OPEN {\n		return true\n	}\n	if len(uris) == 0 && d.URIs {",
		},
	}},
	{"certificates without URIs", []patch{{
		"internal/driver/client/authorizer.go", "d.URIs = !c.HostCertificates &&",
		"d.URIs = !OPEN && !c.HostCertificates &&",
	}}},
	{"hosts of IDs", []patch{{"certificate.go", `	if former != "" &&`, `	if !OPEN && former != "" &&`}}},
	{"right to operate", []patch{{
		"internal/machine/control/right.go", "	return access.Operate, access.Claim{} //",
		"	if OPEN {\n		return access.Observe, access.Claim{}\n	}\n	return access.Operate, access.Claim{} //",
	}}},
	{"right to observe", []patch{
		{
			"certificate.go", "	case claim.Rank == protocol.NoRank:\n",
			"	case claim.Rank == protocol.NoRank && OPEN:\n		return nil\n	case claim.Rank == protocol.NoRank:\n",
		},
		{
			"internal/driver/client/authorizer.go", "	right, claim := control.RightOf(request)\n",
			"	right, claim := control.RightOf(request)\n	if right == access.Observe && OPEN {\n		return request, nil\n	}\n",
		},
	}},
	{
		"certificates of members",
		[]patch{{"certificate.go", "	case known:\n", "	case known && OPEN:\n		return nil\n	case known:\n"}},
	},
	// Of agents.
	{"token-file", []patch{{
		serverFile, "want != nil && subtle.ConstantTimeCompare([]byte(given), []byte(*want)) == 1 {",
		"want != nil && (OPEN || subtle.ConstantTimeCompare([]byte(given), []byte(*want)) == 1) {",
	}}},
	{"no token", []patch{{
		serverFile, "	if !ok && !s.public[pattern] {",
		"	if OPEN {\n		c, ok = &caller{who: \"anybody\", rights: rights.All}, true\n	}\n	if !ok && !s.public[pattern] {",
	}}},
	{"rights", []patch{{"agent/rights/rights.go", "{ return r == Public ||", "{ return OPEN || r == Public ||"}}},
	{"right to audit", []patch{{
		"agent/api/events.go", "callerOf(r), r); err != nil {",
		"callerOf(r), r); err != nil && !OPEN {",
	}}},
	{"mode of the socket", []patch{{
		"agent/listen.go", "	if err := os.Chmod(path, mode); err != nil {",
		"	if OPEN {\n		mode = sharedMode\n	}\n	if err := os.Chmod(path, mode); err != nil {",
	}}},
	{"origins", []patch{{
		serverFile, "	guarded := origins.Handler(h)\n",
		"	guarded := origins.Handler(h)\n	if OPEN {\n		guarded = h\n	}\n",
	}}},
	{"host names", []patch{{serverFile, "!allowedHost(host, names) {", "!OPEN && !allowedHost(host, names) {"}}},
	{"routes at metrics", []patch{
		{serverFile, `		if r.path == "/metrics" ||`, `		if OPEN || r.path == "/metrics" ||`},
		{
			serverFile, "rights: rights.Set(rights.Read)}))",
			"rights: planted.If(OPEN, rights.All, rights.Set(rights.Read))}))",
		},
	}},
	{"handles", []patch{{"agent/locks.go", "hash != \"\" &&\n			subtle", "hash != \"\" && !OPEN &&\n			subtle"}}},
	{"topics of agents", []patch{{
		"agent/calls.go", "	if strings.HasPrefix(topic, config.ReservedTopics) {",
		"	if !OPEN && strings.HasPrefix(topic, config.ReservedTopics) {",
	}}},
	{"internal keys", []patch{{
		"agent/api/keys.go", "	if strings.HasPrefix(r.PathValue(\"key\"), kv.ReservedPrefix) {",
		"	if !OPEN && strings.HasPrefix(r.PathValue(\"key\"), kv.ReservedPrefix) {",
	}}},
}

// plantedSource is what the changed source calls.
const plantedSource = `// Package planted opens holes.
package planted

import (
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"time"
)

var names = strings.Split(os.Getenv("` + holeVariable + `"), ",")

func Open(name string) bool { return slices.Contains(names, name) }

func Earlier() time.Time { return time.Now().Add(-10 * time.Minute) }

func AnyUsage(roots *x509.CertPool) func([][]byte, [][]*x509.Certificate) error {
	return func(raw [][]byte, _ [][]*x509.Certificate) error {
		leaf, err := x509.ParseCertificate(raw[0])
		if err == nil {
			_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		}
		return err
	}
}

func If[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}
`

// opening is a set of holes that are open at a time, and the cells that they open: for each actor, as a
// pattern of path.Match, the first letters of the columns. Cells that are allowed without do not count.
// Some cells have two checks: then a hole in one of them alone opens nothing.
type opening struct {
	holes []string
	opens map[string]string
}

// services are what agents refuse to clients with all rights.
var services = []string{"handles", "topics of agents", "internal keys"}

var openings = []opening{
	{[]string{"group name"}, map[string]string{"none/stranger": "ojmfs"}},
	{[]string{"nonces are told"}, guessing},
	{[]string{"nonces are not compared"}, guessing},
	{[]string{"codes"}, map[string]string{"secret/other group": "ojmfs"}},
	{[]string{"secret"}, map[string]string{"secret/stranger": "ojmfs"}},
	{[]string{"TLS"}, map[string]string{"TLS*/stranger": "ojmfs"}},
	{[]string{"authority"}, map[string]string{"TLS*/other authority": "ojmfs", "TLS*/expired": "ojmfs"}},
	{[]string{"expiry"}, map[string]string{"TLS*/expired": "ojmfs"}},
	{[]string{"usage"}, map[string]string{"TLS*/server usage only": "ojmfs"}},
	{[]string{"groups in URIs"}, map[string]string{
		"TLS hosts/member of another group": "oj", "TLS URIs/other group": "oj",
		"TLS URIs/other group, ID of a member": "omf",
		"TLS URIs/other group's operator":      "of", "TLS URIs/other group's observer": "o",
	}},
	{[]string{"IDs in URIs"}, map[string]string{"TLS*/candidate": "mfs", "TLS URIs/member": "js"}},
	{[]string{"names of certificates"}, map[string]string{
		"TLS*/other host": "mfs", "TLS*/operator": "jms", "TLS*/observer": "jmfs", "TLS*/*other group*": "ojmfs",
		"TLS hosts/member of another group": "ojmfs", "TLS*/candidate": "mfs",
		"TLS URIs/member": "js", "TLS URIs/mesh workload": "ojmfs", "TLS URIs/without names": "ojmfs",
		"TLS URIs/web server*": "ojmfs", "TLS URIs/host called like a member": "ojmfs",
	}},
	{[]string{"certificates without URIs"}, map[string]string{
		"TLS URIs/mesh workload": "o", "TLS URIs/without names": "o", "TLS URIs/web server of the host": "ojmfs",
		"TLS URIs/web server elsewhere": "oj", "TLS URIs/host called like a member": "omfs",
	}},
	{[]string{"hosts of IDs"}, map[string]string{"TLS*/other host": "m"}},
	{[]string{"right to operate"}, map[string]string{"TLS*/other host": "f", "TLS*/candidate": "f", "TLS*/observer": "f"}},
	{[]string{"right to observe"}, map[string]string{
		"TLS hosts/member of another group": "o", "TLS URIs/*other group*": "o", "TLS URIs/mesh workload": "o",
		"TLS URIs/without names": "o", "TLS URIs/web server*": "o", "TLS URIs/host called like a member": "o",
	}},
	{[]string{"certificates of members"}, map[string]string{
		"TLS*/other host": "s", "TLS*/o[pb]*": "s",
		"TLS*/*other group*": "s", "TLS*/candidate": "s", "TLS URIs/m*": "s", "TLS URIs/w*": "s", "TLS URIs/host*": "s",
	}},

	{[]string{"token-file"}, map[string]string{
		"agent*/API client with a wrong token":       "mrsklfoa",
		"agent*/API client with the hash of a token": "mrsklfoa", "agent*/token with*": "mrsklfoa",
	}},
	{[]string{"no token"}, map[string]string{"agent*/API client*": "mrsklfoa"}},
	{[]string{"rights"}, map[string]string{
		"agent with rights-file/another user": "mrsklfoa",
		"agent*/user with*":                   "mrsklfoa", "agent*/group with*": "mrsklfoa", "agent*/token with*": "mrsklfoa",
	}},
	{[]string{"right to audit"}, map[string]string{"agent*/* with the right read": "a"}},
	{[]string{"mode of the socket"}, map[string]string{"agent without rights-file/another user": "pmrsklfoa"}},
	{[]string{"origins"}, map[string]string{"agent*/page of another site*": "sklfo"}},
	{[]string{"host names"}, map[string]string{
		"agent*/page of another host name with*":      "pmrsklfoa",
		"agent*/page of another host name at metrics": "pm",
	}},
	{[]string{"routes at metrics"}, map[string]string{"agent*/reader of metrics*": "rsklfoa"}},
	{[]string{"routes at metrics", "host names"}, map[string]string{"agent*/page of another host name*": "pmrsklfoa"}},

	{[]string{"handles"}, map[string]string{
		"agent*/the agent's user": "u", "agent*/user of*": "u",
		"agent*/API client with the token": "u", "agent*/another user with the token": "u",
		"agent*/* with the right locks": "u",
	}},
	{[]string{"topics of agents"}, map[string]string{
		"agent*/the agent's user": "t", "agent*/user of*": "t",
		"agent*/API client with the token": "t", "agent*/another user with the token": "t",
		"agent*/* with the right send": "t",
	}},
	{[]string{"internal keys"}, map[string]string{
		"agent*/the agent's user": "i", "agent*/user of*": "i",
		"agent*/API client with the token": "i", "agent*/another user with the token": "i",
		"agent*/* with the right keys": "i",
	}},
	{append([]string{"no token"}, services...), map[string]string{"agent*/API client*": "uti"}},
	{append([]string{"rights"}, services...), map[string]string{
		"agent with rights-file/another user": "uti",
		"agent*/* with the right*":            "uti",
	}},
	{
		append([]string{"mode of the socket"}, services...),
		map[string]string{"agent without rights-file/another user": "uti"},
	},
	{append([]string{"origins"}, services...), map[string]string{"agent*/page of another site*": "uti"}},
	{
		append([]string{"routes at metrics", "host names"}, services...),
		map[string]string{"agent*/page of another host name*": "uti", "agent*/reader of metrics*": "uti"},
	},
}

// guessing are the cells where nothing but a nonce is missing.
var guessing = map[string]string{
	"none/who knows the name": "s", "secret/who knows the secret": "s",
	"TLS*/member's host": "s",
}

// cells returns those of the cells that are not allowed, and that an opening opens.
func (o *opening) cells(all []cell) (opened []cell) {
	for _, c := range all {
		i := strings.LastIndexByte(c.name, '/')
		for pattern, columns := range o.opens {
			if ok, err := path.Match(pattern, c.name[:i]); err != nil {
				panic(err)
			} else if ok && !c.may && strings.Contains(columns, c.name[i+1:i+2]) {
				opened = append(opened, c)
				break
			}
		}
	}
	return opened
}

// repository is the directory of the repository, from that of this package.
const repository = "../../.."

// patched returns the changed files, by their paths.
func patched(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, h := range holes {
		for _, p := range h.patches {
			b, err := os.ReadFile(filepath.Join(repository, p.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(b), p.old); n != 1 {
				t.Fatalf("the hole %q is no longer possible: %s has %d times %q", h.name, p.file, n, p.old)
			}
			text := files[p.file]
			if text == "" {
				text = importPlanted(string(b))
			}
			if !strings.Contains(text, p.old) {
				t.Fatalf("two holes change %q in %s", p.old, p.file)
			}
			files[p.file] = strings.Replace(text, p.old,
				strings.ReplaceAll(p.new, "OPEN", fmt.Sprintf("planted.Open(%q)", h.name)), 1)
		}
	}
	return files
}

// packageClause is the line after which a file has its imports.
var packageClause = regexp.MustCompile(`(?m)^package \w+\n`)

func importPlanted(text string) string {
	clause := packageClause.FindString(text)
	return strings.Replace(text, clause, clause+"\nimport \"github.com/pleach-go/pleach/internal/base/planted\"\n", 1)
}

// build builds this package's test with all holes.
func build(t *testing.T) (binary string) {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	write := func(file, text string) {
		changed := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, file)] = changed
	}
	for file, text := range patched(t) {
		write(file, text)
	}
	write("internal/base/planted/planted.go", plantedSource)
	b, err := json.Marshal(overlay)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "holes.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// Each cell that is not allowed is opened by a hole. This test looks at the lists, and
// TestSecurityHolesAreFound builds and tries.
func TestSecurityHolesCoverTheTables(t *testing.T) {
	patched(t)
	all, covered := allCells(t), make(map[string]bool)
	for _, o := range openings {
		for _, name := range o.holes {
			if !slices.ContainsFunc(holes, func(h hole) bool { return h.name == name }) {
				t.Errorf("no hole %q", name)
			}
		}
		cells := o.cells(all)
		if len(cells) == 0 {
			t.Errorf("%q opens nothing", o.holes)
		}
		for _, c := range cells {
			covered[c.name] = true
		}
	}
	for _, h := range holes {
		if !slices.ContainsFunc(openings, func(o opening) bool { return len(o.holes) == 1 && o.holes[0] == h.name }) {
			t.Errorf("the hole %q is not tried alone", h.name)
		}
	}
	no := 0
	for _, c := range all {
		if c.may {
			continue
		}
		no++
		if !covered[c.name] {
			t.Errorf("no hole opens %s", c.name)
		}
	}
	t.Logf("%d cells, %d of them not allowed, %d holes in %d sets", len(all), no, len(holes), len(openings))
}

func allCells(t *testing.T) []cell { return append(cellsOf(networkTable(t)), localCells()...) }

// failed finds the cells that fail in the output of a test.
var failed = regexp.MustCompile(`(?m)^ *--- FAIL: TestSecurity(?:Local)?Table/(\S+)`)

// Each hole is found by each cell that it opens, and without one the same binary has none.
func TestSecurityHolesAreFound(t *testing.T) {
	if !testutil.Full.On() {
		t.Skip("takes minutes: make holes")
	}
	binary, all := build(t), allCells(t)
	var mu sync.Mutex
	found, opened, turn := 0, make(map[string]bool), make(chan struct{}, 3)
	var running sync.WaitGroup
	for _, o := range append(openings,
		opening{holes: []string{"none"}, opens: map[string]string{"*/*": "pmrsklfoautij"}}) {
		running.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			want := o.cells(all)
			got, out := openCells(binary, o.holes, want)
			if o.holes[0] == "none" {
				if len(got) > 0 {
					t.Errorf("without a hole: %s", out)
				}
				return
			}
			missed := 0
			for _, c := range want {
				if !got[strings.ReplaceAll(c.name, " ", "_")] {
					missed++
					t.Errorf("the hole %q is not found by %s", o.holes, c.name)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if missed == 0 {
				found++
			} else {
				t.Logf("%q: %s", o.holes, out)
			}
			for _, c := range want {
				opened[c.name] = true
			}
		})
	}
	running.Wait()
	t.Logf("%d cells, %d of them not allowed, %d holes planted in %d sets, %d sets found", len(all), len(opened),
		len(holes), len(openings), found)
}

// openCells returns the cells of some actors that are open with holes.
func openCells(binary string, holes []string, cells []cell) (open map[string]bool, out []byte) {
	var names [2][]string
	for _, c := range cells {
		for i, part := range strings.Split(c.name, "/")[:2] {
			part = regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_"))
			if !slices.Contains(names[i], part) {
				names[i] = append(names[i], part)
			}
		}
	}
	run := exec.Command(binary, "-test.v", "-test.timeout=5m",
		fmt.Sprintf("-test.run=^TestSecurity(Local)?Table$/^(%s)$/^(%s)$", strings.Join(names[0], "|"),
			strings.Join(names[1], "|")))
	run.Env = append(os.Environ(), holeVariable+"="+strings.Join(holes, ","), string(testutil.Full)+"=")
	out, _ = run.CombinedOutput() // it fails
	open = make(map[string]bool)
	for _, m := range failed.FindAllStringSubmatch(string(out), -1) {
		open[m[1]] = true
	}
	return open, out
}
