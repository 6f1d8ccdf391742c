package security

// What a local user, a host of the network and a client of one agent can do at once, to one agent of
// five: it must neither use up its memory or its log, nor keep others from joining, or from keys and
// locks (cases 91, 94, 95, 99).

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	agentconfig "github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const (
	stormedRole = "PLEACH_SECURITY_STORMED"
	stormRole   = "PLEACH_SECURITY_STORM"
)

// stormed is an agent in a process of its own. Its log is its standard output.
type stormed struct{ File string }

func init() {
	testutil.PlayRole(stormedRole, stormed.run)
	testutil.PlayRole(stormRole, storm.run)
}

func (s stormed) run() {
	debug.SetGCPercent(50) // as pleach agent does
	fmt.Println("pid", os.Getpid())
	err := agent.Run(context.Background(), agent.Options{
		Load:    func() (*agentconfig.Config, error) { return agentconfig.Load(s.File, nil, nil) },
		Version: "v1", Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
		Joined: func(*pleach.Group) { fmt.Println("joined") },
	})
	fmt.Println("ended", err)
}

// storm is how much of everything there is.
type storm struct {
	Agent, Metrics, Socket string
	Requests, Bodies, Sets int
	Addresses, Rate        int
}

// run storms until the process is killed, with one processor. The zero storm uses the processor alone.
func (s storm) run() {
	runtime.GOMAXPROCS(1)
	fmt.Println("begins")
	if s == (storm{}) {
		for {
			sha256.Sum256(nil)
		}
	}
	var all sync.WaitGroup
	for _, rage := range []func(){s.unfinished, s.long, s.shards, s.strangers} {
		all.Go(rage)
	}
	all.Wait()
}

