//go:build linux

package main

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The incidents of docs/operate/troubleshooting.md happen here to agents on hosts of their own, and what
// is on the screen then is what the page prints.

// incident is a group of agents, db1, db2 and so on, and what the page prints of its trouble.
type incident struct {
	t       *testing.T
	hosts   []*host
	printed []testutil.PrintedCommand // not seen yet
}

// host is a machine with its agent.
type host struct {
	*machine
	line  string
	agent *terminal
}

const (
	tlsSettings    = "tls-ca: /etc/pleach/ca.pem\ntls-cert: /etc/pleach/agent.pem\ntls-key: /etc/pleach/agent.key\n"
	secretSettings = "secret-file: /etc/pleach/secret\n"
)

// newIncident starts n agents alike, after their machines were prepared.
func newIncident(t *testing.T, heading string, n int, settings string, prepare func(i int, m *machine)) *incident {
	t.Helper()
	in := &incident{t: t}
	for _, block := range testutil.CodeBlocks(t, "../../../docs/operate/troubleshooting.md", heading) {
		in.printed = append(in.printed, block.Commands()...)
	}
	var seeds []string
	for i := range n {
		seeds = append(seeds, fmt.Sprintf("10.0.0.%d:7000", i+1))
	}
	file := fmt.Sprintf("group: db\nexpect: %d\nseeds: [%s]\ndata-dir: /var/lib/pleach\n%s", n, strings.Join(seeds, ", "),
		settings)
	for i, m := range newMachines(t, n, "bash", "mount", "cp", "curl") {
		h := &host{
			machine: m,
			line:    fmt.Sprintf("pleach agent --config /etc/pleach/agent.yaml --id db%d --listen 10.0.0.%[1]d:7000", i+1),
		}
		m.write("etc/pleach/agent.yaml", file)
		m.write("etc/pleach/secret", "0123456789abcdef0123456789abcdef")
		if prepare != nil {
			prepare(i, m)
		}
		h.agent = h.start(h.line)
		in.hosts = append(in.hosts, h)
	}
	return in
}

// whole waits until all agents are members, and know the tags of all.
func (in *incident) whole() {
	in.t.Helper()
	for _, h := range in.hosts {
		h.agent.await(contains("msg=member "), nil)
	}
	testutil.Eventually(in.t, "a whole group", func() bool {
		out, _ := in.hosts[0].command("pleach status").CombinedOutput()
		return strings.Count(string(out), "(devel)") == len(in.hosts)+1
	})
}

// see runs the next command of the page on a host until the screen is as printed.
func (in *incident) see(h *host) {
	in.t.Helper()
	if len(in.printed) == 0 {
		in.t.Fatal("the page prints nothing more")
	}
	c := in.printed[0]
	in.printed = in.printed[1:]
	var got []byte
	began := time.Now()
	testutil.Eventually(in.t, c.Line+" prints what the page has", func() bool {
		got, _ = h.command(c.Line).CombinedOutput() // many commands fail here
		return c.Says(string(got))
	}, func() any { return fmt.Sprintf("it prints:\n%s\nand the page:\n%s\nlog: %s", got, c.Output, h.agent) })
	in.t.Logf("%s: told after %v", c.Line, time.Since(began).Round(time.Millisecond))
}

// over is called at the end, when all of the page has been seen.
func (in *incident) over() {
	in.t.Helper()
	for _, c := range in.printed {
		in.t.Errorf("not tried: %s", c.Line)
	}
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// certify gives a machine a certificate that is good for a while.
func (m *machine) certify(ca *testutil.CA, i int, valid time.Duration) {
	c := ca.IssueNames(m.t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(10, 0, 0, byte(i+1))},
		NotAfter:    time.Now().Add(valid),
	})
	m.write("etc/pleach/ca.pem", string(c.CA))
	m.write("etc/pleach/agent.key", string(c.Key))
	m.write("etc/pleach/agent.pem", string(c.Cert))
}

