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
	"testing"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// startZones starts six agents, or as many as are asked for, in three failure domains. What each gets on
// the topic config is a line of a file, and its gate config-ok fails while the last line has the word bad.
func startZones(t *testing.T) (agents []*loggedAgent, files []string) {
	t.Helper()
	dir := t.TempDir()
	agents = startEach(t, testutil.Members.Or(6), func(i int) []string {
		file := filepath.Join(dir, fmt.Sprint("config", i))
		files = append(files, file)
		settings := fmt.Sprintf(`failure-domain: zone-%d
file-dirs: [%s]
handlers:
  - {on: config, run: 'echo "$(cat) $PLEACH_HEADER_ROLLOUT" >>%s'}
  - {query: config-ok, run: 'case "$(cat)" in *bad*) echo "the configuration is bad" >&2; exit 1;; esac'}
  - {query: file-ok, run: '! grep -q bad "$PLEACH_FILE"'}
`, i%3, file+".d", file)
		name := filepath.Join(dir, fmt.Sprint("agent", i, ".yaml"))
		if err := os.Mkdir(file+".d", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--config", name}
	})
	return agents, files
}

// rollout runs a command that prints a rollout.
func (a *loggedAgent) rollout(args ...string) (o api.Rollout, err error) {
	a.t.Helper()
	cmd := exec.Command("pleach", append(args, "--json", "--socket", a.socket)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if decodeErr := json.Unmarshal(out, &o); decodeErr != nil {
		a.t.Fatalf("%v: %v: %s%s", args, err, out, &complaint)
	}
	return o, err
}

// got is what an agent has got on the topic, without the IDs of rollouts.
func got(t *testing.T, file string) string {
	b, _ := os.ReadFile(file)
	var words []string
	for line := range strings.Lines(string(b)) {
		words = append(words, strings.Fields(line)[0])
	}
	return strings.Join(words, " ")
}

// A message in waves reaches all agents; one whose gate fails reaches the first wave alone, which gets
// the revert. Rollouts go on at any agent when the agent that they were started at is dead.
func TestRolloutsOfAgents(t *testing.T) {
	agents, files := startZones(t)
	o, err := agents[4].rollout("send", "config", "good", "--waves", "1,50%,100%", "--gate", "config-ok", "--hold", "10ms")
	if err != nil || o.Phase != "done" || o.Wave != 3 {
		t.Fatalf("got %+v, %v", o, err)
	}
	for _, file := range files {
		testutil.Eventually(t, file+" has it", func() bool { return got(t, file) == "good" })
	}
	o, err = agents[4].rollout("send", "config", "bad", "--revert", "good2", "--waves", "1,50%,100%",
		"--gate", "config-ok")
	if err == nil || o.Phase != "reverted" || o.Wave != 1 || !strings.Contains(o.Reason, "the configuration is bad") {
		t.Errorf("got %+v, %v", o, err)
	}
	want := make([]string, len(agents))
	for i, a := range agents {
		want[i] = "good"
		if a.has(&o) {
			want[i] += " bad good2"
		}
	}
	awaitFiles(t, files, want)
	if n := gotIt(&o); n != 1 {
		t.Errorf("%d agents have got it", n)
	}

	// The next one is held in its first wave, with one member of each zone, and its starter is killed.
	o, err = agents[0].rollout("send", "config", "new", "--revert", "old", "--waves", "3,100%", "--hold", "1h", "--detach")
	if err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it is held", func() bool {
		now, _ := agents[1].rollout("rollout", "status", o.ID)
		return now.Phase == "holding"
	})
	agents[0].kill()
	for i, step := range []string{"pause", "resume", "revert"} {
		if _, err := agents[3+i%3].rollout("rollout", step, o.ID); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	testutil.Eventually(t, "it is over", func() bool {
		o, _ = agents[2].rollout("rollout", "status", o.ID)
		return o.Phase == "reverted"
	})
	for i, a := range agents {
		if a.has(&o) {
			want[i] += " new old"
		}
	}
	awaitFiles(t, files[1:], want[1:])
	if n := gotIt(&o); n != 3 {
		t.Errorf("%d agents have got it", n)
	}
}

// has reports whether an agent has got what was rolled out.
func (a *loggedAgent) has(o *api.Rollout) bool {
	return slices.ContainsFunc(o.Members, func(m api.RolloutMember) bool { return m.ID == a.id && m.Has })
}

// awaitFiles waits until agents have got what is wanted.
func awaitFiles(t *testing.T, files, want []string) {
	t.Helper()
	for i, file := range files {
		testutil.Eventually(t, file+" has "+want[i], func() bool { return got(t, file) == want[i] },
			func() any { return got(t, file) })
	}
}

// A gate is a threshold of a metric, which each agent evaluates by its own metrics. One that an agent
// cannot evaluate fails, and a malformed one begins no rollout.
func TestThresholdsOfRollouts(t *testing.T) {
	agents := startEach(t, 3, func(int) []string { return nil })
	put := exec.Command("pleach", "kv", "put", "color", "blue", "--socket", agents[0].socket)
	if out, err := put.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct{ gate, phase, reason string }{
		{"metric pleach_members == 3", "done", ""},
		{"metric pleach_agent_keys_bytes < 1e6", "done", ""},
		{"metric pleach_agent_keys_bytes < 1", "stopped", "pleach_agent_keys_bytes is "},
		{"metric pleach_agent_warning < 2", "done", ""},
		{"metric pleach_no_such_metric < 1", "stopped", "there is no metric pleach_no_such_metric"},
		{"metric pleach_propagation_seconds < 1", "stopped", "is a histogram"},
	} {
		o, err := agents[1].rollout("send", "config", "new", "--waves", "1,100%", "--gate", c.gate)
		wave := 2
		if c.phase != "done" {
			wave = 1
		}
		if o.Phase != c.phase || (err == nil) != (c.phase == "done") || o.Wave != wave || gotIt(&o) != 1+2*(wave-1) ||
			!strings.Contains(o.Reason, c.reason) {
			t.Errorf("%s: %+v, %v", c.gate, o, err)
		}
	}
	malformed := exec.Command("pleach", "send", "config", "new", "--waves", "1,100%", "--socket", agents[0].socket,
		"--gate", "metric pleach_members = 3")
	out, err := malformed.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "write metric NAME OPERATOR NUMBER") {
		t.Errorf("%v: %s", err, out)
	}
}

