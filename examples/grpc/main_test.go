//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/stats"

	"github.com/pleach-go/pleach"
	pleachgrpc "github.com/pleach-go/pleach/contrib/grpc"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes of this test run the example's commands.
const commandVariable = "GRPC_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// cluster is servers in processes of their own.
type cluster struct {
	t                *testing.T
	members, servers []string // addresses in the group, and of gRPC
	processes        []*testutil.Process
	client           *pleach.Group
}

func newCluster(t *testing.T, size int) *cluster {
	t.Helper()
	c := &cluster{
		t: t, members: testutil.FreeAddresses(t, size), servers: testutil.FreeAddresses(t, size),
		processes: make([]*testutil.Process, size),
	}
	for i := range size {
		c.start(i)
	}
	var err error
	c.client, err = pleach.Join(t.Context(), pleach.Config{Group: "servers", Observer: true}, c.members...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.client.Close() })
	c.await(size)
	return c
}

// start starts a server.
func (c *cluster) start(i int) {
	c.t.Helper()
	args := append([]string{"serve", "--listen", c.members[i], "--grpc", c.servers[i]}, c.members...)
	c.processes[i] = testutil.StartCommand(c.t, exec.Command(os.Args[0], args...), commandVariable, "1")
}

// await waits until so many servers announce an address.
func (c *cluster) await(size int) {
	c.t.Helper()
	testutil.Eventually(c.t, fmt.Sprintf("%d servers", size), func() bool {
		serving := 0
		for _, m := range c.client.View().Members() {
			if _, ok := pleachgrpc.AddressOf(m); ok {
				serving++
			}
		}
		return serving == size
	}, func() any { return c.client.View().Members() })
}

// request is a request of a load.
type request struct {
	begun, ended time.Time
	server       string // the one that it was sent to; empty: none
	err          error
}

// load is requests to a connection at a constant rate, and what has become of them.
type load struct {
	name string
	conn *grpc.ClientConn

	mu       sync.Mutex
	requests []*request
}

// newLoads returns a client by views, and one that has the addresses of all servers, as from DNS.
func (c *cluster) newLoads() (byViews, byList *load) {
	c.t.Helper()
	all := manual.NewBuilderWithScheme("list")
	var list resolver.State
	for _, address := range c.servers {
		list.Addresses = append(list.Addresses, resolver.Address{Addr: address})
	}
	all.InitialState(list)
	byViews, byList = &load{name: "views"}, &load{name: "list"}
	options := func(l *load) []grpc.DialOption {
		return []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(l)}
	}
	var err error
	byViews.conn, err = pleachgrpc.NewClient(c.client, options(byViews)...)
	if err != nil {
		c.t.Fatal(err)
	}
	byList.conn, err = grpc.NewClient("list:///servers", append(options(byList), grpc.WithResolvers(all),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))...)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range []*load{byViews, byList} {
		c.t.Cleanup(func() { _ = l.conn.Close() })
	}
	return byViews, byList
}

// key is that of a request in a context.
type key struct{}

// TagRPC implements [stats.Handler].
func (*load) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements [stats.Handler].
func (l *load) HandleRPC(ctx context.Context, s stats.RPCStats) {
	sent, ok := s.(*stats.OutHeader)
	r, ours := ctx.Value(key{}).(*request)
	if !ok || !ours || sent.RemoteAddr == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.server = sent.RemoteAddr.String()
}

// TagConn implements [stats.Handler].
func (*load) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (*load) HandleConn(context.Context, stats.ConnStats) {}

// run sends requests until ctx ends, and waits for their replies.
func (l *load) run(ctx context.Context, rate int, timeout time.Duration) {
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	begin, sent := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for ; sent < int(time.Since(begin).Seconds()*float64(rate)); sent++ {
			running.Go(func() { l.call(timeout) })
		}
	}
}

func (l *load) call(timeout time.Duration) {
	r := &request{begun: time.Now()}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, r), timeout)
	defer cancel()
	_, err := health.NewHealthClient(l.conn).Check(ctx, &health.HealthCheckRequest{})
	l.mu.Lock()
	defer l.mu.Unlock()
	r.ended, r.err = time.Now(), err
	l.requests = append(l.requests, r)
}

// take returns the requests that have ended since the call before.
func (l *load) take() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.requests
	l.requests = nil
	return taken
}

func failures(requests []*request) []*request {
	return slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return r.err == nil })
}

// during puts load on all loads while f runs, and a moment longer, and returns the requests of each.
func during(rate int, timeout, after time.Duration, loads []*load, f func()) [][]*request {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, l := range loads {
		l.take()
		running.Go(func() { l.run(ctx, rate, timeout) })
	}
	hold(after)
	f()
	hold(after)
	cancel()
	running.Wait()
	var all [][]*request
	for _, l := range loads {
		all = append(all, l.take())
	}
	return all
}

// hold lets a load run for a while.
func hold(d time.Duration) { time.Sleep(d) }

// patience is the timeout of requests that fail only if they are lost.
const patience = 30 * time.Second

