package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The cases of jobs run real processes: this test's program again, which then is a
// program of the table instead.

// programVariable names the program that a process runs.
const programVariable = "PLEACH_FAULTS_PROGRAM"

// programs are what the processes of a job run, by name.
var programs = map[string]func(context.Context, *pleach.World) error{
	"memory":  memoryProgram,
	"weights": weightsProgram,
	"rounds":  roundsProgram,
}

// TestJobProgram is a process of a job. It is no test by itself.
func TestJobProgram(t *testing.T) {
	program, ok := programs[os.Getenv(programVariable)]
	if !ok {
		t.Skip("a process of a job, started by the other tests")
	}
	if err := runProgram(program); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0) // without the test's own output
}

func runProgram(program func(context.Context, *pleach.World) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	w, err := pleach.NewWorld(ctx, pleach.Config{
		Detection: pleach.Detection{
			SuspicionTimeout: durationOf("PLEACH_FAULTS_SUSPICION"),
			StartTimeout:     durationOf("PLEACH_FAULTS_START"),
		},
		Job: pleach.Job{QuorumTimeout: durationOf("PLEACH_FAULTS_QUORUM")},
	})
	if err != nil {
		return err
	}
	return program(ctx, w)
}

// durationOf is a duration in the environment, or 0.
func durationOf(variable string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(variable))
	return d
}

// number is a number in the environment, or another one.
func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// process is a process of a job.
type process struct {
	*exec.Cmd
	out  testutil.LogBuffer // what it prints
	took time.Duration
	err  error // of the process, once it has ended
}

// waitFor waits until the process has printed something.
func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.out.String(),
		text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the output:\n%s", text, p.out.String())
		}
	}
}

// lines returns what follows a word in the process's output.
func (p *process) lines(word string) (found []string) {
	for line := range strings.Lines(p.out.String()) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}

// startJob starts the processes of a job. command makes the command of a rank, and env
// are further variables.
func startJob(t *testing.T, program string, addresses []string,
	command func(rank int, name string, args ...string) *exec.Cmd, env ...string,
) []*process {
	t.Helper()
	job := make([]*process, len(addresses))
	for r := range job {
		p := &process{Cmd: command(r, os.Args[0], "-test.run=^TestJobProgram$")}
		p.Env = append(os.Environ(), append(env, programVariable+"="+program,
			"PLEACH_RANK="+strconv.Itoa(r), "PLEACH_ADDRESSES="+strings.Join(addresses, ","))...)
		p.Stdout, p.Stderr = &p.out, &p.out
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		job[r] = p
	}
	return job
}

// waitJob waits for all processes of a job.
func waitJob(job []*process) {
	began := time.Now()
	ended := make(chan struct{})
	for _, p := range job {
		go func() {
			p.err = p.Wait()
			p.took = time.Since(began)
			ended <- struct{}{}
		}()
	}
	for range job {
		<-ended
	}
}

// onThisHost runs a command here.
func onThisHost(_ int, name string, args ...string) *exec.Cmd { return exec.Command(name, args...) }
