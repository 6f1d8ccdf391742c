package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes of this test are caches: one writes and reads, the others read.
const (
	listenVariable = "CACHE_TEST_LISTEN"
	requests       = 2000 // per second, of all processes
	processes      = 3
)

func TestMain(m *testing.M) {
	if listen := os.Getenv(listenVariable); listen != "" {
		serve(listen, os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// serve reads the cache at its share of the requests, and says of each read when it began, which
// version it got, and whether it was known to be current. The first process writes versions as
// often as it reads. It ends with its input.
func serve(listen string, seeds []string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := open(ctx, listen, seeds...)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	writes := listen == seeds[0]
	tick := time.NewTicker(time.Second * (processes + 1) / requests)
	flush := time.NewTicker(50 * time.Millisecond)
	for version := 0; ctx.Err() == nil; {
		select {
		case <-flush.C:
			out.Flush()
			continue
		case <-tick.C:
		}
		if writes {
			version++
			if err := c.set(ctx, "k", strconv.Itoa(version)); err == nil {
				fmt.Fprintln(out, "wrote", time.Now().UnixNano(), version, true)
			}
		}
		began := time.Now().UnixNano()
		got := c.peek("k")
		_, err := c.get("k")
		if fresh := err == nil; got != "" {
			fmt.Fprintln(out, "read", began, got, fresh)
		}
	}
}

// event is what a process says.
type event struct {
	what    string
	at      int64
	version int
	fresh   bool
}

// process is a running cache.
type process struct {
	command *exec.Cmd
	in      io.Closer
	events  []event
	fresh   atomic.Int64 // reads that were known to be current
}

func startProcess(t *testing.T, command *exec.Cmd, listen string, reading *sync.WaitGroup) *process {
	t.Helper()
	command.Env = append(os.Environ(), listenVariable+"="+listen)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{command: command, in: in}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e event
			if n, _ := fmt.Sscan(lines.Text(), &e.what, &e.at, &e.version, &e.fresh); n == 4 {
				p.events = append(p.events, e)
				if e.what == "read" && e.fresh {
					p.fresh.Add(1)
				}
			}
		}
	})
	return p
}

// awaitFresh waits until all processes answer.
func awaitFresh(t *testing.T, all []*process) {
	t.Helper()
	for i, p := range all {
		before := p.fresh.Load()
		testutil.Eventually(t, fmt.Sprint("an answer of process ", i), func() bool { return p.fresh.Load() != before })
	}
}

// A cache that asks whether it is current before it answers gives no stale answer, although processes
// are stopped and cut off under load (case 71). Without the question it gives many.
func TestCurrentCacheIsNotStale(t *testing.T) {
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	freezes, cuts := 2, 1
	if testutil.Full.On() {
		freezes, cuts = 12, 4
	}
	n := netns.New(t, processes)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for i := range processes {
		addresses = append(addresses, n.Address(i)+":7000")
	}
	var all []*process
	var reading sync.WaitGroup
	for i := range processes {
		all = append(all, startProcess(t, n.Command(i, self, addresses...), addresses[i], &reading))
	}
	awaitFresh(t, all)
	for i := range freezes {
		p := all[1+i%(processes-1)].command.Process
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(400+600*(i%3)) * time.Millisecond)
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		awaitFresh(t, all)
	}
	for i := range cuts {
		n.Cut(1 + i%(processes-1))
		time.Sleep(3 * time.Second)
		n.Heal(1 + i%(processes-1))
		awaitFresh(t, all)
	}
	for _, p := range all {
		_ = p.in.Close()
	}
	reading.Wait()
	asked, blind := judge(all)
	t.Logf("%d freezes, %d cuts, staleness %v: asked: %v; not asked: %v", freezes, cuts, staleness, asked, blind)
	if asked.stale > 0 {
		t.Errorf("%d stale reads of a cache that was current", asked.stale)
	}
	if blind.stale == 0 {
		t.Error("no read was stale: the test does not reach what it is for")
	}
}

// score counts reads. A read is stale if a version that was written earlier than staleness before it
// began is newer than what it got.
type score struct {
	reads, stale int
	worst        time.Duration
}

func (s score) String() string {
	return fmt.Sprintf("%d of %d reads stale, by up to %v", s.stale, s.reads, s.worst.Round(time.Millisecond))
}

// judge counts the reads that were known to be current, and all.
func judge(all []*process) (asked, blind score) {
	var wrote []event
	for _, e := range all[0].events {
		if e.what == "wrote" {
			wrote = append(wrote, e)
		}
	}
	for _, p := range all {
		for _, e := range p.events {
			if e.what != "read" {
				continue
			}
			next, _ := slices.BinarySearchFunc(wrote, e.version+1, func(w event, v int) int { return cmp.Compare(w.version, v) })
			late := time.Duration(0)
			if next < len(wrote) {
				late = time.Duration(e.at-wrote[next].at) - staleness
			}
			blind.count(late)
			if e.fresh {
				asked.count(late)
			}
		}
	}
	return asked, blind
}

func (s *score) count(late time.Duration) {
	s.reads++
	if late > 0 {
		s.stale++
		s.worst = max(s.worst, late)
	}
}
