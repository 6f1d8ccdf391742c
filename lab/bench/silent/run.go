package silent

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/lab/bench"
)

// Run measures all systems of a config. If ctx ends first, it returns what was measured
// until then, with ctx's error.
func Run(ctx context.Context, c Config) (results []Result, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	for run := range c.Runs {
		for _, system := range c.Systems {
			r, err := measure(ctx, &c, system)
			if err != nil {
				return results, err
			}
			r.Run = run + 1
			results = append(results, r)
			if c.Progress != nil {
				c.Progress(len(results))
			}
		}
	}
	return results, nil
}

// group is all members of a system, each a process.
type group struct {
	system  string
	members []*process
}

// process is that of one member.
type process struct {
	*launch.Process
	answers *bufio.Scanner
	output  *io.PipeWriter
}

// How long a group rests before the root begins, so that connections are open, and after
// it has ended, so that what can arrive does.
const (
	settleTime = 700 * time.Millisecond
	drainTime  = time.Second
)

// measure runs one group of a system.
func measure(ctx context.Context, c *Config, system string) (_ Result, err error) {
	g, err := startGroup(c, system)
	defer func() { g.kill() }()
	if err != nil {
		return Result{}, err
	}
	all := func(int) bool { return true }
	if _, err := g.read(ctx, all); err != nil { // they are ready
		return Result{}, err
	}
	live := func(rank int) bool { return !slices.Contains(c.Silent, rank) }
	steps := []struct {
		wait time.Duration
		to   func(rank int) bool
		do   order
	}{
		{settleTime, all, order{Do: "begin", Interval: c.Interval, Size: c.Size}},
		{c.Before, live, order{Do: "mark"}}, // and then some are stopped
		{c.After, live, order{Do: "end"}},
		{drainTime, live, order{Do: "report"}},
	}
	var stopped time.Time
	var reports map[int]report
	for _, s := range steps {
		select {
		case <-ctx.Done():
			return Result{}, ctx.Err()
		case <-time.After(s.wait):
		}
		reports, err = g.tell(ctx, s.to, s.do)
		if err != nil {
			return Result{}, err
		}
		if s.do.Do == "mark" {
			g.suspend(c.Silent)
			stopped = time.Now()
		}
	}
	return evaluate(c, system, stopped.UnixNano(), reports), nil
}

// startGroup starts a process for each member.
func startGroup(c *Config, system string) (*group, error) {
	g := &group{system: system}
	sockets, err := launch.Listen("silent", c.Members)
	if err != nil {
		return g, err
	}
	defer sockets.Close()
	for rank := range c.Members {
		in, out := io.Pipe()
		p, err := sockets.Start(rank, launch.Command{
			Args: append(slices.Clone(c.Command), system), Input: true, Stdout: out,
			Stderr: os.Stderr,
		})
		if err != nil {
			return g, err
		}
		one := &process{Process: p, answers: bufio.NewScanner(in), output: out}
		one.answers.Buffer(nil, maxReport)
		go func() { // its answers end with it
			<-p.Ended()
			out.Close()
		}()
		g.members = append(g.members, one)
	}
	return g, nil
}

// maxReport bounds an answer.
const maxReport = 64 << 20

// suspend stops members. Their sockets stay open.
func (g *group) suspend(ranks []int) {
	for _, rank := range ranks {
		g.members[rank].Suspend()
	}
}

// kill ends all members, stopped ones too.
func (g *group) kill() {
	for _, p := range g.members {
		p.Kill()
	}
	for _, p := range g.members {
		<-p.Ended()
		p.CloseInput()
	}
}

// tell gives an order to some members, and returns their answers.
func (g *group) tell(ctx context.Context, to func(rank int) bool, o order) (map[int]report, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	for rank, p := range g.members {
		if !to(rank) {
			continue
		}
		if _, err := p.Input().Write(append(line, '\n')); err != nil {
			return nil, fmt.Errorf("bench: %s, rank %d: %w", g.system, rank, err)
		}
	}
	return g.read(ctx, to)
}

// read reads an answer of each of some members.
func (g *group) read(ctx context.Context, of func(rank int) bool) (map[int]report, error) {
	type answer struct {
		rank int
		report
		err error
	}
	answers, waiting := make(chan answer, len(g.members)), 0
	for rank, p := range g.members {
		if !of(rank) {
			continue
		}
		waiting++
		go func() {
			a := answer{rank: rank}
			if !p.answers.Scan() {
				a.err = cmp.Or(p.answers.Err(), errors.New("its process has ended"))
			} else {
				a.err = json.Unmarshal(p.answers.Bytes(), &a.report)
			}
			answers <- a
		}()
	}
	limit := time.NewTimer(answerTimeout)
	defer limit.Stop()
	reports := make(map[int]report)
	for ; waiting > 0; waiting-- {
		select {
		case a := <-answers:
			if a.err != nil {
				return nil, fmt.Errorf("bench: %s, rank %d: %w", g.system, a.rank, a.err)
			}
			reports[a.rank] = a.report
		case <-limit.C:
			return nil, fmt.Errorf("bench: %s: %w", g.system, bench.ErrTimeout)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return reports, nil
}

// answerTimeout is how long members may take to find each other, and to answer.
const answerTimeout = time.Minute
