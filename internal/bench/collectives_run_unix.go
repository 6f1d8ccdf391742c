//go:build unix

package bench

import (
	"context"
	"errors"
	"time"
)

// block is what a team does in one turn: some rounds, each a barrier and then the
// operation.
type block struct {
	matter
	rounds   int
	strength string
}

// team is as many processes as there are members, which wait between their turns
// without using a processor.
type team interface {
	// play does a block, and returns how long each round took.
	play(ctx context.Context, b block) ([]time.Duration, error)
	close() error
}

const (
	// innings is how often systems take turns at one matter.
	innings = 8
	// turnTime is about how long a turn may take, and fewest how many rounds it
	// has even so.
	turnTime = 250 * time.Millisecond
	fewest   = 2
	// trial is how many rounds come first, to see how long they take.
	trial = 3
	// breath is left between turns, for what a system still has to do.
	breath = 15 * time.Millisecond
)

// MeasureCollectives measures. Without says why Open MPI was not measured, if it
// was to be. If ctx ends first, it returns what was measured until then, with
// ctx's error.
func MeasureCollectives(ctx context.Context, c Collectives) (results []CollectiveResult, without string, err error) {
	if err := c.Check(); err != nil {
		return nil, "", err
	}
	var mpi *openMPI
	if c.OpenMPI {
		if mpi, without, err = buildOpenMPI(ctx); err != nil {
			return nil, "", err
		}
		defer mpi.remove()
	}
	done := 0
	for _, n := range c.Members {
		err := c.among(ctx, n, mpi, func(some []CollectiveResult) {
			results = append(results, some...)
			if done++; c.Progress != nil {
				c.Progress(done)
			}
		})
		if err != nil {
			return results, without, err
		}
	}
	return results, without, nil
}

// among measures with some number of members.
func (c *Collectives) among(ctx context.Context, n int, mpi *openMPI, report func([]CollectiveResult)) (err error) {
	ours, err := newPleachTeam(ctx, c.Command, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	var theirs *mpiTeam
	if mpi != nil {
		if theirs, err = mpi.start(n); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, theirs.close()) }()
	}
	for _, m := range c.matters() {
		all := []*player{{team: ours, system: "pleach", strength: strengthRunThrough}}
		if theirs != nil {
			all = append(all, &player{team: theirs, system: systemOpenMPI})
		}
		all = append(all, &player{team: ours, system: "pleach", strength: strengthPlain})
		if err := c.contest(ctx, m, all); err != nil {
			return err
		}
		report(collectiveResults(m, n, all))
	}
	return nil
}

// contest lets all take turns at a matter.
func (c *Collectives) contest(ctx context.Context, m matter, all []*player) error {
	rounds := max(1, c.Rounds/innings)
	for _, one := range all {
		took, err := one.turn(ctx, m, trial)
		if err != nil {
			return err
		}
		// The first is of buffers and connections that are not there yet.
		rounds = min(rounds, max(fewest, int(turnTime/max(1, took[trial-1]))))
	}
	for range innings {
		for _, one := range all {
			took, err := one.turn(ctx, m, rounds)
			if err != nil {
				return err
			}
			one.took = append(one.took, took...)
		}
	}
	return nil
}

func (c *player) turn(ctx context.Context, m matter, rounds int) ([]time.Duration, error) {
	time.Sleep(breath)
	return c.team.play(ctx, block{m, rounds, c.strength})
}
