package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Talkers are members as processes of their own, which tests stop, kill and cut off.
// Each broadcasts at its pace, rejoins when it was removed, and prints what it sees, a
// line each:
//
//	view NUMBER RANK,…    it is in this view
//	blocked NANOSECONDS   a broadcast has taken longer than 10 ms
//	have RANK             a message of another member has arrived
//	lost RANK COUNT       messages of another member are lost
//
// A line of its input is a number of bytes to broadcast. A talker that floods is in
// flood_test.go.

// talkerRole is the environment variable that makes this test binary a talker. Its value
// is a talkerConfig.
const talkerRole = "PLEACH_FAULTS_TALKER"

type talkerConfig struct {
	Addresses []string
	Rank      int
	Pace      time.Duration // between two broadcasts; if zero, it broadcasts only what it is told
	Static    bool
	Flood     int // bytes of the messages that it broadcasts as fast as it may, if it is rank 0
	// Busy is how long the program of BusyRank receives nothing, once every Every.
	Busy, Every time.Duration
	BusyRank    int
}

func init() {
	text := os.Getenv(talkerRole)
	if text == "" {
		return
	}
	var c talkerConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	if err := c.run(); err != nil {
		fmt.Println("error", err)
	}
	os.Exit(0)
}

// run is the process. It ends with its input.
func (c *talkerConfig) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	lines := make(chan string)
	go func() {
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			lines <- input.Text()
		}
		cancel()
	}()
	g, err := pleach.Start(ctx, pleach.Config{
		Group: "faults", Addresses: c.Addresses, Rank: c.Rank, Static: c.Static,
		Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
	for err == nil && ctx.Err() == nil {
		c.live(ctx, g, lines)
		if ctx.Err() == nil {
			err = g.Rejoin(ctx)
		}
	}
	return err
}

// live is a talker's life until its membership or ctx ends.
func (c *talkerConfig) live(ctx context.Context, g *pleach.Group, lines <-chan string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Flood > 0 && c.Rank == 0 {
		go c.flood(ctx, g, lines)
	} else {
		go c.talk(ctx, g, lines)
	}
	go func() {
		var check floodCheck
		if c.Rank == c.BusyRank {
			check = floodCheck{busy: c.Busy, every: c.Every}
		}
		for m, err := range g.Messages(ctx) {
			if lost, ok := errors.AsType[*pleach.LostError](err); ok {
				fmt.Println("lost", lost.From, lost.Count)
			}
			if err != nil {
				continue
			}
			fmt.Println("have", m.From)
			if c.Flood > 0 {
				check.receive(ctx, m)
			}
		}
	}()
	for v := range g.Views(ctx) {
		ranks := make([]string, v.Size())
		for i, m := range v.Members() {
			ranks[i] = fmt.Sprint(m.Rank)
		}
		fmt.Println("view", v.Number, strings.Join(ranks, ","))
	}
}

// talk broadcasts.
func (c *talkerConfig) talk(ctx context.Context, g *pleach.Group, lines <-chan string) {
	tick := make(<-chan time.Time)
	if c.Pace > 0 {
		tick = time.Tick(c.Pace)
	}
	for {
		size := 64
		select {
		case <-tick:
		case line := <-lines:
			_, _ = fmt.Sscan(line, &size)
		case <-ctx.Done():
			return
		}
		began := time.Now()
		_ = g.Broadcast(ctx, make([]byte, size))
		if took := time.Since(began); took > 10*time.Millisecond {
			fmt.Println("blocked", took.Nanoseconds())
		}
	}
}

// talkers are the processes, as the test sees them.
type talkers struct {
	t   *testing.T
	all []*talker
}

// talker is one of them.
type talker struct {
	cmd   *exec.Cmd
	input io.Writer

	mu      sync.Mutex
	view    uint64
	members string
	blocked time.Duration  // the longest
	have    map[string]int // messages, by sender
	lost    int            // messages
	busy    bool           // its program receives nothing at present
	ended   bool           // it has the last message of a flood
	gaps    int            // in a flood
	log     []string
}

// startTalkers starts processes that start a group together. A command makes each; if
// nil, they are on this host.
func startTalkers(t *testing.T, addresses []string, command func(rank int, name string, args ...string) *exec.Cmd,
	c talkerConfig,
) *talkers {
	t.Helper()
	ts := &talkers{t: t}
	c.Addresses = addresses
	for rank := range addresses {
		c.Rank = rank
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		if command != nil {
			cmd = command(rank, os.Args[0])
		}
		cmd.Env = append(os.Environ(), talkerRole+"="+string(text))
		ts.all = append(ts.all, startTalker(t, cmd))
	}
	t.Cleanup(func() {
		for rank, p := range ts.all {
			p.end()
			if t.Failed() {
				t.Logf("rank %d:\n\t%s", rank, strings.Join(p.log[max(0, len(p.log)-20):], "\n\t"))
			}
		}
	})
	return ts
}

func startTalker(t *testing.T, cmd *exec.Cmd) *talker {
	t.Helper()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &talker{cmd: cmd, input: input, have: map[string]int{}}
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			p.take(lines.Text())
		}
	}()
	return p
}

