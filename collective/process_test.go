package collective_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
)

const jobProgram = "PLEACH_TEST_JOB"

// runJob is a process of a job: rounds of collectives, of which each result is
// checked. It says which round it is in.
func runJob(config string) error {
	rounds, err := strconv.Atoi(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	for round := range rounds {
		fmt.Println("round", round)
		if err := jobRound(ctx, w, round); err != nil {
			return err
		}
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
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
	addresses, files := make([]string, size), make([]*os.File, size)
	for r := range files {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[r] = l.Addr().String()
		if files[r], err = l.(*net.TCPListener).File(); err != nil {
			t.Fatal(err)
		}
		defer files[r].Close()
	}
	processes := make([]*process, size)
	for r := range processes {
		cmd := exec.Command(os.Args[0])
		cmd.ExtraFiles = []*os.File{files[r]}
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), "PLEACH_LISTEN_FD=3", jobProgram+"="+strconv.Itoa(rounds), "PLEACH_GROUP=job",
			"PLEACH_RANK="+strconv.Itoa(r), "PLEACH_SIZE="+strconv.Itoa(size), "PLEACH_ADDRESSES="+strings.Join(addresses, ","))
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p := &process{cmd, make(chan string, 10*rounds)}
		processes[r] = p
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
	}
	return processes
}

// Real processes, over TCP, killed by SIGKILL at random moments: the others get
// the right results.
func TestProcessesAreKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for trial := range 4 {
		const size, rounds = 6, 40
		processes := startJob(t, size, rounds)
		victims := rng.Perm(size)[:1+trial]
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
					if last == fmt.Sprint("round ", dies) {
						time.Sleep(pause)
						_ = p.cmd.Process.Kill()
					}
				}
				if dies < 0 && last != "over" {
					t.Errorf("seed %d, victims %v: rank %d ended with %q", seed, victims, r, last)
				}
			})
		}
		watching.Wait()
	}
}
