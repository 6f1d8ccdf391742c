package ulfm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// timeout is how long a job may take, from its start to the report of its last rank.
// Reports are looked for at each interval, seldom enough not to matter.
const (
	timeout  = bench.Timeout + 10*time.Second
	interval = 50 * time.Millisecond
)

// Kill is the outcome of one: times from before the kill.
type Kill struct {
	// Complete says that every survivor continued with all the others.
	Complete bool
	// FirstError is when the first survivor's Allreduce failed, and LastError when
	// the last one's did.
	FirstError, LastError time.Duration
	// Shrink is when the last survivor had a communicator of the living, and Agree
	// when the last one had agreed in it.
	Shrink, Agree time.Duration
}

// Kill starts a job of so many ranks, in which one kills itself.
func (p *Program) Kill(ctx context.Context, ranks, victim int) (k Kill, err error) {
	host, err := os.MkdirTemp(filepath.Join(p.root, p.dir), "job-")
	if err != nil {
		return Kill{}, err
	}
	defer os.RemoveAll(host)
	dir := filepath.Join(p.dir, filepath.Base(host))
	args := p.args("mpirun", "--with-ft", "ulfm", "-n", strconv.Itoa(ranks),
		"--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
		"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo",
		p.dir+"/kill", dir, strconv.Itoa(victim), strconv.Itoa(int(timeout.Seconds())))
	program, err := exec.LookPath(args[0])
	if err != nil {
		return Kill{}, fmt.Errorf("bench: %w", err)
	}
	runtime.LockOSThread() // for DieWithParent
	defer runtime.UnlockOSThread()
	var stderr bytes.Buffer
	mpirun, err := launch.Start(launch.Command{
		Program: program, Args: args, Env: []string{"TMPDIR=" + dir}, Stderr: &stderr, DieWithParent: true,
	})
	if err != nil {
		return Kill{}, fmt.Errorf("bench: mpirun: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	awaitReports(limited, mpirun, host, ranks)
	mpirun.Kill() // its ranks end with it
	<-mpirun.Ended()
	if ctx.Err() != nil {
		return Kill{}, ctx.Err()
	}
	began, err := readKill(host, victim)
	if err != nil {
		return Kill{}, fmt.Errorf("bench: mpirun: %w (%v): %s", err, mpirun.State(), bytes.TrimSpace(stderr.Bytes()))
	}
	return readSurvivors(host, ranks, victim, began), nil
}

// awaitReports returns when all ranks have reported, or no more can be expected.
func awaitReports(ctx context.Context, mpirun *launch.Process, dir string, ranks int) {
	for next := 0; next < ranks; { // the lowest rank that has not
		if report, err := os.Stat(filepath.Join(dir, strconv.Itoa(next))); err == nil && report.Size() > 0 {
			next++
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-mpirun.Ended():
			return
		case <-time.After(interval):
		}
	}
}

// readKill reads when the victim killed itself.
func readKill(dir string, victim int) (began int64, err error) {
	text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(victim)))
	if err == nil {
		_, err = fmt.Sscan(string(text), &began)
	}
	if err != nil {
		return 0, fmt.Errorf("no rank was killed: %w", err)
	}
	return began, nil
}

// readSurvivors reads what the others have reported. If a report is missing, or a
// survivor has lost more than the victim, the kill is not complete.
func readSurvivors(dir string, ranks, victim int, began int64) Kill {
	k := Kill{Complete: true}
	for rank := range ranks {
		if rank == victim {
			continue
		}
		var failed, shrunk, agreed int64
		var left int
		text, _ := os.ReadFile(filepath.Join(dir, strconv.Itoa(rank)))
		if _, err := fmt.Sscan(string(text), &failed, &shrunk, &agreed, &left); err != nil || left != ranks-1 {
			return Kill{}
		}
		if e := time.Duration(failed - began); k.FirstError == 0 || e < k.FirstError {
			k.FirstError = e
		}
		k.LastError = max(k.LastError, time.Duration(failed-began))
		k.Shrink = max(k.Shrink, time.Duration(shrunk-began))
		k.Agree = max(k.Agree, time.Duration(agreed-began))
	}
	return k
}

// Result is what was measured. Times are of complete kills only, and 0 if there are
// none.
type Result struct {
	Version  string `json:"version"`
	Ranks    int    `json:"ranks"`
	Kills    int    `json:"kills"`
	Complete int    `json:"complete"`

	FirstErrorP50 float64 `json:"first_error_p50_ms"`
	LastErrorP50  float64 `json:"last_error_p50_ms"`
	ShrinkP50     float64 `json:"shrink_p50_ms"`
	AgreeP50      float64 `json:"agree_p50_ms"`
	// Ratio is Pleach's p50 of the same run, from the kill to the last survivor's
	// view, to that of Shrink. 0 if one of them is missing.
	Ratio float64 `json:"ratio,omitempty"`
}

// Summarize makes a result of kills, compared with Pleach's p50 in ms.
func (p *Program) Summarize(ranks int, kills []Kill, pleach float64) Result {
	complete := slices.DeleteFunc(slices.Clone(kills), func(k Kill) bool { return !k.Complete })
	p50 := func(of func(Kill) time.Duration) float64 {
		var took []time.Duration
		for _, k := range complete {
			took = append(took, of(k))
		}
		slices.Sort(took)
		return bench.Millis(bench.Percentile(took, 50))
	}
	r := Result{
		Version: p.Version, Ranks: ranks, Kills: len(kills), Complete: len(complete),
		FirstErrorP50: p50(func(k Kill) time.Duration { return k.FirstError }),
		LastErrorP50:  p50(func(k Kill) time.Duration { return k.LastError }),
		ShrinkP50:     p50(func(k Kill) time.Duration { return k.Shrink }),
		AgreeP50:      p50(func(k Kill) time.Duration { return k.Agree }),
	}
	if r.ShrinkP50 > 0 {
		r.Ratio = bench.Round(pleach/r.ShrinkP50, 3)
	}
	return r
}
