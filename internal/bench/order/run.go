package order

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/internal/bench"
)

// system is a group of members, or of servers, that is measured.
type system interface {
	// send sends a message of a member, and returns when it is on its way or, with etcd, done.
	send(ctx context.Context, member int, data []byte) error
	// received returns how many messages a member has received.
	received(member int) int
	// await waits until all members have received what was sent, one message.
	await(ctx context.Context) error
	close()
}

// senders is how many goroutines of each member send at full rate: as many as are worth it where
// each waits for its message.
var senders = map[string]int{Broadcast: 1, Order: 1, Safe: 1, Etcd: 32}

// Run measures, with what it has if ctx ends.
func Run(ctx context.Context, c Config) (results []Result, err error) {
	for _, members := range c.Members {
		for _, size := range c.Sizes {
			for _, name := range c.Systems {
				r, err := c.measure(ctx, name, members, size)
				if err != nil {
					return results, fmt.Errorf("%s, %d members, %d bytes: %w", name, members, size, err)
				}
				results = append(results, r)
				if c.Progress != nil {
					c.Progress(len(results))
				}
			}
		}
	}
	return results, nil
}

// start starts a system.
func start(ctx context.Context, name string, members int) (system, error) {
	if name == Etcd {
		return startEtcd(ctx, members)
	}
	return startGroup(ctx, name, members)
}

func (c *Config) measure(ctx context.Context, name string, members, size int) (Result, error) {
	s, err := start(ctx, name, members)
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	r := Result{System: name, Members: members, Size: size}
	times, err := c.times(ctx, s, size)
	if err != nil {
		return r, err
	}
	r.P50, r.P99 = bench.Micros(bench.Percentile(times, 50)), bench.Micros(bench.Percentile(times, 99))
	r.Rate = bench.Round(c.rate(ctx, s, members, size, senders[name]), 0)
	return r, ctx.Err()
}

// times sends one message after the other from the second member, which does not lead.
func (c *Config) times(ctx context.Context, s system, size int) (times []time.Duration, err error) {
	data := make([]byte, size)
	for n := range c.Messages + c.Messages/10 {
		began := time.Now()
		if err := s.send(ctx, 1, data); err != nil {
			return nil, err
		}
		if err := s.await(ctx); err != nil {
			return nil, err
		}
		if n >= c.Messages/10 { // the first ones open connections
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	return times, nil
}

// rate has all members send, and returns how many messages a second the slowest has received.
func (c *Config) rate(ctx context.Context, s system, members, size, senders int) float64 {
	ctx, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	before := make([]int, members)
	for m := range before {
		before[m] = s.received(m)
	}
	began := time.Now()
	var sending sync.WaitGroup
	for m := range members {
		for range senders {
			sending.Go(func() {
				data := make([]byte, size)
				for s.send(ctx, m, data) == nil {
				}
			})
		}
	}
	<-ctx.Done()
	took := time.Since(began).Seconds()
	least := s.received(0) - before[0]
	for m := range before {
		least = min(least, s.received(m)-before[m])
	}
	sending.Wait()
	return float64(least) / took
}

// WriteTable writes results for people.
func WriteTable(w io.Writer, results []Result) error {
	if _, err := fmt.Fprintf(w, "%-10s %8s %8s %10s %10s %12s\n", "", "members", "bytes", "p50 µs", "p99 µs", "messages/s"); err != nil {
		return err
	}
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "%-10s %8d %8d %10.1f %10.1f %12.0f\n", r.System, r.Members, r.Size, r.P50, r.P99, r.Rate); err != nil {
			return err
		}
	}
	return nil
}
