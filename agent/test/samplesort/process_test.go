//go:build unix

package samplesort_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/samplesort"
)

const sortProgram = "PLEACH_TEST_SORT"

// program is a process of a job: it kills itself when it begins a phase.
type program struct {
	Dir   string
	Dies  int // rank
	Phase string
}

// This test binary is also the program that tests run as processes of a job.
func TestMain(m *testing.M) {
	config := os.Getenv(sortProgram)
	if config == "" {
		goleak.VerifyTestMain(m)
		return
	}
	var p program
	err := json.Unmarshal([]byte(config), &p)
	if err == nil {
		err = p.run()
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func (p *program) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	_, err = samplesort.Run(ctx, w, samplesort.Job{
		Input: samplesort.Generate(100_000), Output: p.Dir,
		Phase: func(name string) {
			if w.Rank() == p.Dies && name == p.Phase {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		},
		Done: func(r samplesort.Result) { fmt.Println("checksum", r.Output.Checksum(), r.Equal()) },
	})
	if err != nil {
		return err
	}
	return w.Finalize(ctx)
}

// Processes are killed, in each phase.
func TestKilledProcesses(t *testing.T) {
	const size = 5
	for rank, phase := range []string{"sample", "exchange", "sort", "write"} {
		t.Run(phase, func(t *testing.T) {
			config, err := json.Marshal(program{t.TempDir(), rank, phase})
			if err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			report, err := launch.Run(launch.Job{
				Size: size, Program: os.Args[0], Args: os.Args[:1], Env: []string{sortProgram + "=" + string(config)},
				Grace:  time.Second,
				Output: &launch.Output{Stdout: launch.Stream{Writer: &stdout}, Stderr: launch.Stream{Writer: &stderr}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range report.Outcomes {
				if killed := o.Kind == launch.Survived; killed != (o.Rank == rank) || !report.Complete {
					t.Errorf("rank %d: %s", o.Rank, o.Text)
				}
			}
			// The checksum is that of 100,000 records of gensort.
			if got := strings.TrimSpace(stdout.String()); got != "checksum c327a1c42c28 true" {
				t.Errorf("printed %q and %q", got, stderr.String())
			}
		})
	}
}
