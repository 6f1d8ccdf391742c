package collectives

import (
	"context"
	"errors"
	"time"
)

// block is some rounds of a case, each a barrier and then the operation.
type block struct {
	testcase
	rounds int
	mode   string
}

// runner is the processes of a system. Between blocks they wait without using a
// processor.
type runner interface {
	// run runs a block.
	run(ctx context.Context, b block) (measured, error)
	close() error
}

const (
	// blocks is how many blocks of each system there are in a case.
	blocks = 8
	// blockTime is about how long a block may take, and fewest how many rounds it
	// has even so.
	blockTime = 250 * time.Millisecond
	fewest    = 3
	// warmUp is how many rounds come first, to see how long a round takes.
	warmUp = 3
	// settleTime is about how long a block runs before its rounds count, in at most
	// maxSettle rounds. Until then the system may still have to give processes that it has
	// woken together processors of their own.
	settleTime = 20 * time.Millisecond
	maxSettle  = 300
	// rest comes before a block, for what the last system still has to do.
	rest = 15 * time.Millisecond
)

// Run measures all cases of a config. If Open MPI was to be measured and was not,
// without says why. If ctx ends first, Run returns what was measured until then,
// with ctx's error.
func Run(ctx context.Context, c Config) (results []Result, without string, err error) {
	if err := c.Check(); err != nil {
		return nil, "", err
	}
	var mpi *openMPI
	if c.OpenMPI {
		mpi, without, err = buildOpenMPI(ctx)
		if err != nil {
			return nil, "", err
		}
		defer mpi.remove()
	}
	done := 0
	for _, n := range c.Members {
		err := c.measure(ctx, n, mpi, func(some []Result) {
			results = append(results, some...)
			done++
			if c.Progress != nil {
				c.Progress(done)
			}
		})
		if err != nil {
			return results, without, err
		}
	}
	return results, without, nil
}

// measure measures all cases among some number of members.
func (c *Config) measure(ctx context.Context, n int, mpi *openMPI, report func([]Result)) (err error) {
	ours, err := newPleachRunner(ctx, c.Command, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	systems := []systemUnderTest{{runner: ours, system: "pleach", mode: modeRunThrough}}
	for _, system := range mpi.systems() {
		theirs, startErr := mpi.start(system, n)
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, theirs.close()) }()
		systems = append(systems, systemUnderTest{runner: theirs, system: system})
	}
	systems = append(systems, systemUnderTest{runner: ours, system: "pleach", mode: modeReport})
	for _, m := range c.testcases() {
		var all []*systemUnderTest
		for _, s := range systems {
			all = append(all, &s)
		}
		if err := c.interleave(ctx, m, all); err != nil {
			return err
		}
		report(summarize(m, n, all))
	}
	return nil
}

// interleave measures all systems in a case, block by block.
func (c *Config) interleave(ctx context.Context, m testcase, all []*systemUnderTest) error {
	rounds, settle := max(fewest, c.Rounds/blocks), maxSettle
	for _, one := range all {
		first, err := one.measure(ctx, m, warmUp)
		if err != nil {
			return err
		}
		// The first round makes buffers and connections.
		round := max(1, first.took[warmUp-1])
		rounds = min(rounds, max(fewest, int(blockTime/round)))
		settle = min(settle, max(1, int(settleTime/round)))
	}
	for range blocks {
		for _, one := range all {
			block, err := one.measure(ctx, m, settle+rounds)
			if err != nil {
				return err
			}
			one.add(block, settle)
		}
	}
	return nil
}

func (c *systemUnderTest) measure(ctx context.Context, m testcase, rounds int) (measured, error) {
	time.Sleep(rest)
	return c.runner.run(ctx, block{m, rounds, c.mode})
}