// A file in waves: a bad one reaches the first wave alone, which gets back what it had before.
func TestRolloutsOfFiles(t *testing.T) {
	agents, files := startZones(t)
	source := filepath.Join(t.TempDir(), "app.conf")
	has := func(file string) string {
		b, err := os.ReadFile(filepath.Join(file+".d", "etc", "app.conf"))
		if err != nil {
			return "none"
		}
		return string(b)
	}
	cp := func(content string) (api.Rollout, error) {
		if err := os.WriteFile(source, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return agents[3].rollout("cp", source, ":etc/", "--waves", "1,50%,100%", "--gate", "file-ok")
	}
	for _, step := range []struct{ content, want, phase string }{
		{"bad 1", "none", "reverted"}, {"good", "good", "done"}, {"bad 2", "good", "reverted"},
	} {
		o, err := cp(step.content)
		if o.Phase != step.phase || (err == nil) != (step.phase == "done") || o.Name != ":etc/app.conf" {
			t.Errorf("%s: %+v, %v", step.content, o, err)
		}
		for _, file := range files {
			if got := has(file); got != step.want {
				t.Errorf("%s after %s: %s, want %s", file, step.content, got, step.want)
			}
		}
		if n := gotIt(&o); step.phase == "reverted" && n != 1 {
			t.Errorf("%d agents have got %s", n, step.content)
		}
	}
}
