//go:build unix

package logp_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// BenchmarkBroadcast is one simulated broadcast: binomial tree, synchronized
// checked correction, 1% dead, L = 2, o = 1. flogsim, the authors' simulator,
// takes 3–4 s and 555 MB for P = 65,536. P = 2^24 must fit 8 GiB.
func BenchmarkBroadcast(b *testing.B) {
	for _, bits := range []int{10, 16, 20, 24} {
		size := protocol.Rank(1) << bits
		b.Run(fmt.Sprintf("P=%d", size), func(b *testing.B) { benchmarkBroadcast(b, size) })
	}
}

func benchmarkBroadcast(b *testing.B, size protocol.Rank) {
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, 0)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := broadcast.NewPlan(broadcast.Config{
		Size: size, Dissemination: broadcast.Tree{Tree: tree}, Correction: broadcast.Checked{},
		Start: broadcast.Synchronized, At: topology.FinishTime(tree, 2, 1),
	})
	if err != nil {
		b.Fatal(err)
	}
	sim, err := logp.NewSimulator[broadcast.Body](logp.Params{L: 2, O: 1})
	if err != nil {
		b.Fatal(err)
	}
	group := plan.Group()
	sim.Initiators = group.Initiators()
	b.ReportAllocs()
	began := cpuTime(b)
	var messages int64
	for seed := uint64(0); b.Loop(); seed++ {
		dead := logp.RandomDead(size, 0, int(size/100), seed)
		r, err := sim.Run(group.Machines(seed), logp.Faults{Dead: dead})
		if err != nil {
			b.Fatal(err)
		}
		messages += r.Total()
	}
	cpu := float64(cpuTime(b) - began)
	b.ReportMetric(cpu/float64(messages), "cpu-ns/message")
	b.ReportMetric(cpu/float64(b.N)/1e6, "cpu-ms/op")
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.Sys)/1e6, "MB-of-process")
}

// cpuTime is the CPU time this process has used: on a busy machine the measure
// of work that elapsed time is not.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
