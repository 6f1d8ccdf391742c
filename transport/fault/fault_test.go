package fault_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/fault"
	"github.com/pleach-go/pleach/transport/mem"
)

// seed of all runs here. Counts are asked for within bounds, not exactly, so that
// another one would do.
const seed = 1

// cluster is a few wrapped members that write down what their handlers are told.
// It lives in a synctest bubble.
type cluster struct {
	t       *testing.T
	mem     *mem.Network
	fault   *fault.Network
	members []transport.Transport
	heard   []*journal
}

func newCluster(t *testing.T, size int, config fault.Config) *cluster {
	c := &cluster{t: t, mem: mem.NewNetwork(size, mem.Config{}), fault: fault.New(seed, config)}
	for i := range size {
		rank := protocol.Rank(i)
		c.members = append(c.members, nil)
		c.heard = append(c.heard, nil)
		c.start(rank, c.mem.Member(rank))
	}
	return c
}

func (c *cluster) start(rank protocol.Rank, inner transport.Transport) {
	m, j := c.fault.Wrap(rank, inner), &journal{born: time.Now()}
	if err := m.Start(j); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { m.Close() })
	c.members[rank], c.heard[rank] = m, j
}

// send sends frames first to last-1, which are their numbers.
func (c *cluster) send(from, to protocol.Rank, first, last int) {
	c.t.Helper()
	for i := first; i < last; i++ {
		if err := c.members[from].Send(to, []byte(strconv.Itoa(i))); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) run(script string) {
	c.t.Helper()
	s, err := fault.Parse(script)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.fault.Run(c.t.Context(), s); err != nil {
		c.t.Fatal(err)
	}
}

// expect asks what a rank's handler was told about a peer since the last time.
func (c *cluster) expect(rank, peer protocol.Rank, want string) {
	c.t.Helper()
	if got := strings.Join(c.heard[rank].take(peer), " "); got != want {
		c.t.Errorf("rank %d heard %q about %d, want %q", rank, got, peer, want)
	}
}

// numbers returns the frames that a rank got of another.
func (c *cluster) numbers(rank, from protocol.Rank) []int {
	var numbers []int
	for _, line := range c.heard[rank].take(from) {
		if i, err := strconv.Atoi(line); err == nil {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// balanced asks that no frame was forgotten in the books.
func (c *cluster) balanced() fault.Stats {
	c.t.Helper()
	s := c.fault.Stats()
	if s.Sent+s.Duplicated != s.Passed+s.Dropped+s.Cut+s.Overflowed+s.Refused+s.Lost {
		c.t.Errorf("frames are missing in %+v", s)
	}
	return s
}

// journal is a handler: for each peer, what it was told.
type journal struct {
	mu    sync.Mutex
	born  time.Time
	lines map[protocol.Rank][]string
	late  time.Duration // when the last frame came
}

func (j *journal) add(peer protocol.Rank, line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lines == nil {
		j.lines = make(map[protocol.Rank][]string)
	}
	j.lines[peer] = append(j.lines[peer], line)
	j.late = time.Since(j.born)
}

func (j *journal) take(peer protocol.Rank) []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines[peer]
	delete(j.lines, peer)
	return lines
}

func (j *journal) Receive(from protocol.Rank, frame []byte) { j.add(from, string(frame)) }
func (j *journal) Up(peer protocol.Rank, incarnation uint64) {
	j.add(peer, fmt.Sprintf("up.%d", incarnation))
}

func (j *journal) Down(peer protocol.Rank, cause error) {
	if errors.Is(cause, fault.ErrReset) {
		j.add(peer, "reset")
		return
	}
	j.add(peer, "down")
}
func (j *journal) Writable(peer protocol.Rank) { j.add(peer, "writable") }

func within(t *testing.T, what string, got, low, high int) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: %d, want %d to %d", what, got, low, high)
	}
}

func TestHarmlessUntilTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.send(0, 1, 0, 5)
		c.expect(1, 0, "up.1 0 1 2 3 4")
		c.expect(0, 1, "up.1")
		if got, want := c.balanced(), (fault.Stats{Sent: 5, Passed: 5}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, fault.Config{})
		c.run("drop 5%\ndrop 20% 0->1")
		c.send(0, 1, 0, 1000)
		c.send(1, 0, 0, 1000)
		got := c.numbers(1, 0)
		within(t, "of 1000 with 20% lost", len(got), 750, 850)
		within(t, "of 1000 with 5% lost", len(c.numbers(0, 1)), 925, 975)
		if !slices.IsSorted(got) {
			t.Error("order was lost")
		}
		c.run("drop 0%") // For all pairs, whatever was said of some.
		c.send(0, 1, 0, 100)
		within(t, "of 100 with none lost", len(c.numbers(1, 0)), 100, 100)
		c.balanced()
	})
}

func TestDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("duplicate 10%")
		c.send(0, 1, 0, 1000)
		got := c.numbers(1, 0)
		within(t, "of 1000 with 10% doubled", len(got), 1060, 1140)
		if !slices.IsSorted(got) {
			t.Error("order was lost")
		}
		if once := len(slices.Compact(got)); once != 1000 {
			t.Errorf("%d different frames came, want 1000", once)
		}
		c.balanced()
	})
}

func TestReorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("reorder 10% within 3ms")
		for i := range 1000 {
			c.send(0, 1, i, i+1)
			testutil.Advance(time.Millisecond)
		}
		testutil.Advance(3 * time.Millisecond)
		got := c.numbers(1, 0)
		within(t, "held back", int(c.balanced().Reordered), 60, 140)
		overtaken := 0
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1] {
				overtaken++
			}
			// Sent 1 ms apart, none can be 3 ms late and have more than 3 pass.
			within(t, "place of frame "+strconv.Itoa(got[i]), i, got[i]-3, got[i]+3)
		}
		within(t, "overtaken", overtaken, 30, 140)
		slices.Sort(got)
		if len(slices.Compact(got)) != 1000 {
			t.Errorf("%d frames came, want 1000", len(got))
		}
	})
}

func TestDelayKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("delay 10ms jitter 20ms")
		c.send(0, 1, 0, 1)
		testutil.Advance(10*time.Millisecond - 1)
		c.expect(1, 0, "")
		testutil.Advance(20*time.Millisecond + 1)
		c.expect(1, 0, "up.1 0")
		for i := range 200 {
			c.send(0, 1, i, i+1)
			testutil.Advance(time.Millisecond)
		}
		testutil.Advance(30 * time.Millisecond)
		if got := c.numbers(1, 0); len(got) != 200 || !slices.IsSorted(got) {
			t.Errorf("%d frames came, in this order: %v", len(got), got)
		}
		c.run("delay 0s")
		c.send(0, 1, 7, 8)
		c.expect(1, 0, "7")
		c.balanced()
	})
}

func TestExactDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("delay 5ms 0->1")
		c.send(0, 1, 0, 3)
		c.send(1, 0, 0, 3)
		c.expect(0, 1, "up.1 0 1 2")
		testutil.Advance(time.Second)
		c.expect(1, 0, "up.1 0 1 2")
		if late := c.heard[1].late; late != 5*time.Millisecond {
			t.Errorf("came after %v, want 5ms", late)
		}
	})
}

// lazyClock never calls back, as a timer that is late does not yet.
type lazyClock struct{ now time.Time }

func (c *lazyClock) Now() time.Time { return c.now }

func (c *lazyClock) AfterFunc(time.Duration, func()) func() bool {
	return func() bool { return true }
}

func TestLateTimerKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &lazyClock{now: time.Now()}
		c := newCluster(t, 2, fault.Config{Clock: clock})
		c.run("delay 5ms")
		c.send(0, 1, 0, 2)
		clock.now = clock.now.Add(10 * time.Millisecond)
		c.expect(1, 0, "")
		c.run("delay 0s")
		c.send(0, 1, 2, 3)
		c.expect(1, 0, "up.1 0 1 2")
	})
}

func TestHeldFramesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{Held: 10})
		c.run("delay 1s")
		c.send(0, 1, 0, 15)
		testutil.Advance(2 * time.Second)
		c.expect(1, 0, "up.1 0 1 2 3 4 5 6 7 8 9")
		if s := c.balanced(); s.Overflowed != 5 {
			t.Errorf("%d overflowed, want 5", s.Overflowed)
		}
	})
}

func TestOneWayCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, fault.Config{})
		c.run("cut 0->1")
		c.send(0, 1, 0, 3)
		c.send(1, 0, 0, 3)
		c.send(0, 2, 0, 3)
		c.expect(1, 0, "up.1")
		c.expect(0, 1, "up.1 0 1 2")
		c.expect(2, 0, "up.1 0 1 2")
		c.run("heal")
		c.send(0, 1, 3, 6)
		c.expect(1, 0, "3 4 5")
		c.run("cut 0 1")
		c.send(0, 1, 6, 8)
		c.send(1, 0, 6, 9)
		c.expect(1, 0, "")
		c.expect(0, 1, "")
		if s := c.balanced(); s.Cut != 8 {
			t.Errorf("%d frames cut, want 8", s.Cut)
		}
	})
}

func TestCutTakesWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("delay 10ms")
		c.send(0, 1, 0, 1)
		c.run("at 5ms cut 0 1\nat 20ms heal")
		c.send(0, 1, 1, 2)
		testutil.Advance(time.Second)
		c.expect(1, 0, "up.1 1")
		c.balanced()
	})
}

func TestPartitionAndHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5, fault.Config{})
		all := func() (reached [5]string) {
			for from := range protocol.Rank(5) {
				for to := range protocol.Rank(5) {
					if from != to {
						c.send(from, to, 0, 1)
					}
				}
			}
			for to := range protocol.Rank(5) {
				for from := range protocol.Rank(5) {
					if len(c.numbers(to, from)) > 0 {
						reached[to] += strconv.Itoa(int(from))
					}
				}
			}
			return reached
		}
		c.run("partition 0-1 | 2")
		if got, want := all(), [5]string{"1", "0", "", "4", "3"}; got != want {
			t.Errorf("partitioned: heard %q, want %q", got, want)
		}
		c.run("partition 0 4") // In place of the other.
		if got, want := all(), [5]string{"4", "23", "13", "12", "0"}; got != want {
			t.Errorf("partitioned anew: heard %q, want %q", got, want)
		}
		c.run("heal")
		if got, want := all(), [5]string{"1234", "0234", "0134", "0124", "0123"}; got != want {
			t.Errorf("healed: heard %q, want %q", got, want)
		}
		c.balanced()
	})
}

func TestFreezeAndThawKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, fault.Config{Held: 4})
		c.send(0, 1, 0, 1)
		c.expect(1, 0, "up.1 0")
		c.run("freeze 1")
		c.send(0, 1, 1, 4)
		c.send(1, 0, 0, 6)
		c.send(0, 2, 0, 1) // Others go on.
		c.expect(2, 0, "up.1 0")
		c.expect(1, 0, "")
		c.expect(0, 1, "up.1")
		testutil.Advance(time.Hour)
		c.expect(1, 0, "")
		c.run("thaw 1")
		c.send(0, 1, 4, 5)
		c.send(1, 0, 6, 7)
		c.expect(1, 0, "1 2 3 4")
		c.expect(0, 1, "0 1 2 3 6")
		if s := c.balanced(); s.Frozen != 6 || s.Overflowed != 2 {
			t.Errorf("got %+v, want 6 frozen and 2 overflowed", s)
		}
	})
}

func TestFreezeHoldsWhatIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("delay 10ms")
		c.send(0, 1, 0, 1)
		c.run("freeze 0")
		testutil.Advance(time.Second)
		c.expect(1, 0, "")
		c.run("thaw 0")
		c.expect(1, 0, "up.1 0")
	})
}

func TestFrozenMemberCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("freeze 1")
		c.send(0, 1, 0, 3)
		c.send(1, 0, 0, 3)
		synctest.Wait()
		if err := c.members[1].Close(); err != nil {
			t.Fatal(err)
		}
		c.expect(1, 0, "")
		c.expect(0, 1, "up.1 down")
		if s := c.balanced(); s.Lost != 3 {
			t.Errorf("%d lost, want 3", s.Lost)
		}
	})
}

func TestCloseSendsWhatIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.run("delay 1s")
		c.send(0, 1, 0, 3)
		if err := c.members[0].Close(); err != nil {
			t.Fatal(err)
		}
		c.expect(1, 0, "up.1 0 1 2 down")
		if err := c.members[0].Send(1, nil); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Send after Close: %v", err)
		}
		c.balanced()
	})
}

func TestKillAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cluster
		var killed []protocol.Rank
		c = newCluster(t, 3, fault.Config{OnKill: func(rank protocol.Rank) {
			killed = append(killed, rank)
			c.mem.Kill(rank)
		}})
		c.send(0, 1, 0, 2)
		c.expect(1, 0, "up.1 0 1")
		c.run("delay 1s 1->0")
		c.send(1, 0, 0, 2) // Dies with it.
		c.run("at 4ms freeze 1\nat 5ms kill 1\nat 6ms kill 1\ndelay 0s")
		if want := []protocol.Rank{1}; !slices.Equal(killed, want) {
			t.Errorf("killed %v, want %v", killed, want)
		}
		c.expect(0, 1, "up.1 down")
		if err := c.members[1].Send(0, nil); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("Send of the dead: %v", err)
		}
		if err := c.members[2].Send(1, nil); !errors.Is(err, transport.ErrDown) {
			t.Errorf("Send to the dead: %v", err)
		}
		c.expect(2, 1, "down")

		c.start(1, c.mem.Restart(1))
		c.send(0, 1, 2, 3)
		c.send(1, 0, 2, 3)
		c.expect(1, 0, "up.1 2")
		c.expect(0, 1, "up.2 2")
		if s := c.balanced(); s.Kills != 1 || s.Lost != 2 || s.Refused != 1 {
			t.Errorf("got %+v, want 1 kill, 2 lost and 1 refused", s)
		}
	})
}

// A killed rank whose process lives on is as silent as a dead host.
func TestKillWithoutCallbackIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.fault.Do(fault.Kill{Rank: 1})
		c.send(0, 1, 0, 3)
		c.expect(1, 0, "")
		c.expect(0, 1, "up.1")
		if s := c.balanced(); s.Discarded != 3 {
			t.Errorf("%d discarded, want 3", s.Discarded)
		}
	})
}

func TestReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4, fault.Config{})
		c.send(0, 1, 0, 1)
		c.send(2, 1, 0, 1)
		c.send(0, 2, 0, 1)
		synctest.Wait()
		c.run("delay 1ms")
		c.send(0, 1, 1, 5) // In flight.
		c.send(0, 2, 1, 2)
		c.run("reset 1")
		synctest.Wait()
		c.run("delay 0s")
		c.send(0, 1, 5, 6)
		c.send(1, 0, 5, 6)
		testutil.Advance(time.Second)
		c.expect(0, 1, "up.1 reset up.1 5")
		c.expect(1, 0, "up.1 0 reset up.1 5")
		c.expect(2, 1, "up.1 reset up.1")
		c.expect(1, 2, "up.1 0 reset up.1")
		c.expect(2, 0, "up.1 0 1")
		c.expect(3, 1, "")
		if s := c.balanced(); s.Resets != 2 || s.Lost != 4 {
			t.Errorf("got %+v, want 2 resets and 4 lost", s)
		}
	})
}

// The frozen side is told only when it thaws, and until then the other cannot
// connect again. What waited for the frozen one is lost.
func TestResetOfAFrozenRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		c.send(0, 1, 0, 1)
		synctest.Wait()
		c.run("freeze 1")
		c.send(0, 1, 1, 5)
		c.run("reset 1\nreset 1")
		c.expect(0, 1, "up.1 reset")
		if err := c.members[0].Send(1, nil); !errors.Is(err, transport.ErrDown) {
			t.Errorf("Send in mid-reset: %v", err)
		}
		if s := c.fault.Stats(); s.Discarded != 4 {
			t.Errorf("%d discarded, want 4", s.Discarded)
		}
		c.run("thaw 1")
		c.expect(0, 1, "up.1")
		c.send(0, 1, 5, 6)
		c.expect(1, 0, "up.1 0 reset up.1 5")
		if s := c.balanced(); s.Resets != 1 || s.Discarded != 4 {
			t.Errorf("got %+v, want 1 reset and 4 discarded", s)
		}
	})
}

