package pleachgrpc_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/pleach-go/pleach"
	pleachgrpc "github.com/pleach-go/pleach/contrib/grpc"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// server is a member that serves gRPC.
type server struct {
	health.UnimplementedHealthServer
	group   *pleach.Group
	grpc    *grpc.Server
	address string
	entered chan struct{} // requests for the service "slow" have begun
	finish  chan struct{} // closed: they end
}

func (s *server) Check(ctx context.Context, r *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	if r.Service == "slow" {
		s.entered <- struct{}{}
		select {
		case <-s.finish:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &health.HealthCheckResponse{}, nil
}

// serve starts a server, at a free address or at the one of a previous server.
func serve(t *testing.T, address string, seeds ...string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		grpc: grpc.NewServer(), address: listener.Addr().String(), entered: make(chan struct{}), finish: make(chan struct{}),
	}
	health.RegisterHealthServer(s.grpc, s)
	go func() { _ = s.grpc.Serve(listener) }()
	t.Cleanup(s.grpc.Stop)
	config := pleach.Config{Group: "web", Meta: pleachgrpc.WithAddress("v1", s.address)}
	if len(seeds) == 0 {
		s.group, err = pleach.Create(t.Context(), config)
	} else {
		s.group, err = pleach.Join(t.Context(), config, seeds...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.group.Close() })
	return s
}

// client is an observer with a connection to the servers.
type client struct {
	group *pleach.Group
	conn  *grpc.ClientConn
}

func newClient(t *testing.T, seeds ...string) *client {
	t.Helper()
	group, err := pleach.Join(t.Context(), pleach.Config{Group: "web", Observer: true}, seeds...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = group.Close() })
	conn, err := pleachgrpc.NewClient(group, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{group, conn}
}

// call returns the address of the server that has answered.
func (c *client) call(ctx context.Context, service string) (string, error) {
	var by peer.Peer
	_, err := health.NewHealthClient(c.conn).Check(ctx, &health.HealthCheckRequest{Service: service}, grpc.Peer(&by))
	if err != nil {
		return "", err
	}
	return by.Addr.String(), nil
}

// awaitServers waits until requests are answered by these servers alone, each in its turn.
func (c *client) awaitServers(t *testing.T, servers ...*server) {
	t.Helper()
	var want []string
	for _, s := range servers {
		want = append(want, s.address)
	}
	slices.Sort(want)
	var got []string
	testutil.Eventually(t, "requests in turn", func() bool {
		got = nil
		for range 2 * len(want) {
			by, err := c.call(t.Context(), "")
			if err != nil {
				return false
			}
			got = append(got, by)
		}
		turns := slices.Sorted(slices.Values(got[:len(want)]))
		return slices.Equal(turns, want) && slices.Equal(got[:len(want)], got[len(want):])
	}, func() any { return got })
}

// Requests go to serving members in turn: to those that join later, too, and not to those that die.
func TestRequestsFollowViews(t *testing.T) {
	a := serve(t, "127.0.0.1:0")
	c := newClient(t, a.group.Self().Address)
	c.awaitServers(t, a)
	b, d := serve(t, "127.0.0.1:0", a.group.Self().Address), serve(t, "127.0.0.1:0", a.group.Self().Address)
	c.awaitServers(t, a, b, d)
	b.grpc.Stop()
	if err := b.group.Abort(); err != nil {
		t.Fatal(err)
	}
	c.awaitServers(t, a, d)
	// It does not wait for gRPC's backoff, of a second and more, after refused connections.
	again := serve(t, b.address, a.group.Self().Address)
	c.awaitServers(t, a, d, again)
}

// A draining server gets no new requests, and answers those that it has.
func TestDrain(t *testing.T) {
	a := serve(t, "127.0.0.1:0")
	c := newClient(t, a.group.Self().Address)
	c.awaitServers(t, a)
	slow := make(chan error, 1)
	go func() {
		_, err := c.call(t.Context(), "slow")
		slow <- err
	}()
	<-a.entered
	b := serve(t, "127.0.0.1:0", a.group.Self().Address)
	c.awaitServers(t, a, b)

	drained := make(chan error, 1)
	go func() { drained <- pleachgrpc.Drain(t.Context(), a.group, a.grpc) }()
	c.awaitServers(t, b)
	if meta := a.group.Self().Meta; !strings.HasPrefix(meta, "v1\n") || !strings.HasSuffix(meta, "draining") {
		t.Errorf("the meta of a draining server is %q", meta)
	}
	select {
	case err := <-drained:
		t.Fatalf("drained before the last request: %v", err)
	default:
	}
	close(a.finish)
	if err := <-slow; err != nil {
		t.Errorf("request to a draining server: %v", err)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// Requests that last longer than Drain may take are canceled.
func TestDrainIsBounded(t *testing.T) {
	a := serve(t, "127.0.0.1:0")
	c := newClient(t, a.group.Self().Address)
	slow := make(chan error, 1)
	go func() {
		_, err := c.call(t.Context(), "slow")
		slow <- err
	}()
	<-a.entered
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := pleachgrpc.Drain(ctx, a.group, a.grpc); err == nil {
		t.Error("a request that does not end was waited for")
	}
	if err := <-slow; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("the request ended with %v", err)
	}
}

// Without a serving member, requests fail at once. A member serves once it announces an address.
func TestAnnounce(t *testing.T) {
	first, err := pleach.Create(t.Context(), pleach.Config{Group: "web"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	c := newClient(t, first.Self().Address)
	if by, err := c.call(t.Context(), ""); status.Code(err) != codes.Unavailable {
		t.Errorf("without a server: %s, %v", by, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{group: first, grpc: grpc.NewServer(), address: listener.Addr().String()}
	health.RegisterHealthServer(s.grpc, s)
	go func() { _ = s.grpc.Serve(listener) }()
	defer s.grpc.Stop()
	if err := pleachgrpc.Announce(t.Context(), first, s.address); err != nil {
		t.Fatal(err)
	}
	c.awaitServers(t, s)
}

// A connection to a group that has ended is refused.
func TestEndedGroup(t *testing.T) {
	a := serve(t, "127.0.0.1:0")
	if err := a.group.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pleachgrpc.NewClient(a.group, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ended := &client{a.group, conn}
	if _, err := ended.call(t.Context(), ""); status.Code(err) != codes.Unavailable {
		t.Errorf("request: %v", err)
	}
}

func TestAddressOf(t *testing.T) {
	for meta, want := range map[string]string{
		"":                                    "",
		"v1":                                  "",
		"grpc 10.0.0.1:5":                     "10.0.0.1:5",
		"v1\ngrpc 10.0.0.1:5\nx":              "10.0.0.1:5",
		"grpc 10.0.0.1:5 draining":            "",
		pleachgrpc.WithAddress("", "a:1"):     "a:1",
		pleachgrpc.WithAddress("v1", "a:1"):   "a:1",
		pleachgrpc.WithAddress("v1\n", "a:1"): "a:1",
		pleachgrpc.WithAddress("grpc a:1 draining\nv1", "b:2"): "b:2",
	} {
		got, ok := pleachgrpc.AddressOf(pleach.Member{Meta: meta})
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", meta, got, ok)
		}
	}
}
