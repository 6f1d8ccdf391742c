// Package pleachgrpc connects gRPC clients to the members of a group. A member announces the address
// at which it serves; clients that are members of the group, too, distribute their requests over all
// serving members. A server that shuts down is announced as draining first, so that no request fails.
//
// A server:
//
//	group, err := pleach.Join(ctx, pleach.Config{Group: "web", Meta: pleachgrpc.WithAddress("", address)}, seeds...)
//	…
//	<-terminated
//	err = pleachgrpc.Drain(ctx, group, server)
//	err = group.Close()
//
// A client, which should be an observer, so that the number of clients does not matter for the quorum:
//
//	group, err := pleach.Join(ctx, pleach.Config{Group: "web", Observer: true}, seeds...)
//	conn, err := pleachgrpc.NewClient(group, grpc.WithTransportCredentials(credentials))
//
// The addresses are part of the agreed view: a new server gets requests as soon as it is a member, and
// a dead or unresponsive one gets none once it has been removed. No DNS server, registry or health
// check is involved.
package pleachgrpc

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/resolver"

	"github.com/pleach-go/pleach"
)

// Scheme is the scheme of targets that [Resolver] resolves.
const Scheme = "pleach"

// NewClient returns a connection to the serving members of a group, which get requests in turn
// (gRPC's round_robin). Options are those of [grpc.NewClient]. If they contain a default service
// config, it must name a load balancing policy: gRPC's default uses one server only.
//
// With TLS, the certificate of a server must be valid for the host of its address, unless the options
// contain [grpc.WithAuthority].
//
// Close the connection before the group.
func NewClient(group *pleach.Group, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	ours := []grpc.DialOption{
		grpc.WithResolvers(Resolver(group)),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + roundrobin.Name + `": {}}]}`),
	}
	return grpc.NewClient(Scheme+":///members", append(ours, options...)...)
}

// Resolver returns a resolver for targets of [Scheme], whatever follows it. They resolve to the
// serving members of the current view. [NewClient] includes it.
func Resolver(group *pleach.Group) resolver.Builder { return builder{group} }

type builder struct{ group *pleach.Group }

// Scheme implements [resolver.Builder].
func (builder) Scheme() string { return Scheme }

// Build implements [resolver.Builder].
func (b builder) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	if err := b.group.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{cancel: cancel}
	w.running.Go(func() { follow(ctx, b.group, cc) })
	return w, nil
}

// watch passes the serving members to one connection.
type watch struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// ResolveNow implements [resolver.Resolver]. Views arrive without being asked for.
func (*watch) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements [resolver.Resolver].
func (w *watch) Close() {
	w.cancel()
	w.running.Wait()
}

// errEnded is reported to a connection whose group has ended. The connection keeps its servers.
var errEnded = errors.New("this process is no longer a member of the group")

// follow passes the serving members of each view to a connection.
func follow(ctx context.Context, group *pleach.Group, cc resolver.ClientConn) {
	var last []server
	for v := range group.Views(ctx) {
		next := serversOf(v)
		if last != nil && slices.Equal(last, next) {
			continue
		}
		last = next
		// The error says that no server can be picked now. A later view may have one.
		_ = cc.UpdateState(stateOf(next))
	}
	if ctx.Err() == nil {
		cc.ReportError(errEnded)
	}
}

// server is a member that serves.
type server struct {
	address     string
	incarnation uint64
}

// serversOf returns the serving members of a view, one for each address: if several members announce
// the same one, the latest counts.
func serversOf(v pleach.View) []server {
	servers := make([]server, 0, v.Size())
	for _, m := range v.Members() {
		address, ok := AddressOf(m)
		if !ok {
			continue
		}
		s := server{address, m.Incarnation}
		i := slices.IndexFunc(servers, func(other server) bool { return other.address == address })
		switch {
		case i < 0:
			servers = append(servers, s)
		case servers[i].incarnation < s.incarnation:
			servers[i] = s
		}
	}
	return servers
}

// incarnation is the key of an attribute. It makes the address of a restarted member another one, so
// that gRPC connects at once instead of waiting for its reconnection backoff.
type incarnation struct{}

func stateOf(servers []server) resolver.State {
	endpoints := make([]resolver.Endpoint, 0, len(servers))
	for _, s := range servers {
		address := resolver.Address{Addr: s.address, Attributes: attributes.New(incarnation{}, s.incarnation)}
		if host, _, err := net.SplitHostPort(s.address); err == nil {
			address.ServerName = host
		}
		endpoints = append(endpoints, resolver.Endpoint{Addresses: []resolver.Address{address}})
	}
	return resolver.State{Endpoints: endpoints}
}
