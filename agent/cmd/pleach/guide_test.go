//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The commands of the guides are run as they are printed, in network namespaces that stand
// for machines. Each machine has its own /etc, /run and /var/lib, and an empty directory to
// begin in.

// machine is a network namespace with directories of its own.
type machine struct {
	t       *testing.T
	network *netns.Net
	host    int
	root    string
}

func newMachines(t *testing.T, n int, tools ...string) (machines []*machine) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	network := netns.New(t, n)
	for host := range n {
		network.AddAddress(host, fmt.Sprintf("10.0.0.%d/24", host+1))
		machines = append(machines, newMachine(t, network, host))
	}
	return machines
}

// newMachine makes directories for a machine. Several machines may share a host of the network.
func newMachine(t *testing.T, network *netns.Net, host int) *machine {
	t.Helper()
	m := &machine{t, network, host, t.TempDir()}
	if out, err := exec.Command("cp", "-a", "/etc", m.root+"/etc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dir := range []string{"run", "lib", "srv/files/releases", "home", "etc/pleach"} {
		if err := os.MkdirAll(filepath.Join(m.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// enter mounts the directories of a machine, which only the command's own processes see.
const enter = `mount --bind "$1/etc" /etc && mount --bind "$1/run" /run && mount --bind "$1/lib" /var/lib && mount --bind "$1/srv" /srv && cd "$1/home" && eval "$2"`

func (m *machine) command(line string) *exec.Cmd {
	cmd := m.network.Command(m.host, "bash", "-c", enter, "machine", m.root, line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a command that must succeed.
func (m *machine) run(line string) string {
	m.t.Helper()
	out, err := m.command(line).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

// start starts a command that goes on until the test ends it.
func (m *machine) start(line string) *terminal {
	m.t.Helper()
	c := &terminal{t: m.t, line: line, cmd: m.command("exec " + line)}
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

// terminal is a command that runs, and what it has printed.
type terminal struct {
	t    *testing.T
	line string
	cmd  *exec.Cmd
	in   io.Writer
	once sync.Once
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *terminal) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(b)
}

func (c *terminal) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// kill kills the command, and what it has started.
func (c *terminal) kill() {
	c.once.Do(func() {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		_ = c.cmd.Wait()
	})
}

// await waits until a command has printed something. Meanwhile it does something again and
// again, if that is not nil.
func (c *terminal) await(want func(got string) bool, meanwhile func()) {
	c.t.Helper()
	testutil.Eventually(c.t, "what "+c.line+" is to print", func() bool {
		if want(c.String()) {
			return true
		}
		if meanwhile != nil {
			meanwhile()
		}
		return false
	}, func() any { return c.String() })
}

func contains(text string) func(string) bool {
	return func(got string) bool { return strings.Contains(got, text) }
}

// Three machines come to a group with TLS by the guide.
func TestGuideToThreeMachines(t *testing.T) {
	began := time.Now()
	blocks := testutil.CodeBlocks(t, "../../../docs/guide/agents.md", "Three machines, with TLS")
	if len(blocks) != 4 {
		t.Fatalf("%d code blocks", len(blocks))
	}
	certificates, settings, startAgent, use := blocks[0], blocks[1], blocks[2].Commands()[0], blocks[3].Commands()
	machines := newMachines(t, 3, "openssl", "curl", "bash", "logger", "mount", "cp")
	admin := machines[0]
	admin.run(certificates.Text)
	var agents []*terminal
	for i, m := range machines {
		host := fmt.Sprintf("10.0.0.%d", i+1)
		for from, to := range map[string]string{"ca.pem": "ca.pem", host + ".pem": "agent.pem", host + ".key": "agent.key"} {
			b, err := os.ReadFile(filepath.Join(admin.root, "home", from))
			if err == nil {
				err = os.WriteFile(filepath.Join(m.root, "etc/pleach", to), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(m.root, "etc/pleach/agent.yaml"),
			[]byte(settings.Text+"\nfile-dirs: [/srv/files]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(startAgent.Line, "10.0.0.1") {
			t.Fatalf("%s has no address", startAgent.Line)
		}
		agents = append(agents, m.start(strings.ReplaceAll(startAgent.Line, "10.0.0.1", host)))
	}
	for _, a := range agents {
		a.await(contains("msg=member "), nil)
	}
	useGuide(t, machines, use)
	copyByGuide(t, machines)
	for _, a := range agents {
		if strings.Contains(a.String(), "level=WARN") {
			t.Errorf("an agent warns: %s", a)
		}
	}
	t.Logf("from an empty folder to three machines: %v", time.Since(began))
}

// useGuide runs the commands that talk to agents: those that go on first, on another machine
// than the others.
func useGuide(t *testing.T, machines []*machine, use []testutil.PrintedCommand) {
	here, there := machines[0], machines[2]
	if err := os.WriteFile(filepath.Join(there.root, "home/flush"), []byte("#!/bin/sh\ncat; echo flushed\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	var subscribers []*terminal
	var sender *testutil.PrintedCommand
	for i, c := range use {
		switch {
		case strings.HasPrefix(c.Line, "pleach listen "), strings.HasPrefix(c.Line, "curl -N "):
			subscribers = append(subscribers, there.start(c.Line))
			continue
		case strings.Contains(c.Line, "pleach send"):
			sender = &use[i]
		}
		if got := here.run(c.Line); !c.Says(got) {
			t.Errorf("%s prints %q, want %q", c.Line, got, c.Output)
		}
	}
	if sender == nil || len(subscribers) != 2 {
		t.Fatalf("commands are missing in %+v", use)
	}
	send := func() { here.run(sender.Line) }
	subscribers[0].await(contains("productsflushed"), send)
	subscribers[1].await(contains(`"data":"products"`), send)
	for line, want := range map[string]string{
		"pleach status":     "3 members",
		"pleach query load": "3 of 3 members answered",
	} {
		if got := here.run(line); !strings.Contains(got, want) {
			t.Errorf("%s prints %q", line, got)
		}
	}
}

// copyByGuide copies a file to the machines, in the directories that the guide's setting names.
func copyByGuide(t *testing.T, machines []*machine) {
	t.Helper()
	machines[0].run("echo app >app.tar.gz")
	for _, c := range testutil.CodeBlocks(t, "../../../docs/guide/agents.md", "Copy files to every member")[0].Commands() {
		if got := machines[0].run(c.Line); !c.Says(got) {
			t.Errorf("%s prints %q, want %q", c.Line, got, c.Output)
		}
	}
	for _, m := range machines {
		if got := m.run("cat /srv/files/releases/app.tar.gz"); got != "app\n" {
			t.Errorf("a copy is %q", got)
		}
	}
}

// Three processes on one host begin a group, lose their quorum, and get it back.
func TestGuideOnOneHost(t *testing.T) {
	commands := testutil.CodeBlocks(t, "../../../docs/guide/services.md", "Start all instances alike")[1].Commands()
	host := newMachines(t, 1, "bash", "mount", "cp")[0]
	host.run(commands[0].Line)
	join := func(i int) *terminal {
		listen := strings.Replace(commands[1].Line, "--listen 127.0.0.1:7001", fmt.Sprintf("--listen 127.0.0.1:700%d", i), 1)
		return host.start(strings.Replace(listen, "data1", fmt.Sprintf("data%d", i), 1))
	}
	first, second, third := join(1), join(2), join(3)
	for _, c := range []*terminal{first, second, third} {
		c.await(contains(": 3 members; this is rank "), nil)
	}
	for _, line := range strings.Split(strings.TrimSpace(commands[1].Output), "\n") {
		first.await(testutil.PrintedCommand{Output: line}.Says, nil)
	}
	first.kill()
	second.kill()
	third.await(contains("no quorum"), nil)
	if got := host.run("pleach members 127.0.0.1:7003 --secret-file secret"); !strings.Contains(got, "no quorum") {
		t.Errorf("pleach members prints %q", got)
	}
	join(1).await(contains("2 members"), nil)
	third.await(func(got string) bool {
		return strings.LastIndex(got, "2 members") > strings.LastIndex(got, "no quorum")
	}, nil)
}

// The commands of the README work.
func TestReadmeGroups(t *testing.T) {
	blocks := testutil.CodeBlocks(t, "../../../README.md", "Groups")
	host := newMachines(t, 1, "bash", "mount", "cp")[0]
	host.run(`mkdir bin && ln -s "$(command -v pleach)" bin/pleach`) // as the quick start builds it
	grow := blocks[0].Commands()
	first := host.start(grow[0].Line)
	first.await(contains("view 1"), nil)
	second, watch := host.start(grow[1].Line), host.start(grow[2].Line)
	second.await(contains("view 2"), nil)
	watch.await(contains("view 2"), nil)
	second.await(contains("something"), func() { _, _ = first.in.Write([]byte("something\n")) })
	var all []*terminal
	for i := range 3 { // started alike
		all = append(all, host.start(
			fmt.Sprintf("pleach join --expect 3 --listen 127.0.0.1:700%d 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003", i+1)))
	}
	for _, c := range all {
		c.await(contains(": 3 members"), nil)
	}
}
