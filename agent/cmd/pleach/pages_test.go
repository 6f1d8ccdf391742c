//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// repository is its path from here.
const repository = "../../.."

// blockID names a block of shell commands: a page, a heading, and the number of the block below it.
type blockID struct {
	page, heading string
	index         int
}

// pasted are blocks that one shell runs, one after the other and without a pause, as a reader
// pastes them into a terminal.
type pasted struct {
	name     string
	checkout bool // the shell is in a clone of this repository, else in an empty directory
	module   bool // the directory is a Go module that requires this one
	full     bool // it takes long, or builds much
	needs    []string
	files    map[string]blockID // Go samples that the page has the reader save
	blocks   []blockID
	eventual string // printed by commands in the background
	numpy    bool   // pip gets it, and has no network in the test: numpy of the system's Python stands in
}

var pastedBlocks = []pasted{
	{name: "readme", full: true, needs: []string{"git"}, blocks: []blockID{{"README.md", "Quick start", 0}}},
	{
		name: "agents", blocks: []blockID{{"docs/guide/agents.md", "The first broadcast", 0}},
		eventual: "[127.0.0.1:7000] products",
	},
	{name: "locks", needs: []string{"curl", "jq"}, blocks: []blockID{
		{"docs/guide/locks.md", "The first lock", 0},
		{"docs/guide/locks.md", "Keys", 0},
		{"docs/guide/locks.md", "By HTTP", 0},
		{"docs/guide/locks.md", "Shards by HTTP", 0},
	}},
	{
		name: "job", module: true, needs: []string{"git"},
		files:  map[string]blockID{"sum.go": {"docs/guide/jobs.md", "A complete job", 0}},
		blocks: []blockID{{"docs/guide/jobs.md", "A complete job", 0}},
	},
	{name: "takeover", checkout: true, needs: []string{"git"}, blocks: []blockID{{"docs/guide/jobs.md", "Takeover", 0}}},
	{name: "sort", blocks: []blockID{{"docs/guide/sort.md", "Sort", 0}, {"docs/guide/sort.md", "Sort", 1}}},
	{name: "tutorial", checkout: true, full: true, needs: []string{"git", "curl", "openssl"}, blocks: []blockID{
		{"docs/guide/tutorial.md", "Run three instances", 0},
		{"docs/guide/tutorial.md", "Run three instances", 1},
		{"docs/guide/tutorial.md", "Run three instances", 2},
		{"docs/guide/tutorial.md", "Kill an instance", 0},
		{"docs/guide/tutorial.md", "Health and metrics", 0},
		{"docs/guide/tutorial.md", "Rolling upgrade", 0},
		{"docs/guide/tutorial.md", "Rolling upgrade", 1},
		{"docs/guide/tutorial.md", "Rolling upgrade", 2},
	}},
	{name: "c", checkout: true, full: true, needs: []string{"git", "gcc", "pkg-config", "make"}, blocks: []blockID{
		{"docs/guide/c.md", "C library: libpleach", 0},
	}},
	{name: "python", full: true, needs: []string{"git", "gcc", "make"}, numpy: true, blocks: []blockID{
		{"docs/guide/python.md", "Install", 0},
		{"docs/guide/python.md", "State of a dead rank", 0},
	}},
}

// otherBlocks are blocks of pages that other tests run, or the reasons why none does.
var otherBlocks = map[blockID]string{
	{"README.md", "Quick start", 1}:                           "no test: it installs a published version",
	{"README.md", "Groups", 0}:                                "TestReadmeGroups",
	{"docs/guide/agents.md", "Three machines, with TLS", 0}:   "TestGuideToThreeMachines",
	{"docs/guide/agents.md", "Three machines, with TLS", 1}:   "TestGuideToThreeMachines",
	{"docs/guide/agents.md", "Three machines, with TLS", 2}:   "TestGuideToThreeMachines",
	{"docs/guide/agents.md", "Copy files to every member", 0}: "TestGuideToThreeMachines",
	{"docs/guide/fleet.md", "Agents at three sites", 0}:       "TestFleetOfAgents",
	{"docs/guide/fleet.md", "Agents at three sites", 1}:       "TestFleetOfAgents",
	{"docs/guide/fleet.md", "Try it", 0}:                      "TestGuideToFleets",
	{
		"docs/guide/jobs-hosts.md",
		"Start", 0,
	}: "no test: it needs three hosts; TestRunEndsWithTheJob starts such a job on one",
	{"docs/guide/jobs-hosts.md", "Start", 1}:                   "no test: it needs two hosts and Open MPI",
	{"docs/guide/jobs.md", "Job status", 0}:                    "TestPs",
	{"docs/guide/python.md", "First program", 0}:               "test_tutorial_runs_as_printed",
	{"docs/guide/python.md", "Takeover and replacements", 0}:   "test_tutorial_runs_as_printed",
	{"docs/guide/python-agent.md", "Install", 0}:               "test_wheel_of_the_agent",
	{"docs/guide/services.md", "Guide for services", 0}:        "no test: it gets a published version",
	{"docs/guide/services.md", "Start all instances alike", 0}: "TestGuideOnOneHost",
	{"docs/guide/sql.md", "Fault-tolerant SQL with DuckDB", 0}: "TestGuideToSQL",
	{"docs/guide/sql.md", "Your own tables", 0}:                "TestGuideToSQL",
	{"docs/guide/sql.md", "Query plans", 0}:                    "TestGuideToSQL",
}

