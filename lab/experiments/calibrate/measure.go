package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/protocol"
)

// Spread is a measured time: the median, and where four fifths of all lie.
type Spread struct{ Median, P10, P90 time.Duration }

// Network is what was measured.
type Network struct {
	// Hop is half a round trip, 2o + L.
	Hop Spread
	// Overhead is o, per message of a burst.
	Overhead Spread
	// Latency is L, by the medians of both; 0 if overheads are all there is.
	Latency time.Duration
	// Bandwidth is 1/G, in bytes per second: what long messages take beyond short ones.
	Bandwidth float64
}

// networkOf computes the parameters from the times of round trips, of bursts whose last
// message is answered, and of round trips of which one way is long.
func networkOf(roundTrips, bursts []time.Duration, burst int, longs []time.Duration, long int) (n Network) {
	trip := spread(roundTrips)
	n.Hop = Spread{trip.Median / 2, trip.P10 / 2, trip.P90 / 2}
	for i, took := range bursts {
		// The first of them is on its way while the others are sent.
		bursts[i] = max(took-trip.Median, 0) / time.Duration(burst-1)
	}
	n.Overhead = spread(bursts)
	n.Latency = max(n.Hop.Median-2*n.Overhead.Median, 0)
	n.Bandwidth = float64(long) / max(spread(longs).Median-trip.Median, 1).Seconds()
	return n
}

// What is measured: pings one after the other, then bursts of messages of which
// the last is answered, of short and of long ones. A burst must be short enough to fit every
// queue.
const (
	warmup        = 300
	pings         = 3000
	bursts        = 300
	burst         = 64
	longBursts    = 100
	longBurst     = 4
	longFrame     = 64 << 10
	size          = 64 // bytes, a small broadcast's frame
	answerTimeout = 10 * time.Second
)

// Measure measures the way to an [Echo] at an address.
func Measure(ctx context.Context, address string) (Network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // it need not be found
	if err != nil {
		return Network{}, err
	}
	t, err := tcp.New(tcp.Config{Group: group, Rank: asks, Open: true, Listener: l, Addresses: []string{"", address}})
	if err != nil {
		return Network{}, err
	}
	m := &meter{transport: t, answers: make(chan struct{}, 1), lost: make(chan error, 1)}
	if err := t.Start(m); err != nil {
		return Network{}, err
	}
	defer t.Close()
	return m.measure(ctx)
}

// meter sends, and waits for answers.
type meter struct {
	transport *tcp.Transport
	answers   chan struct{}
	lost      chan error
}

func (m *meter) measure(ctx context.Context) (n Network, err error) {
	for range warmup {
		if _, err := m.send(ctx, 1, size); err != nil {
			return n, err
		}
	}
	trips, each, longs := make([]time.Duration, pings), make([]time.Duration, bursts), make([]time.Duration, longBursts)
	for i := range trips {
		trips[i], err = m.send(ctx, 1, size)
		if err != nil {
			return n, err
		}
	}
	for i := range each {
		each[i], err = m.send(ctx, burst, size)
		if err != nil {
			return n, err
		}
	}
	for i := range longs {
		longs[i], err = m.send(ctx, longBurst+1, longFrame)
		if err != nil {
			return n, err
		}
	}
	return networkOf(trips, each, burst, longs, longBurst*longFrame), nil
}

// send sends so many messages back to back and waits for the answer to the last, which is
// short.
func (m *meter) send(ctx context.Context, messages, bytes int) (time.Duration, error) {
	frame := make([]byte, bytes)
	began := time.Now()
	for i := range messages {
		frame[0] = silent
		if i == messages-1 {
			frame = frame[:size]
			frame[0] = wantsEcho
		}
		if err := m.transport.Send(answers, frame); err != nil {
			return 0, fmt.Errorf("calibrate: %w", err)
		}
	}
	limit := time.NewTimer(answerTimeout)
	defer limit.Stop()
	select {
	case <-m.answers:
		return time.Since(began), nil
	case err := <-m.lost:
		return 0, fmt.Errorf("calibrate: no connection: %w", err)
	case <-limit.C:
		return 0, errors.New("calibrate: no answer")
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Receive implements [transport.Handler].
func (m *meter) Receive(protocol.Rank, []byte) {
	select {
	case m.answers <- struct{}{}:
	default: // not asked for: not from an Echo
	}
}

// Up implements [transport.Handler].
func (*meter) Up(protocol.Rank, uint64) {}

// Down implements [transport.Handler].
func (m *meter) Down(_ protocol.Rank, cause error) {
	select {
	case m.lost <- cause:
	default:
	}
}

// Writable implements [transport.Handler].
func (*meter) Writable(protocol.Rank) {}

func spread(times []time.Duration) Spread {
	slices.Sort(times)
	n := len(times)
	return Spread{Median: times[n/2], P10: times[n/10], P90: times[n*9/10]}
}

// Steps are L and o in whole steps of time, and how long a step is: as few as
// keep their ratio to a twentieth.
func (n *Network) Steps() (l, o protocol.Time, step time.Duration) {
	overhead := max(n.Overhead.Median, 1)
	ratio := float64(n.Latency) / float64(overhead)
	const most, exact = 10, 0.05
	for o = 1; ; o++ {
		l = protocol.Time(math.Round(ratio * float64(o)))
		if off := math.Abs(float64(l)/float64(o) - ratio); off <= exact*max(ratio, 1) || o == most {
			return l, o, overhead / time.Duration(o)
		}
	}
}