// take notes what a talker prints.
func (p *talker) take(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "have":
		p.have[rest]++
		return
	case "lost":
		var from, count int
		_, _ = fmt.Sscan(rest, &from, &count)
		p.lost += count
	case "busy", "ready":
		p.busy = word == "busy"
	case "ended":
		p.ended = true
	case "gap":
		p.gaps++
	case "view":
		_, _ = fmt.Sscan(rest, &p.view, &p.members)
	case "blocked":
		var took time.Duration
		_, _ = fmt.Sscan(rest, (*int64)(&took))
		p.blocked = max(p.blocked, took)
	}
	p.log = append(p.log, line)
}

// end kills a talker.
func (p *talker) end() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// signal sends a signal to some.
func (ts *talkers) signal(s syscall.Signal, ranks ...int) {
	for _, r := range ranks {
		if err := ts.all[r].cmd.Process.Signal(s); err != nil {
			ts.t.Fatal(err)
		}
	}
}

// await waits until something holds for some talkers, and returns how long that took.
func (ts *talkers) await(what string, some []int, holds func(p *talker) bool) time.Duration {
	ts.t.Helper()
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		lacking := slices.IndexFunc(some, func(r int) bool {
			p := ts.all[r]
			p.mu.Lock()
			defer p.mu.Unlock()
			return !holds(p)
		})
		took := time.Since(began)
		if lacking < 0 {
			return took
		}
		if took > 30*time.Second {
			ts.t.Fatalf("%s: rank %d not after %v", what, some[lacking], took)
		}
	}
}

// awaitView waits until some are in a view of just those members, and returns how long
// that took.
func (ts *talkers) awaitView(some []int) time.Duration {
	ts.t.Helper()
	members := strings.ReplaceAll(strings.Trim(fmt.Sprint(some), "[]"), " ", ",")
	return ts.await("the view of "+members, some, func(p *talker) bool { return p.members == members })
}

// awaitTalk waits until some have new messages of each other.
func (ts *talkers) awaitTalk(some []int) {
	ts.t.Helper()
	for _, r := range some {
		p := ts.all[r]
		p.mu.Lock()
		clear(p.have)
		p.mu.Unlock()
	}
	for _, r := range some {
		ts.await(fmt.Sprint("messages of rank ", r), some, func(p *talker) bool {
			return p == ts.all[r] ||
				p.have[fmt.Sprint(r)] > 0
		})
	}
}

// blocked returns the longest that a broadcast of some has blocked since the last call.
func (ts *talkers) blocked(some []int) (longest time.Duration) {
	for _, r := range some {
		p := ts.all[r]
		p.mu.Lock()
		longest, p.blocked = max(longest, p.blocked), 0
		p.mu.Unlock()
	}
	return longest
}

// ranksBut returns the ranks of a group without some.
func ranksBut(size int, without ...int) (ranks []int) {
	for r := range size {
		if !slices.Contains(without, r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
