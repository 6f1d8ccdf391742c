//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The program of the page for users of MPI prints the same in both, and although a process is
// killed.
func TestMigrationFromMPI(t *testing.T) {
	page, err := os.ReadFile("../../../docs/migrate/mpi.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	build := func(language, compiler string, args ...string) string {
		program := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
		if program == nil {
			t.Fatalf("no program in %s", language)
		}
		source, result := filepath.Join(folder, "prog."+language), filepath.Join(folder, compiler+"-prog")
		if err := os.WriteFile(source, program[1], 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(compiler, append(args, "-o", result, source)...).CombinedOutput(); bytes.Contains(out,
			[]byte("mpi.h")) {
			t.Skipf("the compiler of MPI has no header: %s", out)
		} else if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return result
	}
	program := build("go", "go", "build")
	for _, kill := range [][]string{nil, {"2@0s"}} {
		faults, err := launch.Schedule(4, kill, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out, complaint bytes.Buffer
		_, err = launch.Run(launch.Job{
			Size: 4, Program: program, Args: []string{program}, Faults: faults, Grace: time.Second,
			Output: &launch.Output{Stdout: launch.Stream{Writer: &out}, Stderr: launch.Stream{Writer: &complaint}},
		})
		if err != nil || out.String() != "10\n" {
			t.Errorf("killed %v: %v: %q %s", kill, err, out.String(), complaint.String())
		}
	}
	if _, err := exec.LookPath("mpicc"); err != nil {
		t.Skip(err)
	}
	out, err := exec.Command("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4", build("c", "mpicc")).Output()
	if err != nil || string(out) != "10\n" {
		t.Errorf("mpirun: %v: %q", err, out)
	}
}

// Serf's guide, done with Pleach: its commands are run as they are printed.
func TestMigrationFromSerf(t *testing.T) {
	blocks := testutil.CodeBlocks(t, "../../../docs/migrate/serf.md", "Serf's guide, done with Pleach")
	host := newMachines(t, 1, "bash", "mount", "cp", "sed")[0]
	if err := os.WriteFile(filepath.Join(host.root, "home/agent.yaml"), []byte(blocks[0].Text), 0o600); err != nil {
		t.Fatal(err)
	}
	var agents []*terminal
	for _, c := range blocks[1].Commands() {
		if line, background := strings.CutSuffix(c.Line, " &"); background {
			agents = append(agents, host.start(line))
			continue
		}
		if strings.HasPrefix(c.Line, "kill ") {
			agents[2].kill() // its job number is unknown here
			continue
		}
		if got := host.run(c.Line); !c.Says(got) {
			t.Errorf("%s prints %q, want %q", c.Line, got, c.Output)
		}
	}
}

// Handlers of serf run unchanged behind deploy/serf/serf-handler: with the environment and the standard
// input that serf gives them. serf-members prints the members as serf members does.
func TestHandlersOfSerf(t *testing.T) {
	scripts, err := filepath.Abs("../../../deploy/serf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	calls := func(i int) string { return filepath.Join(dir, fmt.Sprint("calls", i)) }
	agents := startEach(t, 3, func(i int) []string {
		handler, settings := filepath.Join(dir, fmt.Sprint("handler", i)), filepath.Join(dir, fmt.Sprint(i, ".yaml"))
		// Calls are whole lines, so that those of handlers that run at the same time are not mixed.
		script := `#!/bin/sh
echo "$SERF_EVENT,$SERF_SELF_NAME,$SERF_USER_EVENT,$SERF_QUERY_NAME,$(tr '\n\t' ';,')" >>` + calls(i) + `
[ "$SERF_EVENT" != query ] || echo "load of $SERF_SELF_NAME"
`
		run := fmt.Sprintf("'%s/serf-handler %s'", scripts, handler)
		text := "tags: {role: web, zone: a}\nhandlers:\n  - {on: deploy, run: " + run + "}\n  - {query: load, run: " + run +
			"}\n  - {event: \"*\", run: " + run + "}\n"
		err := errors.Join(os.WriteFile(handler, []byte(script), 0o700), os.WriteFile(settings, []byte(text), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		return []string{"--config", settings}
	})
	pleach := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("pleach", append(args, "--socket", agents[0].socket)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	called := func(i int, call string) {
		t.Helper()
		has := func() bool {
			b, _ := os.ReadFile(calls(i))
			return regexp.MustCompile("(?m)^" + call + "$").Match(b)
		}
		testutil.Eventually(t, call, has, func() any { b, _ := os.ReadFile(calls(i)); return string(b) })
	}
	pleach("send", "deploy", "v42", "--stable")
	for i := range agents {
		called(i, fmt.Sprintf("user,agent%d,deploy,,v42;", i))
	}
	if out := pleach("query", "load", "now"); strings.Count(out, "load of agent") != 3 {
		t.Errorf("answers: %s", out)
	}
	called(1, "query,agent1,,load,now;")
	agents[2].kill()
	called(0, "member-failed,agent0,,,agent2,[0-9.]+,web,role=web,zone=a;")
	called(1, "member-failed,agent1,,,agent2,[0-9.]+,web,role=web,zone=a;")

	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip(err)
	}
	agents[0].awaitMembers(2)
	out, err := exec.Command(filepath.Join(scripts, "serf-members"), "--socket", agents[0].socket).CombinedOutput()
	lines := regexp.MustCompile(`^agent0  [0-9.]+:\d+  alive  role=web,zone=a
agent1  [0-9.]+:\d+  alive  role=web,zone=a
$`)
	if err != nil || !lines.Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}
