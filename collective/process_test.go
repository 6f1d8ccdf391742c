package collective_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const jobProgram = "PLEACH_TEST_JOB"

// heldProgram is that of calls that are held, before the name of a file.
const heldProgram = "held "

// runJob is a process of a job: rounds of collectives, of which each result is checked, or another
// program. It says which round it is in.
func runJob(config string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if levels, ok := strings.CutPrefix(config, hostsProgram); ok {
		return runHosts(ctx, levels)
	}
	if how, ok := strings.CutPrefix(config, stuckProgram); ok {
		return runStuck(ctx, how)
	}
	if config == silentProgram {
		return runSilent(ctx)
	}
	if odd, ok := strings.CutPrefix(config, mismatchProgram); ok {
		return runMismatch(ctx, odd)
	}
	if file, ok := strings.CutPrefix(config, onceProgram); ok {
		return runOnce(ctx, file)
	}
	file, held := strings.CutPrefix(config, heldProgram)
	rounds := 0
	if !held {
		var err error
		rounds, err = strconv.Atoi(config)
		if err != nil {
			return err
		}
	}
	// no result is due to it
	w, err := pleach.NewWorld(ctx, pleach.Config{Detection: pleach.Detection{StartTimeout: time.Hour}})
	if err != nil {
		return err
	}
	for round := range rounds {
		fmt.Println("round", round)
		if err := jobRound(ctx, w, round); err != nil {
			return err
		}
	}
	if held {
		if err := heldJob(ctx, w, file); err != nil {
			return err
		}
	}
	if sharesMemory() {
		fmt.Println(sharedMemory)
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// sharedMemory is what a process of a job says that shares memory with others.
const sharedMemory = "shares memory"

func sharesMemory() bool {
	maps, err := os.ReadFile("/proc/self/maps")
	return err == nil && bytes.Contains(maps, []byte("/memfd:pleach"))
}

func jobRound(ctx context.Context, w *pleach.World, round int) error {
	n := w.Size()
	length := 1 + (round%4)*20_000
	input := func(task int) []int64 { return slices.Repeat([]int64{int64(task + round)}, length) }
	sum, err := collective.Allreduce(ctx, w, input(w.Rank()), collective.Sum[int64](),
		collective.Restore(func(_ context.Context, task int) ([]int64, error) { return input(task), nil }))
	if err != nil {
		return err
	}
	if want := slices.Repeat([]int64{int64(n*(n-1)/2 + n*round)}, length); !slices.Equal(sum, want) {
		return fmt.Errorf("round %d: the sum is %d, want %d", round, sum[0], want[0])
	}
	parts := func(task int) [][]int32 {
		all := make([][]int32, n)
		for i := range all {
			all[i] = []int32{int32(task), int32(i), int32(round)}
		}
		return all
	}
	got, err := collective.Alltoall(ctx, w, parts(w.Rank()),
		collective.Restore(func(_ context.Context, task int) ([][]int32, error) { return parts(task), nil }))
	if err != nil {
		return err
	}
	for task, part := range got {
		if want := []int32{int32(task), int32(w.Rank()), int32(round)}; !slices.Equal(part, want) {
			return fmt.Errorf("round %d: from task %d came %v, want %v", round, task, part, want)
		}
	}
	return nil
}

// process is one of a job.
type process struct {
	cmd   *exec.Cmd
	lines chan string
}

func startJob(t *testing.T, size, rounds int) []*process {
	t.Helper()
	return startProgram(t, size, strconv.Itoa(rounds), 10*(rounds+1))
}

// startProgram starts a job whose processes say at most so many lines.
func startProgram(t *testing.T, size int, program string, lines int) []*process {
	t.Helper()
	addresses, files := make([]string, size), make([]*os.File, size)
	for r := range files {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[r] = l.Addr().String()
		files[r], err = l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer files[r].Close()
	}
	processes := make([]*process, size)
	for r := range processes {
		cmd := exec.Command(os.Args[0])
		cmd.ExtraFiles = []*os.File{files[r]}
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), "PLEACH_LISTEN_FD=3", jobProgram+"="+program, "PLEACH_GROUP=job",
			"PLEACH_RANK="+strconv.Itoa(r), "PLEACH_SIZE="+strconv.Itoa(size), "PLEACH_ADDRESSES="+strings.Join(addresses, ","))
		processes[r] = startProcess(t, cmd, lines)
	}
	return processes
}

// startProcess starts a process that says at most so many lines.
func startProcess(t *testing.T, cmd *exec.Cmd, lines int) *process {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, make(chan string, lines)}
	var reading sync.WaitGroup
	reading.Go(func() {
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait()
	})
	return p
}