// A member that dies in mid-reset does not connect again.
func TestDeathInMidReset(t *testing.T) {
	for _, c := range []struct {
		really bool // the inner transport dies too
		end    string
	}{{false, "kill 1"}, {true, "kill 1"}, {true, "thaw 1"}} {
		really, end := c.really, c.end
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2, fault.Config{})
			c.send(0, 1, 0, 1)
			synctest.Wait()
			c.run("freeze 1\nreset 1")
			synctest.Wait()
			if really {
				c.mem.Kill(1)
				synctest.Wait()
			}
			c.run(end + "\nreset 0")
			c.expect(0, 1, "up.1 reset")
		})
	}
}

func TestRunKeepsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, fault.Config{})
		script, err := fault.Parse("at 30ms heal\nat 10ms cut 0 1\nat 50ms kill 1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		go func() {
			for i := range 5 {
				c.send(0, 1, i, i+1)
				time.Sleep(9 * time.Millisecond)
			}
		}()
		err = c.fault.Run(ctx, script)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"at 50ms kill 1"`) {
			t.Errorf("Run = %v, want the deadline and what was not done", err)
		}
		testutil.Advance(time.Second)
		c.expect(1, 0, "up.1 0 1 4")
		if s := c.balanced(); s.Cut != 2 || s.Kills != 0 {
			t.Errorf("got %+v, want 2 cut and no kill", s)
		}
	})
}

// TestSameSeedSameDecisions sends in two different interleavings, and asks that
// each pair fares alike, and differently with another seed.
func TestSameSeedSameDecisions(t *testing.T) {
	fates := func(seed uint64, swapped bool) (got [2][]int) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 2, fault.Config{})
			c.fault = fault.New(seed, fault.Config{})
			for rank := range protocol.Rank(2) {
				c.start(rank, c.mem.Restart(rank))
			}
			c.run("drop 20%\nduplicate 20%\nreorder 20% within 3ms\ndelay 1ms jitter 3ms")
			first, second := protocol.Rank(0), protocol.Rank(1)
			if swapped {
				first, second = second, first
			}
			for i := range 100 {
				c.send(first, 1-first, i, i+1)
				c.send(second, 1-second, i, i+1)
				testutil.Advance(time.Millisecond)
			}
			testutil.Advance(time.Second)
			got = [2][]int{c.numbers(0, 1), c.numbers(1, 0)}
		})
		return got
	}
	one := fates(1, false)
	for way := range one {
		if again := fates(1, true); !slices.Equal(one[way], again[way]) {
			t.Errorf("same seed: %v, then %v", one[way], again[way])
		}
		if other := fates(2, false); slices.Equal(one[way], other[way]) {
			t.Error("another seed decides alike")
		}
	}
	if slices.Equal(one[0], one[1]) {
		t.Error("both directions of a pair decide alike")
	}
}

// TestEverythingAtOnce looks for races, deadlocks and lost books in real time.
func TestEverythingAtOnce(t *testing.T) {
	const size = 5
	net := mem.NewNetwork(size, mem.Config{QueueBytes: 1 << 12})
	n := fault.New(seed, fault.Config{Held: 8, OnKill: net.Kill})
	members := make([]transport.Transport, size)
	for i := range protocol.Rank(size) {
		members[i] = n.Wrap(i, net.Member(i))
		if err := members[i].Start(new(journal)); err != nil {
			t.Fatal(err)
		}
	}
	script, err := fault.Parse(`
		drop 5%
		duplicate 5%
		reorder 5% within 100us
		delay 10us jitter 50us 0->1
		at 1ms freeze 1
		at 2ms partition 0-2 | 3
		at 3ms reset 0
		at 4ms heal
		at 5ms thaw 1
		at 6ms reset 1
		at 7ms kill 3
		at 8ms freeze 2
		at 9ms reset 2`)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			pace := time.Tick(20 * time.Microsecond)
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-pace:
					m.Send(protocol.Rank(i%size), []byte("frame"))
				}
			}
		})
	}
	if err := n.Run(t.Context(), script); err != nil {
		t.Error(err)
	}
	close(done)
	all.Wait()
	for i, m := range members {
		if err := m.Close(); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	(&cluster{t: t, fault: n}).balanced()
}
