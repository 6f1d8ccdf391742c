//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A Prometheus server on another host scrapes three agents, one of them with TLS, and gets
// nothing else from them.
func TestPrometheusScrapesAgents(t *testing.T) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus: install the package of that name")
	}
	machines := newMachines(t, 4, "bash", "curl", "openssl", "mount", "cp")
	server, hosts := machines[3], machines[:3]
	hosts[0].run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=a -addext subjectAltName=IP:10.0.0.1 -keyout /etc/pleach/m.key -out /etc/pleach/m.pem 2>&1")
	const member = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=all -addext subjectAltName=IP:10.0.0.1,IP:10.0.0.2,IP:10.0.0.3 -keyout /etc/pleach/all.key -out /etc/pleach/all.pem 2>&1"
	hosts[0].run(member)
	for i, m := range hosts {
		for _, file := range []string{"all.key", "all.pem"} {
			b, err := os.ReadFile(filepath.Join(hosts[0].root, "etc/pleach", file))
			if err == nil {
				err = os.WriteFile(filepath.Join(m.root, "etc/pleach", file), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		flags := " --tls-ca /etc/pleach/all.pem --tls-cert /etc/pleach/all.pem --tls-key /etc/pleach/all.key"
		if i == 0 {
			flags += " --metrics-tls-cert /etc/pleach/m.pem --metrics-tls-key /etc/pleach/m.key"
		}
		m.start(fmt.Sprintf(
			"pleach agent --expect 3 --listen 10.0.0.%d:7000 --metrics-listen 10.0.0.%[1]d:9464 10.0.0.1:7000 10.0.0.2:7000 10.0.0.3:7000%s", i+1, flags))
	}
	for path, want := range map[string]string{
		"/readyz": "200", "/v1/status": "404", "/v1/messages": "404",
		"/ui/": "404",
	} {
		ask := "curl -s -o /dev/null -w '%{http_code}' http://10.0.0.2:9464" + path + " || true"
		testutil.Eventually(t, path+" is "+want, func() bool { return strings.TrimSpace(server.run(ask)) == want })
	}
	config := `scrape_configs:
- {job_name: plain, scrape_interval: 300ms, scrape_timeout: 300ms, static_configs: [{targets: ["10.0.0.2:9464", "10.0.0.3:9464"]}]}
- {job_name: tls, scheme: https, tls_config: {insecure_skip_verify: true}, scrape_interval: 300ms, scrape_timeout: 300ms, static_configs: [{targets: ["10.0.0.1:9464"]}]}
`
	if err := os.WriteFile(filepath.Join(server.root, "home/p.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server.start(binary + " --config.file=p.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9090")
	testutil.Eventually(t, "three members in three agents", func() bool {
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		out := server.run("curl -s 'http://127.0.0.1:9090/api/v1/query?query=sum(pleach_members)' || true")
		return json.Unmarshal([]byte(out), &answer) == nil && len(answer.Data.Result) == 1 &&
			answer.Data.Result[0].Value[1] == "9"
	})
	testutil.Eventually(t, "three certificates expire", func() bool {
		out := server.run("curl -s 'http://127.0.0.1:9090/api/v1/query?query=pleach_certificate_expires_timestamp_seconds>0' || true")
		return strings.Count(out, `"value":[`) == 3
	})
}

// Every query of the dashboard has an answer while a fleet runs, whose agents a Prometheus server
// scrapes.
func TestDashboardOfFleet(t *testing.T) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus: install the package of that name")
	}
	_, machines, _ := startFleet(t, " --metrics-listen ADDRESS:9464")
	var targets []string
	for zone := range 3 {
		for i := range 3 {
			targets = append(targets, fmt.Sprintf("%q", fmt.Sprintf("10.%d.0.%d:9464", zone+1, i+1)))
		}
	}
	server := machines[0]
	config := fmt.Sprintf(
		"scrape_configs: [{job_name: pleach, scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [{targets: [%s]}]}]\n", strings.Join(targets, ", "))
	if err := os.WriteFile(filepath.Join(server.root, "home/p.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server.start(binary + " --config.file=p.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9090")
	text, err := os.ReadFile(repository + "/deploy/grafana/pleach.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$group", ".+", "$__rate_interval", "30s").Replace(target.Expr)
			if strings.Contains(expr, "pleach_certificate_") {
				continue // this fleet has a secret: TestPrometheusScrapesAgents has certificates
			}
			queries++
			var out string
			answered := func() bool {
				out = server.run("curl -s --data-urlencode 'query=" + expr + "' http://127.0.0.1:9090/api/v1/query || true")
				return strings.Contains(out, `"value":[`)
			}
			testutil.Eventually(t, expr+" answered", answered)
		}
	}
	if queries < 30 {
		t.Errorf("%d queries", queries)
	}
}

// kill -9 of an agent runs the handler of member-failed at all others once, within two seconds,
// and with the reason.
func TestMemberFailedHandler(t *testing.T) {
	network, dir := netns.New(t, 3), t.TempDir()
	var agents []*exec.Cmd
	var logs []string
	for i := range 3 {
		file, log := filepath.Join(dir, fmt.Sprint(i, ".yaml")), filepath.Join(dir, fmt.Sprint(i, ".log"))
		text := fmt.Sprintf(
			"id: db%d\nexpect: 3\nlisten: %s:7000\nsocket: %s/%d.sock\ntags: {role: db}\nseeds: [%q, %q, %q]\nhandlers:\n  - {event: member-failed, run: 'echo \"$PLEACH_EVENT $(cat)\" >> %s'}\n",
			i+1, network.Address(i), dir, i, network.Address(0)+":7000", network.Address(1)+":7000",
			network.Address(2)+":7000", log)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := network.Command(i, "pleach", "agent", "--config", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		agents, logs = append(agents, cmd), append(logs, log)
	}
	for i := range agents {
		a := &agentProcess{t: t, id: fmt.Sprint("db", i+1), socket: filepath.Join(dir, fmt.Sprint(i, ".sock"))}
		a.await("three members with their tags", func(s *statusJSON) bool {
			untagged := func(m api.Member) bool { return !strings.Contains(m.Meta, "role=db") }
			return len(s.Members.Members) == 3 && !slices.ContainsFunc(s.Members.Members, untagged)
		})
	}
	_ = agents[2].Process.Signal(syscall.SIGKILL)
	began := time.Now()
	for _, log := range logs[:2] {
		testutil.Eventually(t, "handled", func() bool { b, _ := os.ReadFile(log); return len(b) > 0 })
	}
	testutil.Took(t, "handlers of member-failed", time.Since(began), promisedTruth)
	time.Sleep(time.Second) // for a second run that must not come
	for i, log := range logs[:2] {
		b, err := os.ReadFile(log)
		if want := "member-failed db3\t" + network.Address(2) + ":7000\tsuspected\t"; err != nil ||
			!strings.HasPrefix(string(b), want) || strings.Count(string(b), "\n") != 1 ||
			!strings.Contains(string(b), "role=db") {
			t.Errorf("agent %d: %v: %q, want one line with %q", i, err, b, want)
		}
	}
	if b, err := os.ReadFile(logs[2]); err == nil {
		t.Errorf("the agent that was killed has handled %q", b)
	}
}