func TestSecurityStormOnAgent(t *testing.T) {
	skipWithRace(t)
	s := storm{Requests: 1500, Bodies: 24, Sets: 60, Addresses: 1100, Rate: 240}
	joins, lasts := 3, 4*time.Second
	if testutil.Full.On() {
		s.Requests, s.Rate, joins, lasts = 12_000, 480, 11, 30*time.Second
	}
	addresses := testutil.FreeAddresses(t, 6)
	s.Agent, s.Metrics = addresses[0], addresses[5]
	var agents []*testutil.Process
	for i, address := range addresses[:5] {
		dir := t.TempDir()
		text := fmt.Sprintf(
			"group: %s\nlisten: %s\nid: %c\nseeds: [%s]\nexpect: 5\nsocket: %s\nheartbeat-interval: 1s\nsuspicion-timeout: 20s\n", group, address, 'a'+i, strings.Join(addresses[:5], ", "), filepath.Join(dir, "s"))
		if i == 0 {
			s.Socket = filepath.Join(dir, "s")
			text += "metrics-listen: " + s.Metrics + "\n"
		}
		file := filepath.Join(dir, "agent.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		agents = append(agents, testutil.StartRole(t, stormedRole, stormed{file}))
	}
	for _, p := range agents {
		p.Wait(t, "joined")
	}
	pid, _ := agents[0].Wait(t, "pid ")
	logged := func() (n int) {
		for _, line := range agents[0].All() {
			if !strings.Contains(line, "msg=view ") && !strings.Contains(line, `msg="member `) { // of the honest joins
				n++
			}
		}
		return n
	}
	c := client.Socket(s.Socket)
	s.use(t, c, 0)
	plain := func(id string) pleach.Config {
		// the machine may be busy
		return pleach.Config{ID: id, Detection: pleach.Detection{
			HeartbeatInterval: time.Second,
			SuspicionTimeout:  20 * time.Second,
		}}
	}
	alone := joinTimes(t, joins, s.Agent, plain)[joins/2]
	spins := testutil.StartRole(t, stormRole, storm{})
	spins.Wait(t, "begins")
	beside := joinTimes(t, joins, s.Agent, plain)[joins/2]
	spins.Kill()
	before, lines := resident(t, pid), logged()

	over := make(chan struct{})
	most := watch(t, pid, over)
	began := time.Now()
	p := testutil.StartRole(t, stormRole, s)
	p.Wait(t, "begins")
	// The first ones join while all requests are opened at once, the others while they are held.
	first := joinTimes(t, joins, s.Agent, plain)[joins/2]
	var all []time.Duration
	uses := 0
	for until := time.Now().Add(lasts); uses == 0 || time.Now().Before(until); uses++ {
		all = append(all, joinTimes(t, 1, s.Agent, plain)...)
		s.use(t, c, uses+1)
	}
	p.Kill()
	slices.Sort(all)
	during := all[len(all)/2]
	close(over)
	seconds := time.Since(began).Seconds()
	rate := float64(logged()-lines) / seconds
	grown := mb(<-most - before)
	fmt.Printf(`{"resident_before_mb":%.1f,"resident_grown_mb":%.1f,"join_p50_ms":%.1f,"join_busy_p50_ms":%.1f,"join_first_p50_ms":%.1f,"join_storm_p50_ms":%.1f,"joins":%d,"log_lines_s":%.1f,"keys_and_locks":%d,"storm_s":%.0f}`+"\n",
		mb(before), grown, alone.Seconds()*1000, beside.Seconds()*1000,
		first.Seconds()*1000, during.Seconds()*1000, len(all), rate, uses, seconds)
	if grown > 50 {
		t.Errorf("the agent has grown by %.1f MB", grown)
	}
	if rate > 10 {
		t.Errorf("%.1f lines of the log a second", rate)
	}
	if limit := 2 * alone; testutil.Full.On() && during > limit {
		t.Errorf("a join takes %v in the storm, and %v without", during, alone)
	}
}

// use puts a key and takes a lock.
func (s *storm) use(t *testing.T, c *client.Client, n int) {
	t.Helper()
	const patience = time.Minute
	if _, err := c.Put(t.Context(), "k", fmt.Append(nil, n), nil, patience); err != nil {
		t.Fatalf("key: %v", err)
	}
	l, err := c.Lock(t.Context(), client.LockRequest{Name: "l", TTL: api.DefaultTTL, Wait: true, Timeout: patience})
	if err == nil {
		err = c.Unlock(t.Context(), &l, patience)
	}
	if err != nil {
		t.Fatalf("lock: %v", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatalf("status: %v", err)
	}
}

// unfinished makes requests of metrics that have no end, and keeps them.
func (s *storm) unfinished() {
	var all []net.Conn
	for range s.Requests {
		if c, err := net.Dial("tcp", s.Metrics); err == nil {
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n")
			all = append(all, c)
		}
	}
	time.Sleep(time.Hour)
	runtime.KeepAlive(all)
}

// long makes requests with bodies of 16 MiB, which end before their last byte: half of them are for
// keys, which have 64 KiB.
func (s *storm) long() {
	body := bytes.Repeat([]byte("x"), api.MaxBody-1)
	var all sync.WaitGroup
	defer all.Wait()
	for i := range s.Bodies {
		all.Go(func() {
			for pace := time.Tick(100 * time.Millisecond); ; <-pace {
				target := "PUT /v1/kv/long"
				if i%2 == 0 {
					target = "POST /v1/broadcast"
				}
				c, err := net.Dial("unix", s.Socket)
				if err != nil {
					continue
				}
				_, _ = fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: agent\r\nContent-Length: %d\r\n\r\n", target, api.MaxBody)
				_, _ = c.Write(body)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		})
	}
}

// shards makes as many large sets of shards as there may be.
func (s *storm) shards() {
	c := client.Socket(s.Socket)
	for i := range s.Sets {
		_, _ = c.PutShards(context.Background(), fmt.Sprint("n", i), 4096)
	}
}

// strangers come from many addresses and are not of the group.
func (s *storm) strangers() {
	var n atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for range 16 {
		all.Go(func() {
			for {
				i := int(n.Add(1))
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(s.Rate))))
				i %= s.Addresses
				from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, byte(i/250), byte(1+i%250))}, Timeout: time.Second}
				c, err := from.Dial("tcp", s.Agent)
				if err != nil {
					continue
				}
				_, _ = fmt.Fprintf(c, "GET /%d HTTP/1.1\r\n\r\n", i)
				_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
		})
	}
}
