package zones

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/experiments"
	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// The figures by size of docs/measure/scale.md, from 2^6 to 2^30 processes in as many zones as each
// has processes.

// The network is in steps of 10 µs, about what a member takes to send or to receive a
// message over TCP: 50 µs in a zone, 40 ms between zones.
const (
	stepMS = 0.01
	near   = 5
	far    = 4000
)

// sizesFile has a row for each system and size.
const sizesFile = "testdata/sizes.csv"

const sizesHeader = "system,bits,dead,engine,runs,ms,messages_between_zones,messages_per_process"

// Systems of the file beside those of the package.
const (
	// oneGroup has all processes in one zone, and one group.
	oneGroup = "one group"
	// overTCP and inMemory have all members of one group on two processors, as pleach
	// bench scale has. A message takes 10 µs at each end over TCP, and 5 µs in memory.
	overTCP  = "two processors 10 µs"
	inMemory = "two processors 5 µs"
)

// sized is a row of the file.
type sized struct {
	system                   string
	bits                     int
	dead                     bool // one process in a thousand, and a lead
	engine                   string
	runs                     int
	ms, between, messagesPer float64
}

func (s *sized) String() string {
	dead := "none"
	if s.dead {
		dead = "some"
	}
	return fmt.Sprintf("%s,%d,%s,%s,%d,%.5g,%.6g,%.4g", s.system, s.bits, dead, s.engine, s.runs, s.ms, s.between, s.messagesPer)
}

// The figures of docs/measure/scale.md are what the simulator shows: all of them with PLEACH_FULL,
// which takes some minutes and 3 GB, else small ones.
func TestSizes(t *testing.T) {
	if testutil.Full.On() {
		file := sizesHeader + "\n"
		for _, row := range simulateSizes(t, 30) {
			file += row + "\n"
		}
		testutil.GoldenFile(t, sizesFile, []byte(file))
		return
	}
	recorded, err := os.ReadFile(sizesFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range simulateSizes(t, 8) {
		if !bytes.Contains(recorded, []byte("\n"+row+"\n")) {
			t.Errorf("%s lacks %s", sizesFile, row)
		}
	}
}

// simulateSizes simulates all systems up to a size. Flat groups and gossip with dead
// processes end where not every message can be simulated.
func simulateSizes(t *testing.T, most int) (rows []string) {
	t.Helper()
	add := func(s *sized) {
		t.Log(s)
		rows = append(rows, s.String())
	}
	for bits := 6; bits <= min(12, most); bits += 2 {
		add(simulateHost(t, overTCP, bits, 10_000))
		add(simulateHost(t, inMemory, bits, 5_000))
	}
	for bits := 6; bits <= most; bits += 2 {
		add(simulateGroup(t, bits))
		for _, system := range []string{Fleet, Flat, Gossip} {
			add(simulateSize(t, system, bits, false))
			if system == Fleet || bits <= 20 {
				add(simulateSize(t, system, bits, true))
			}
		}
	}
	return rows
}

// sizeScenario is a broadcast to 2^bits processes. Beyond 2^20, the sparse engine simulates zones.
func sizeScenario(system string, bits int, dead bool) *Scenario {
	size, half := protocol.Rank(1)<<bits, protocol.Rank(1)<<(bits/2)
	s := &Scenario{
		Layout: Layout{Zones: half, Members: size / half, Delegates: 3},
		L:      near, O: 1, FarL: far, FarO: 1,
		Shape: topology.Optimal(near, 1), BackboneShape: topology.Optimal(far, 1), FlatShape: topology.Optimal(far, 1),
		Runs: 1, Seed: 1,
	}
	if dead {
		s.Faults = Faults{Dead: int(size / 1000), DeadLeads: 1}
	}
	if dead || system == Gossip { // else every run is the same
		s.Runs = max(1, min(10, 1<<21>>bits))
	}
	if bits > 20 {
		s.Correction, s.Start = "safe:2", broadcast.Synchronized
	}
	return s
}

// simulateSize simulates zones, a flat group or gossip.
func simulateSize(t *testing.T, system string, bits int, dead bool) *sized {
	t.Helper()
	s := sizeScenario(system, bits, dead)
	s.mustCheck(t)
	run := func() (*Report, error) { return s.Run(context.Background(), system, nil) }
	if system == Flat && bits > 20 {
		run = s.modelFlat
	}
	r, err := run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Unreached.Processes > r.CutOff {
		t.Errorf("%s, 2^%d: %d processes are not reached", system, bits, r.Unreached.Processes)
	}
	return &sized{system, bits, dead, r.Engine, r.Runs, r.Coloring.Mean * stepMS, r.WANMessages.Mean, r.MessagesPerProcess.Mean}
}

// simulateGroup simulates one group in one zone, a processor for each process.
func simulateGroup(t *testing.T, bits int) *sized {
	t.Helper()
	s := experiments.Scenario{
		Size: 1 << bits, L: near, O: 1, Dissemination: "tree", Shape: topology.Optimal(near, 1), Order: topology.Interleaved,
		Correction: "safe:2", Start: broadcast.Synchronized, Runs: 1, Seed: 1,
	}
	r, err := s.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &sized{oneGroup, bits, false, r.Engine, r.Runs, r.Coloring.Mean * stepMS, 0, r.MessagesPerProcess.Mean}
}

// simulateHost simulates one group whose members share two processors: the machines that
// members run, as in docs/measure/overload.md. A message takes that many nanoseconds at each end.
func simulateHost(t *testing.T, system string, bits int, overhead protocol.Time) *sized {
	t.Helper()
	o := experiments.Overload{
		Size: 1 << bits, Processors: 2, Overhead: overhead, Latency: 20_000,
		Broadcasts: 20, Warmup: 20, Pause: 2_000_000, Seed: 1,
	}
	r, err := o.Run()
	if err != nil {
		t.Fatal(err)
	}
	return &sized{system, bits, false, "machines", len(r.Times), float64(r.Times[len(r.Times)/2]) / 1e6, 0, r.Messages}
}
