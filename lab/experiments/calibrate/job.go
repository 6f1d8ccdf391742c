package calibrate

// What messages cost a collective call, which polls before it sleeps, and which has shared
// memory on one host: two processes of a job answer each other by broadcasts.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/collective"
)

// MeasureJob measures between two processes of a job on this host. It starts this program
// twice, with these arguments: the processes are to call [Member].
func MeasureJob(ctx context.Context, args []string) (n Network, err error) {
	sockets, err := launch.Listen(group, 2)
	if err != nil {
		return n, err
	}
	defer sockets.Close()
	output, write, err := os.Pipe()
	if err != nil {
		return n, err
	}
	defer output.Close()
	var processes []*launch.Process
	for rank := range 2 {
		p, err := sockets.Start(rank, launch.Command{Args: args, Stdout: write, Stderr: os.Stderr, Input: true})
		if err != nil {
			write.Close()
			launch.Stop(processes)
			return n, err
		}
		processes = append(processes, p)
	}
	write.Close()
	defer launch.Stop(processes)
	defer context.AfterFunc(ctx, func() { launch.Kill(processes) })()
	if err := json.NewDecoder(output).Decode(&n); err != nil {
		return n, errors.Join(ctx.Err(), fmt.Errorf("calibrate: the processes of a job have measured nothing: %w", err))
	}
	return n, nil
}

// Member is a process that [MeasureJob] starts. Without shared memory the processes use TCP.
func Member(ctx context.Context, w io.Writer, shared bool) error {
	c := pleach.Config{}
	if !shared {
		c.Limits.SharedBytes = -1
	}
	world, err := pleach.NewWorld(ctx, c)
	if err != nil {
		return err
	}
	n, err := (&pinger{world}).measure(ctx)
	if err == nil {
		err = world.Finalize(ctx)
	}
	if err != nil || world.Rank() != 0 {
		return err
	}
	return json.NewEncoder(w).Encode(n)
}

// pinger is one of the two processes.
type pinger struct{ world *pleach.World }

// A burst is answered before so many calls are not complete everywhere that the process
// would wait for the other one.
const (
	callPings, callBursts, callBurst = 2000, 200, 64
	longPings                        = 100
	longMessage                      = 256 << 10 // is sent whole
)

// measure measures as [Measure] does: both processes make the same calls, and the times of
// rank 0 count.
func (p *pinger) measure(ctx context.Context) (n Network, err error) {
	short, long := make([]byte, size), make([]byte, longMessage)
	if _, err := p.rounds(ctx, callPings/2, 1, short); err != nil { // warm-up
		return n, err
	}
	hops, err := p.rounds(ctx, callPings, 1, short)
	if err != nil {
		return n, err
	}
	bursts, err := p.rounds(ctx, callBursts, callBurst, short)
	if err != nil {
		return n, err
	}
	if _, err := p.rounds(ctx, longPings/4, 1, long); err != nil {
		return n, err
	}
	longs, err := p.rounds(ctx, longPings, 1, long)
	if err != nil {
		return n, err
	}
	return networkOf(hops, bursts, callBurst, longs, longMessage), nil
}

// rounds returns how long rounds take in which rank 0 sends a burst of messages, of which
// rank 1 answers the last one.
func (p *pinger) rounds(ctx context.Context, rounds, burst int, message []byte) ([]time.Duration, error) {
	took := make([]time.Duration, rounds)
	into, answer := make([]byte, len(message)), make([]byte, size)
	for i := range took {
		began := time.Now()
		for range burst {
			if _, err := collective.Broadcast(ctx, p.world, 0, message, collective.Report(), collective.Into(into)); err != nil {
				return nil, err
			}
		}
		if _, err := collective.Broadcast(ctx, p.world, 1, answer, collective.Report(), collective.Into(into)); err != nil {
			return nil, err
		}
		took[i] = time.Since(began)
	}
	return took, nil
}
