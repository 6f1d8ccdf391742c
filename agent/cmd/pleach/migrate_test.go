//go:build unix

package main

import (
	"bytes"
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