// Real processes, over TCP and shared memory, killed by SIGKILL at random moments: the
// others get the right results.
func TestProcessesAreKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	trials := 4
	if testutil.Full.On() {
		trials = 400 // 1,000 processes are killed
	}
	var sharing atomic.Int32
	for trial := range trials {
		const size, rounds = 6, 40
		processes := startJob(t, size, rounds)
		victims := rng.Perm(size)[:1+trial%4]
		var watching sync.WaitGroup
		for r, p := range processes {
			dies := -1
			if slices.Contains(victims, r) {
				dies = rng.IntN(rounds)
			}
			pause := time.Duration(rng.IntN(2000)) * time.Microsecond
			watching.Go(func() {
				last := ""
				for last = range p.lines {
					switch last {
					case fmt.Sprint("round ", dies):
						time.Sleep(pause)
						_ = p.cmd.Process.Kill()
					case sharedMemory:
						sharing.Add(1)
					}
				}
				if dies < 0 && last != "over" {
					t.Errorf("seed %d, victims %v: rank %d ended with %q", seed, victims, r, last)
				}
			})
		}
		watching.Wait()
		for _, p := range processes {
			_ = p.cmd.Wait() // now, and not when all trials are over
		}
	}
	if runtime.GOOS == "linux" && sharing.Load() == 0 {
		t.Error("no process has shared memory")
	}
	t.Logf("%d processes shared memory at the end of their job", sharing.Load())
}

// A process that is killed before it has connected to any other does not make the others
// wait for it to start: it had inherited its socket, so a refused connection tells.
func TestProcessDiesBeforeItConnects(t *testing.T) {
	processes := startJob(t, 4, 3)
	if err := processes[3].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for r, p := range processes[:3] {
		last := ""
		for last = range p.lines {
		}
		if last != "over" {
			t.Errorf("rank %d ended with %q", r, last)
		}
	}
}

// heldJob makes two calls with work between them, which it announces, and which lasts until there is a file.
func heldJob(ctx context.Context, w *pleach.World, file string) error {
	defer w.Hold()()
	n := w.Size()
	var received results[[][]int64]
	parts := func(task int) [][]int64 {
		all := make([][]int64, n)
		for i := range all {
			all[i] = slices.Repeat([]int64{int64(task * i)}, 10_000)
		}
		return all
	}
	work := func(task int, got [][]int64) []int64 {
		sum := int64(task)
		for _, x := range slices.Concat(got...) {
			sum += x
		}
		return []int64{sum}
	}
	mine, err := collective.Alltoall(ctx, w, parts(w.Rank()), collective.Takeover(received.put),
		collective.Restore(func(_ context.Context, task int) ([][]int64, error) { return parts(task), nil }))
	if err != nil {
		return err
	}
	fmt.Println("works")
	if w.Rank() < n-1 { // the last one waits in the next call, and asks for progress
		testutil.Within(time.Minute, func() bool {
			_, err := os.Stat(file)
			return err == nil
		})
	}
	sum, err := collective.Allreduce(ctx, w, work(w.Rank(), mine), collective.Sum[int64](),
		collective.Restore(func(ctx context.Context, task int) ([]int64, error) {
			got, err := received.get(ctx, task)
			return work(task, got), err
		}))
	if err != nil {
		return err
	}
	if tasks := int64(n * (n - 1) / 2); sum[0] != tasks+10_000*tasks*tasks {
		return fmt.Errorf("the sum is %d, want %d", sum[0], tasks+10_000*tasks*tasks)
	}
	return nil
}

// Real processes that have received their parts, and are killed by SIGKILL in the middle of
// their work: the others do it with what the victims had received.
func TestHoldProcessesAreKilled(t *testing.T) {
	const size = 4
	for _, victims := range [][]int{{0}, {2}, {1, 2}} { // 2 is to take over what 1 had
		file := filepath.Join(t.TempDir(), "end of work")
		var watching, killing sync.WaitGroup
		killing.Add(len(victims))
		for r, p := range startProgram(t, size, heldProgram+file, 10) {
			watching.Go(func() {
				last, dies := "", slices.Contains(victims, r)
				killed := sync.OnceFunc(func() {
					if dies {
						killing.Done()
					}
				})
				defer killed()
				for last = range p.lines {
					if last == "works" && dies {
						time.Sleep(time.Duration(60+30*r) * time.Millisecond)
						_ = p.cmd.Process.Kill()
						killed()
					}
				}
				if !dies && last != "over" {
					t.Errorf("victims %v: rank %d ended with %q", victims, r, last)
				}
				if dies && last != "works" {
					t.Errorf("victims %v: rank %d was killed after %q", victims, r, last)
				}
			})
		}
		killing.Wait()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Error(err)
		}
		watching.Wait()
	}
}
