package order

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/lab/bench"
)

// System is what can be measured besides the systems of this package.
type System struct {
	Name string
	// Senders is how many goroutines of each member send at full rate: as many as are worth it
	// where each waits for its message.
	Senders int
	// Start starts as many members.
	Start func(ctx context.Context, members int) (Started, error)
}

// Started is a group of members, or of servers, that is measured.
type Started interface {
	// Send sends a message of a member, and returns when it is on its way or, with etcd, done.
	Send(ctx context.Context, member int, data []byte) error
	// Received returns how many messages a member has received.
	Received(member int) int
	// Await waits until all members have received what was sent, one message.
	Await(ctx context.Context) error
	Close()
}

// builtin are the systems of this package.
func builtin() []System {
	group := func(name string) System {
		return System{name, 1, func(ctx context.Context, members int) (Started, error) {
			return startGroup(ctx, name,
				members)
		}}
	}
	return []System{group(Broadcast), group(Order), group(Safe), {Etcd, 32, startEtcd}}
}

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

// system returns the system of a name; that of a caller counts before those of this package.
func (c *Config) system(name string) (System, error) {
	for _, s := range append(slices.Clone(c.External), builtin()...) {
		if s.Name == name {
			return s, nil
		}
	}
	return System{}, fmt.Errorf("there is no system %q", name)
}

func (c *Config) measure(ctx context.Context, name string, members, size int) (Result, error) {
	system, err := c.system(name)
	if err != nil {
		return Result{}, err
	}
	s, err := system.Start(ctx, members)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	r := Result{System: name, Members: members, Size: size}
	times, err := c.times(ctx, s, size)
	if err != nil {
		return r, err
	}
	r.P50, r.P99 = bench.Micros(bench.Percentile(times, 50)), bench.Micros(bench.Percentile(times, 99))
	r.Rate = bench.Round(c.rate(ctx, s, members, size, system.Senders), 0)
	return r, ctx.Err()
}

// times sends one message after the other from the second member, which does not lead.
func (c *Config) times(ctx context.Context, s Started, size int) (times []time.Duration, err error) {
	data := make([]byte, size)
	for n := range c.Messages + c.Messages/10 {
		began := time.Now()
		if err := s.Send(ctx, 1, data); err != nil {
			return nil, err
		}
		if err := s.Await(ctx); err != nil {
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
func (c *Config) rate(ctx context.Context, s Started, members, size, senders int) float64 {
	ctx, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	before := make([]int, members)
	for m := range before {
		before[m] = s.Received(m)
	}
	began := time.Now()
	var sending sync.WaitGroup
	for m := range members {
		for range senders {
			sending.Go(func() {
				data := make([]byte, size)
				for s.Send(ctx, m, data) == nil {
				}
			})
		}
	}
	<-ctx.Done()
	took := time.Since(began).Seconds()
	least := s.Received(0) - before[0]
	for m := range before {
		least = min(least, s.Received(m)-before[m])
	}
	sending.Wait()
	return float64(least) / took
}

// WriteTable writes results for people.
func WriteTable(w io.Writer, results []Result) error {
	if _, err := fmt.Fprintf(w, "%-10s %8s %8s %10s %10s %12s\n", "", "members", "bytes", "p50 µs", "p99 µs",
		"messages/s"); err != nil {
		return err
	}
	for _, r := range results {
		if _, err := fmt.Fprintf(w, "%-10s %8d %8d %10.1f %10.1f %12.0f\n", r.System, r.Members, r.Size, r.P50, r.P99,
			r.Rate); err != nil {
			return err
		}
	}
	return nil
}