// pastedPages are the pages whose blocks of shell commands are all run, or have a reason.
func pastedPages(t *testing.T) []string {
	t.Helper()
	guides, err := filepath.Glob(repository + "/docs/guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"README.md"}
	for _, guide := range guides {
		pages = append(pages, "docs/guide/"+filepath.Base(guide))
	}
	return pages
}

// Every block of the README and the guides that a reader may paste is run by a test.
func TestAllBlocksArePasted(t *testing.T) {
	known := make(map[blockID]bool)
	for _, p := range pastedBlocks {
		for _, id := range p.blocks {
			known[id] = false
		}
	}
	names := testNames(t)
	for id, by := range otherBlocks {
		known[id] = false
		if !strings.HasPrefix(by, "no test: ") && !names[by] {
			t.Errorf("%v is run by %s, which is not a test", id, by)
		}
	}
	for _, page := range pastedPages(t) {
		for _, b := range testutil.ShellBlocks(t, filepath.Join(repository, page)) {
			id := blockID{page, b.Heading, b.Index}
			if _, ok := known[id]; !ok {
				t.Errorf("no test runs block %d of %q in %s: add it to pastedBlocks", b.Index, b.Heading, page)
			}
			known[id] = true
		}
	}
	for id, found := range known {
		if !found {
			t.Errorf("%v is not on the page", id)
		}
	}
}

// testNames are the names of all tests of this repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("grep", "-rhoE", `^(func|def) (Test|test_)\w+`, "--include=*_test.go", "--include=test_*.py",
		repository).Output()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, words := range slices.Collect(strings.Lines(string(out))) {
		names[strings.Fields(words)[1]] = true
	}
	return names
}

// Readers may paste the blocks of a page, one after the other, and with PLEACH_FULL they do so twice
// in a row. Each run begins in a new directory, and ends what it has started.
func TestPastedBlocks(t *testing.T) {
	for _, p := range pastedBlocks {
		t.Run(p.name, func(t *testing.T) {
			if p.full && !testutil.Full.On() {
				t.Skip("it takes long: make pages-test")
			}
			rounds := 1
			if testutil.Full.On() {
				rounds = 2
			}
			for range rounds {
				p.run(t)
			}
		})
	}
}

