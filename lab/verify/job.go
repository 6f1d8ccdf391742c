package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

// After each group, its hosts run a job of which a minority is killed: every survivor must
// finish it, with the results that it has without a failure.

// The job: calls of Allreduce with a pause after each.
const (
	jobCalls = 300
	jobPause = 5 * time.Millisecond
	jobLimit = time.Minute
)

const evResult = "result" // of a call

// jobConfig is the command line of a process of a job.
type jobConfig struct {
	addresses, dir string
	rank           int
}

func (j *jobConfig) flags(f *flag.FlagSet) {
	f.StringVar(&j.addresses, "addresses", "", "addresses of all")
	f.StringVar(&j.dir, "dir", "", "directory of the round")
	f.IntVar(&j.rank, "rank", 0, "rank")
}

// jobInput is what a task adds to a call.
func jobInput(task, call int) []float64 { return []float64{float64(task * call), 1} }

// jobResult is what a call returns without a failure.
func jobResult(tasks, call int) string {
	sum := []float64{0, 0}
	for task := range tasks {
		for i, x := range jobInput(task, call) {
			sum[i] += x
		}
	}
	return fmt.Sprint(sum)
}

func runJob(c jobConfig) error {
	j, err := openJournal(filepath.Join(c.dir, fmt.Sprintf("job#%d.jsonl", c.rank)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), jobLimit)
	defer cancel()
	world, err := pleach.NewWorld(ctx, pleach.Config{
		Group: "verify-job", Addresses: strings.Split(c.addresses, ","),
		Rank: c.rank,
	})
	if err != nil {
		return err
	}
	for call := 1; call <= jobCalls; call++ {
		sum, err := collective.Allreduce(ctx, world, jobInput(c.rank, call), collective.Sum[float64](),
			collective.Restore(func(_ context.Context, task int) ([]float64, error) { return jobInput(task, call), nil }))
		if err != nil {
			return err
		}
		j.write(Event{Type: evResult, Seq: call, Value: fmt.Sprint(sum)})
		time.Sleep(jobPause)
	}
	if err := world.Finalize(ctx); err != nil {
		return err
	}
	j.write(Event{Type: evEnd})
	return nil
}

// playJob runs a job on the hosts, and returns what the processes have seen. Those that were
// killed are nil.
func (r *round) playJob() ([]*history, error) {
	rng := rand.New(rand.NewPCG(r.seed, 1))
	var addresses []string
	for i := range r.hosts {
		addresses = append(addresses, r.network.address(i)+":7001")
	}
	processes := make([]*exec.Cmd, r.members)
	for i := range processes {
		cmd := r.network.command(i, r.program, "job", "--rank", fmt.Sprint(i), "--addresses", strings.Join(addresses, ","),
			"--dir", r.dir)
		log, err := os.Create(filepath.Join(r.dir, fmt.Sprintf("job#%d.log", i)))
		if err != nil {
			return nil, err
		}
		defer log.Close()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		limit := time.AfterFunc(jobLimit+10*time.Second, func() { _ = cmd.Process.Kill() })
		defer limit.Stop()
		processes[i] = cmd
	}
	time.Sleep(time.Second)
	victims := rng.Perm(r.members)[:1+rng.IntN((r.members-1)/2)]
	for _, i := range victims {
		time.Sleep(time.Duration(rng.Int64N(int64(500 * time.Millisecond))))
		_ = processes[i].Process.Kill()
	}
	var histories []*history
	for i, cmd := range processes {
		_ = cmd.Wait() // what it has written tells
		h, err := readHistory(fmt.Sprint("job#", i), filepath.Join(r.dir, fmt.Sprintf("job#%d.jsonl", i)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if h != nil {
			h.killed = cmd.ProcessState.ExitCode() == -1
			histories = append(histories, h)
		}
	}
	return histories, nil
}

// checkJob: results are those without a failure, and survivors finish.
func checkJob(tasks int, histories []*history, s *summary) (violations []violation) {
	for _, h := range histories {
		last := int64(0)
		for _, e := range h.events {
			last = e.At
			if e.Type != evResult {
				continue
			}
			s.results++
			if want := jobResult(tasks, e.Seq); e.Value != want {
				violations = append(violations, violation{"results are right", fmt.Sprintf("%s: call %d returned %s, want %s",
					h.process, e.Seq, e.Value, want), e.At, []string{h.process}})
			}
		}
		if !h.killed && !h.ended {
			violations = append(violations, violation{
				"jobs finish", fmt.Sprintf("%s has not finished", h.process), last,
				[]string{h.process},
			})
		}
	}
	return violations
}
