package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// roundsProgram is a job of many short calls. At the end each process writes the results
// of the tasks that it owns, guarded by fencing tokens: it prints them. A process whose
// rank is PLEACH_FAULTS_VICTIM kills itself in the middle.
func roundsProgram(ctx context.Context, w *pleach.World) error {
	rounds, victim := number("PLEACH_FAULTS_ROUNDS", 100), number("PLEACH_FAULTS_VICTIM", -1)
	pause := durationOf("PLEACH_FAULTS_PAUSE")
	total := 0
	for round := range rounds {
		if w.Rank() == victim && round == rounds/2 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		sum, err := collective.Allreduce(ctx, w, []int{w.Rank() + round}, collective.Sum[int](),
			collective.Restore(func(_ context.Context, task int) ([]int, error) { return []int{task + round}, nil }))
		if err != nil {
			return err
		}
		total += sum[0]
		fmt.Println("round", round)
		time.Sleep(pause)
	}
	if err := w.Finalize(ctx); err != nil {
		return err
	}
	for _, task := range w.Tasks() {
		if token, owned := w.FencingToken(task); owned {
			fmt.Println("wrote", task, token, total)
		}
	}
	return nil
}

// hosts are addresses on the hosts of a network.
func hosts(n *netns.Net, count int) (addresses []string) {
	for h := range count {
		addresses = append(addresses, net.JoinHostPort(n.Address(h), "7400"))
	}
	return addresses
}

// Case 16: two processes on two hosts that cannot reach each other. Neither finishes the
// job, and both say why.
func TestCase16TwoHostsThatCannotReachEachOther(t *testing.T) {
	n := netns.New(t, 2)
	n.Cut(1)
	job := startJob(t, "rounds", hosts(n, 2), n.Command, "PLEACH_FAULTS_START=2s")
	waitJob(job)
	took := make([]int64, len(job))
	for r, p := range job {
		took[r] = p.took.Milliseconds()
		if p.err == nil || !strings.Contains(p.out.String(), "no quorum") || len(p.lines("wrote")) > 0 {
			t.Errorf("rank %d: %v\n%s", r, p.err, p.out.String())
		}
	}
	figures(t, map[string]any{"case": 16, "took_ms": took, "error": job[0].lines("error")})
}

// Case 29: four hosts are partitioned 2 : 2 in the middle of a job. One half finishes it
// and writes each task once. The other half ends with an error and writes nothing.
func TestCase29PartitionedJob(t *testing.T) {
	const size = 4
	n := netns.New(t, size)
	job := startJob(t, "rounds", hosts(n, size), n.Command, "PLEACH_FAULTS_SUSPICION=1s", "PLEACH_FAULTS_QUORUM=2s",
		"PLEACH_FAULTS_ROUNDS=200", "PLEACH_FAULTS_PAUSE=5ms")
	job[0].waitFor(t, "round 50")
	n.Partition(2, 3)
	waitJob(job)
	var written []string
	took := make([]int64, size)
	for r, p := range job {
		took[r] = p.took.Milliseconds()
		for _, line := range p.lines("wrote") {
			written = append(written, strings.Fields(line)[0])
		}
		if finishes := r < 2; finishes != (p.err == nil) || !finishes && !strings.Contains(p.out.String(), "no quorum") {
			t.Errorf("rank %d: %v\n%s", r, p.err, strings.Join(p.lines("error"), "\n"))
		}
	}
	slices.Sort(written)
	if !slices.Equal(written, []string{"0", "1", "2", "3"}) {
		t.Errorf("tasks written: %v", written)
	}
	// Twice SuspicionTimeout, and QuorumTimeout.
	testutil.Took(t, "the end of rank 3 after the cut", job[3].took, 7*time.Second)
	figures(t, map[string]any{"case": 29, "took_ms": took, "written": written, "error": job[3].lines("error")})
}