func (p *pasted) run(t *testing.T) {
	t.Helper()
	host := newMachines(t, 1, append([]string{"bash", "mount", "cp"}, p.needs...)...)[0]
	began := time.Now()
	home := filepath.Join(host.root, "home")
	if slices.Contains(p.needs, "git") {
		clone(t, filepath.Join(host.root, "origin"))
	}
	if p.checkout {
		out, err := exec.Command("git", "clone", "-q", filepath.Join(host.root, "origin"),
			filepath.Join(home, "pleach")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		home = filepath.Join(home, "pleach")
	}
	if p.module {
		text := "module example.com/job\n\ngo 1.26\n\nrequire github.com/pleach-go/pleach v0.1.0\n\nreplace github.com/pleach-go/pleach => " + filepath.Join(host.root, "origin") + "\n"
		if err := os.WriteFile(filepath.Join(home, "go.mod"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, id := range p.files {
		if err := os.WriteFile(filepath.Join(home, file), []byte(sample(t, id)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var env []string
	if p.numpy {
		dir, err := exec.Command("/usr/bin/python3",
			"-c", "import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))").Output()
		if err != nil {
			t.Skip("no numpy of the system's Python")
		}
		env = []string{"PIP_NO_DEPS=1", "PIP_NO_INDEX=1", "PYTHONPATH=" + strings.TrimSpace(string(dir))}
	}
	s := host.shell(p.checkout, env...)
	defer s.kill()
	for _, id := range p.blocks {
		for _, c := range shellCommands(t, id) {
			s.paste(t, c)
		}
	}
	if p.eventual != "" {
		s.await(contains(p.eventual), nil)
	}
	t.Logf("%s: %v", p.name, time.Since(began).Round(time.Millisecond))
}

// clone makes a repository of what is in this one now.
func clone(t *testing.T, dir string) {
	t.Helper()
	const script = `set -e; mkdir "$1"; git ls-files -co --exclude-standard | while read -r f; do [ ! -e "$f" ] || echo "$f"; done | tar -c -T - | tar -x -C "$1"
cd "$1"; git init -q; git add -A; git -c user.name=test -c user.email=test@localhost commit -q -m test`
	cmd := exec.Command("bash", "-c", script, "clone", dir)
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// sample is a Go program of a page.
func sample(t *testing.T, id blockID) string {
	t.Helper()
	for _, b := range testutil.CodeBlocks(t, filepath.Join(repository, id.page), id.heading) {
		if b.Language == "go" {
			return b.Text
		}
	}
	t.Fatalf("%v has no program", id)
	return ""
}

// shellCommands are the commands of a block.
func shellCommands(t *testing.T, id blockID) (commands []testutil.PrintedCommand) {
	t.Helper()
	for _, b := range testutil.ShellBlocks(t, filepath.Join(repository, id.page)) {
		if b.Heading != id.heading || b.Index != id.index {
			continue
		}
		if b.Language == "console" {
			return b.Commands()
		}
		command := ""
		for line := range strings.Lines(b.Text + "\n") {
			command += line
			complete := exec.Command("bash", "-n", "-c", command).Run() == nil
			if complete && !strings.HasSuffix(command, "\\\n") {
				command = strings.TrimSpace(command)
				if command != "" {
					commands = append(commands, testutil.PrintedCommand{Line: command})
				}
				command = ""
			}
		}
		return commands
	}
	t.Fatalf("%v is not on the page", id)
	return nil
}

// reading is a shell that runs commands from its standard input, which they do not see, and prints
// their status after each.
const reading = `exec 9<&0 </dev/null; while IFS= read -r -d '' -u 9 line; do eval "$line" 9<&-; printf '\n\001%d\001\n' $?; done`

// shell starts a shell on a machine, in its clone of the repository or in an empty directory. Its
// clones of the published repository are of this one.
func (m *machine) shell(inClone bool, env ...string) *terminal {
	m.t.Helper()
	script := reading
	if inClone {
		script = "cd pleach; " + script
	}
	c := &terminal{t: m.t, line: "shell", cmd: m.command(script)}
	// both let the build cache serve all clones
	c.cmd.Env = append(append(os.Environ(), env...), "GOFLAGS=-trimpath -buildvcs=false",
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=url."+filepath.Join(m.root, "origin")+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://github.com/pleach-go/pleach",
		"GIT_CONFIG_KEY_1=advice.detachedHead", "GIT_CONFIG_VALUE_1=false")
	c.cmd.Stdout, c.cmd.Stderr = c, c
	in, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	c.in = in
	m.t.Cleanup(c.kill)
	return c
}

var commandStatus = regexp.MustCompile("\n\x01(\\d+)\x01\n")

// paste runs a command, which must succeed and print what the page says. One that goes on until
// it is interrupted is.
func (c *terminal) paste(t *testing.T, command testutil.PrintedCommand) {
	t.Helper()
	began, line := len(c.String()), command.Line
	if strings.Contains(line, "until Ctrl-C") {
		line = fmt.Sprintf("{ %s\n} & sleep 1; kill $!", line)
	}
	if _, err := c.in.Write(append([]byte(line), 0)); err != nil {
		t.Fatalf("%s: %v: %s", command.Line, err, c)
	}
	printed := func() string { return c.String()[began:] }
	var status []string
	ended := testutil.Within(10*time.Minute, func() bool {
		status = commandStatus.FindStringSubmatch(printed())
		return status != nil
	})
	if !ended {
		t.Fatalf("%s: it has not ended after ten minutes: %s", command.Line, printed())
	}
	if status[1] != "0" {
		t.Fatalf("%s: status %s: %s", command.Line, status[1], printed())
	}
	if bytes.Contains([]byte(printed()), []byte("Traceback")) {
		t.Errorf("%s prints a traceback: %s", command.Line, printed())
	}
	// Commands in the background may print later.
	var lacking string
	complete := func() bool {
		var lacks bool
		lacking, lacks = command.Lacks(printed())
		return !lacks
	}
	if !testutil.Within(10*time.Second, complete) {
		t.Errorf("%s prints %s\nwithout %s", command.Line, printed(), lacking)
	}
}
