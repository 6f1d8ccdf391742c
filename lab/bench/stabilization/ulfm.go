package stabilization

import (
	"context"
	"math/rand/v2"

	"github.com/pleach-go/pleach/lab/bench/ulfm"
)

// ulfmRounds is how often Pleach and ULFM take turns.
const ulfmRounds = 5

// RunBesideULFM measures Pleach's kills and as many of an ULFM program, in turns, so
// that other load of the host falls on both alike. Only one of them runs at a time.
// What was measured before a failure is returned with it.
func RunBesideULFM(ctx context.Context, c Config, p *ulfm.Program) (Result, ulfm.Result, error) {
	rng := rand.New(rand.NewPCG(c.Seed, 1))
	var sum Result
	var kills []ulfm.Kill
	var err error
	for round := range ulfmRounds {
		turn := c.turn(round, ulfmRounds)
		if turn.Kills == 0 {
			continue
		}
		if before := sum.Kills; c.Progress != nil {
			turn.Progress = func(done int) { c.Progress(before + done) }
		}
		var r Result
		r, err = Run(ctx, turn)
		sum = c.merge(sum, r)
		for i := 0; i < turn.Kills && err == nil; i++ {
			var k ulfm.Kill
			k, err = p.Kill(ctx, c.Members, c.victim(rng))
			if err == nil {
				kills = append(kills, k)
			}
		}
		if err != nil {
			break
		}
	}
	return sum, p.Summarize(c.Members, kills, sum.P50), err
}