const month = 30 * 24 * time.Hour

// The incidents that take seconds.
func TestIncidents(t *testing.T) {
	t.Run("majority", func(t *testing.T) {
		ca := testutil.NewCA(t)
		in := newIncident(t, "No quorum", 5, tlsSettings, func(i int, m *machine) { m.certify(ca, i, month) })
		in.whole()
		for _, h := range in.hosts[2:] {
			h.agent.kill()
		}
		in.see(in.hosts[0])
		in.see(in.hosts[0])
		in.hosts[2].start(in.hosts[2].line)
		in.see(in.hosts[0])
		in.over()
	})
	t.Run("certificate", func(t *testing.T) {
		ca := testutil.NewCA(t)
		valid := []time.Duration{month, month, 10 * time.Second}
		in := newIncident(t, "Expired certificate", 3, tlsSettings, func(i int, m *machine) { m.certify(ca, i, valid[i]) })
		victim := in.hosts[2]
		victim.agent.await(contains("msg=member "), nil)
		in.see(victim)
		in.see(victim) // the metric
		victim.agent.kill()
		victim.agent = victim.start(victim.line)
		in.see(victim)
		victim.certify(ca, 2, month)
		in.see(victim)
		in.over()
	})
	t.Run("disk", func(t *testing.T) {
		in := newIncident(t, "Full disk", 3, secretSettings, func(i int, m *machine) {
			if i == 2 {
				if err := syscall.Mount("tmpfs", m.root+"/lib", "tmpfs", 0, "size=256k"); err != nil {
					t.Skip(err)
				}
				t.Cleanup(func() { _ = syscall.Unmount(m.root+"/lib", syscall.MNT_DETACH) })
			}
		})
		in.whole()
		in.hosts[2].run("dd if=/dev/zero of=/var/lib/fill bs=1k count=1000 2>/dev/null || true")
		in.see(in.hosts[2])
		in.hosts[1].agent.kill()
		in.see(in.hosts[2])
		in.hosts[2].run("rm /var/lib/fill")
		in.see(in.hosts[2])
		in.over()
	})
	t.Run("secret", func(t *testing.T) {
		in := newIncident(t, "Wrong secret", 3, secretSettings, func(i int, m *machine) {
			if i == 2 {
				m.write("etc/pleach/secret", "another secret of many bytes")
			}
		})
		in.see(in.hosts[2])
		in.see(in.hosts[0])
		in.hosts[2].write("etc/pleach/secret", "0123456789abcdef0123456789abcdef")
		in.hosts[2].start(in.hosts[2].line)
		in.see(in.hosts[0])
		in.over()
	})
	t.Run("folder", func(t *testing.T) {
		in := newIncident(t, "Directory or socket in use", 1, secretSettings, nil)
		in.whole()
		in.see(in.hosts[0])
		in.see(in.hosts[0])
		in.over()
	})
}

// The incidents that take longer.
func TestLongIncidents(t *testing.T) {
	if !testutil.Full.On() {
		t.Skip("make incidents runs it")
	}
	t.Run("hung", func(t *testing.T) {
		in := newIncident(t, "Unresponsive member", 3, secretSettings, nil)
		in.whole()
		stopped := -in.hosts[2].agent.cmd.Process.Pid
		_ = syscall.Kill(stopped, syscall.SIGSTOP)
		in.see(in.hosts[0])
		in.see(in.hosts[0])
		in.see(in.hosts[2])
		_ = syscall.Kill(stopped, syscall.SIGCONT)
		in.see(in.hosts[0])
		in.over()
	})
	t.Run("link", func(t *testing.T) {
		in := newIncident(t, "Flapping member", 3, secretSettings, nil)
		in.whole()
		for range 4 {
			in.hosts[2].network.Cut(2)
			time.Sleep(3 * time.Second)
			in.hosts[2].network.Heal(2)
			time.Sleep(3 * time.Second)
		}
		in.see(in.hosts[0])
		in.over()
	})
}