// size, rate and pause of the tests: those of the page docs/guide/adapters.md with PLEACH_FULL.
func dimensions() (size, rate int, pause time.Duration) {
	if testutil.Full.On() {
		return 5, 2000, 3 * time.Second
	}
	return 3, 300, 200 * time.Millisecond
}

// No request fails while each server is restarted in turn: at once, or a while after the previous one.
func TestRollingRestart(t *testing.T) {
	size, rate, pause := dimensions()
	between := []time.Duration{0}
	if testutil.Full.On() {
		between = append(between, pause)
	}
	for _, b := range between {
		t.Run(b.String(), func(t *testing.T) { rollingRestart(t, size, rate, pause, b) })
	}
}

func rollingRestart(t *testing.T, size, rate int, pause, between time.Duration) {
	c := newCluster(t, size)
	byViews, byList := c.newLoads()
	results := during(rate, patience, pause, []*load{byViews, byList}, func() {
		for i := range size {
			c.processes[i].Terminate()
			c.await(size - 1)
			c.start(i)
			c.await(size)
			hold(between)
		}
	})
	for i, l := range []*load{byViews, byList} {
		report(t, "rolling restart", l, results[i])
	}
	for _, r := range failures(results[0]) {
		t.Errorf("a request to %q that began at %v failed after %v: %v", r.server, r.begun, r.ended.Sub(r.begun), r.err)
	}
	if served := serversOf(results[0]); len(served) != size {
		t.Errorf("requests were served by %v of %v", served, c.servers)
	}
}

// Only requests that a killed server had accepted and not answered fail. The kernel closes its
// connections while the process ends, up to dead; a moment later every client has noticed.
func TestKilledServer(t *testing.T) {
	size, rate, pause := dimensions()
	c := newCluster(t, size)
	byViews, byList := c.newLoads()
	var dead time.Time
	results := during(rate, patience, pause, []*load{byViews, byList}, func() {
		c.processes[0].Kill()
		dead = time.Now()
		c.await(size - 1)
	})
	for i, l := range []*load{byViews, byList} {
		report(t, "kill -9", l, results[i])
		t.Logf("in flight at that server when it had ended: %d", len(inFlight(results[i], c.servers[0], dead)))
	}
	for _, r := range failures(results[0]) {
		if r.server != c.servers[0] || r.begun.After(dead.Add(time.Second/10)) {
			t.Errorf("a request to %q that began %v after the end of %q failed: %v", r.server, r.begun.Sub(dead),
				c.servers[0], r.err)
		}
	}
}

// A server that hangs gets no more requests once it is out of the view.
func TestStoppedServer(t *testing.T) {
	size, rate, pause := dimensions()
	timeout := 3 * time.Second // longer than a busy host takes for a request
	if testutil.Full.On() {
		timeout = time.Second
	}
	c := newCluster(t, size)
	byViews, byList := c.newLoads()
	var removed time.Time
	results := during(rate, timeout, 2*pause, []*load{byViews, byList}, func() {
		c.processes[0].Signal(syscall.SIGSTOP)
		stopped := time.Now()
		c.await(size - 1)
		removed = time.Now()
		t.Logf("removed after %v", removed.Sub(stopped))
	})
	for i, l := range []*load{byViews, byList} {
		report(t, "SIGSTOP", l, results[i])
	}
	for _, r := range failures(results[0]) {
		if r.server != c.servers[0] || r.begun.After(removed.Add(time.Second/10)) {
			t.Errorf("a request to %q that began %v after the removal of %q failed: %v", r.server, r.begun.Sub(removed),
				c.servers[0], r.err)
		}
	}
}

// inFlight returns the requests that a server had not answered at a time.
func inFlight(requests []*request, server string, at time.Time) []*request {
	return slices.DeleteFunc(slices.Clone(requests), func(r *request) bool {
		return r.server != server || r.begun.After(at) || r.ended.Before(at)
	})
}

// serversOf returns the servers that have answered requests.
func serversOf(requests []*request) (servers []string) {
	for _, r := range requests {
		if r.err == nil && !slices.Contains(servers, r.server) {
			servers = append(servers, r.server)
		}
	}
	return servers
}

// report logs the result of one load.
func report(t *testing.T, what string, l *load, requests []*request) {
	t.Helper()
	failed := failures(requests)
	var longest time.Duration
	for _, r := range requests {
		longest = max(longest, r.ended.Sub(r.begun))
	}
	var causes []string
	for _, r := range failed {
		if cause := r.err.Error(); !slices.Contains(causes, cause) {
			causes = append(causes, cause)
		}
	}
	slices.SortFunc(failed, func(a, b *request) int { return a.begun.Compare(b.begun) })
	var last time.Duration
	if len(failed) > 0 {
		last = failed[len(failed)-1].begun.Sub(failed[0].begun)
	}
	t.Logf("%s, by %s: %d requests, %d failed within %v, longest %v\n%s", what, l.name, len(requests), len(failed),
		last, longest, strings.Join(causes, "\n"))
}
