package broadcast

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// fake is a system that does with a message what it is told.
type fake struct {
	members  int
	arrived  func(rank int, payload []byte)
	send     func(f *fake, round int, payload []byte) error
	sent     int
	last     []byte
	closed   *bool
	messages uint64
}

func fakeSystem(closed *bool, send func(f *fake, round int, payload []byte) error) System {
	return System{Name: "fake", Start: func(_ context.Context, members int, arrived func(int, []byte)) (Started, error) {
		return &fake{members: members, arrived: arrived, send: send, closed: closed}, nil
	}}
}

func (f *fake) all(payload []byte) {
	for rank := range f.members {
		f.messages++
		f.arrived(rank, payload)
	}
}

func (f *fake) Broadcast(_ context.Context, payload []byte) error {
	err := f.send(f, f.sent, payload)
	f.sent, f.last = f.sent+1, payload
	return err
}
func (f *fake) Counts() (messages, bytes uint64) { return f.messages, 0 }
func (f *fake) Close() error                     { *f.closed = true; return nil }

func runFake(t *testing.T, rounds int, send func(f *fake, round int, payload []byte) error) (Result, error) {
	t.Helper()
	closed := false
	results, err := Run(t.Context(), Config{
		Systems: []string{"fake"}, External: []System{fakeSystem(&closed, send)},
		Members: 4, Dead: []int{0}, Size: 8, Rounds: rounds,
	})
	if !closed {
		t.Error("not closed")
	}
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

func TestExternal(t *testing.T) {
	r, err := runFake(t, 10, func(f *fake, _ int, payload []byte) error { f.all(payload); return nil })
	if err != nil || r.Complete != 10 || r.Rounds != 10 || r.P50 <= 0 || r.Messages != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What comes twice, or late, does not stand for what has not come.
func TestExternalCountsRoundsOnlyOnce(t *testing.T) {
	first := leastWarmUp
	r, err := runFake(t, 3, func(f *fake, round int, payload []byte) error {
		switch round {
		case first: // rank 3 does not get it, and the others get it twice
			for _, rank := range []int{0, 1, 2, 1, 2, 1} {
				f.arrived(rank, payload)
			}
		case first + 1: // it gets it now, instead of the next
			f.arrived(3, f.last)
			f.arrived(1, payload)
			f.arrived(2, payload)
			f.arrived(1, f.last)
			f.arrived(1, payload)
		default:
			f.all(payload)
		}
		return nil
	})
	if err != nil || r.Complete != 1 || r.Rounds != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestExternalFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := runFake(t, 1, func(*fake, int, []byte) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	_, err := runFake(t, 1, func(f *fake, _ int, payload []byte) error { f.all(payload[:7]); return nil })
	if err == nil || !strings.Contains(err.Error(), "7 bytes arrived") {
		t.Error(err)
	}
	s := System{Name: "fake", Start: func(context.Context, int, func(int, []byte)) (Started, error) { return nil, broken }}
	c := Config{Systems: []string{"fake"}, External: []System{s}, Members: 4, Dead: []int{0}, Size: 8, Rounds: 1}
	if _, err := Run(t.Context(), c); !errors.Is(err, broken) {
		t.Error(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Size = 7 },
		func(c *Config) { c.Rate = true },
		func(c *Config) { c.Processes = true },
		func(c *Config) { c.Dead = []int{0, 1} },
	} {
		d := c
		change(&d)
		if err := d.Check(); err == nil || !strings.HasPrefix(err.Error(), "fake: can be measured only") {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestFootprint(t *testing.T) {
	const each, goroutines = 1 << 20, 2
	held := make([][]byte, 0, 4)
	end := make(chan struct{})
	defer close(end)
	for range 40 { // what was there before is not the group's
		go func() { <-end }()
	}
	closed := false
	s := fakeSystem(&closed, func(f *fake, _ int, payload []byte) error { f.all(payload); return nil })
	start := s.Start
	s.Start = func(ctx context.Context, members int, arrived func(int, []byte)) (Started, error) {
		for range members {
			held = append(held, make([]byte, each))
			for range goroutines {
				go func() { <-end }()
			}
		}
		return start(ctx, members, arrived)
	}
	results, err := Run(t.Context(), Config{
		Systems: []string{"fake"}, External: []System{s}, Footprint: true,
		Members: 4, Dead: []int{0}, Size: 8, Rounds: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Goroutines < goroutines || r.Goroutines > goroutines+1 || r.Memory < each*9/10 || r.Memory > each*3/2 {
		t.Errorf("a member holds %v goroutines and %v bytes, want %v and %v", r.Goroutines, r.Memory, goroutines, each)
	}
	if len(held) != 4 {
		t.Errorf("%d members", len(held))
	}
}
