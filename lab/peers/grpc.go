package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// grpcPeer is what one writes by hand: a binomial tree, the same as Pleach's, of
// streams that stay open. Messages are bytes, without protobuf. Members below
// a dead one get nothing.
func grpcPeer() peerSystem {
	return peerSystem{
		System: broadcast.System{Name: "grpc", Start: startGRPC, Files: 3},
		module: "google.golang.org/grpc",
	}
}

const grpcMethod = "/bench.Tree/Pass"

// rawCodec passes bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "raw" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

type grpcMember struct {
	rank     int
	address  string
	server   *grpc.Server
	conns    []*grpc.ClientConn
	children []grpc.ClientStream
	arrived  func(int, []byte)

	messages, bytes atomic.Uint64
}

type grpcGroup []*grpcMember

func startGRPC(ctx context.Context, members int, arrived func(int, []byte)) (broadcast.Started, error) {
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, protocol.Rank(members), 0)
	if err != nil {
		return nil, err
	}
	g := make(grpcGroup, members)
	for rank := range g {
		g[rank] = &grpcMember{rank: rank, arrived: arrived}
		if err := g[rank].serve(); err != nil {
			return nil, errors.Join(err, g[:rank].Close())
		}
	}
	for _, m := range g {
		if err := m.openAll(ctx, tree, func(child protocol.Rank) string { return g[child].address }); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (m *grpcMember) serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	m.serveOn(listener)
	return nil
}

func (m *grpcMember) serveOn(listener net.Listener) {
	m.address = listener.Addr().String()
	m.server = grpc.NewServer(grpc.ForceServerCodec(rawCodec{}))
	m.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Tree", HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Pass", ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error { return m.pass(s) },
		}},
	}, m)
	go func() { _ = m.server.Serve(listener) }() // until Stop
}

// openAll opens the streams to all children.
func (m *grpcMember) openAll(ctx context.Context, tree topology.Tree, address func(child protocol.Rank) string) error {
	for i := 0; ; i++ {
		child, ok := tree.Child(protocol.Rank(m.rank), i)
		if !ok {
			return nil
		}
		if err := m.open(ctx, address(child)); err != nil {
			return err
		}
	}
}

// open opens the stream to a child, and waits for the connection.
func (m *grpcMember) open(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.WaitForReady(true)))
	if err != nil {
		return err
	}
	m.conns = append(m.conns, conn)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, grpcMethod)
	if err != nil {
		return fmt.Errorf("rank %d: %w", m.rank, err)
	}
	m.children = append(m.children, stream)
	return nil
}

// pass hands on what the parent sends, and takes it.
func (m *grpcMember) pass(parent grpc.ServerStream) error {
	for {
		var payload []byte
		if err := parent.RecvMsg(&payload); err != nil {
			return err
		}
		if err := m.send(payload); err != nil {
			return err
		}
		m.messages.Add(1)
		m.bytes.Add(uint64(len(payload)) + grpcHead)
		m.arrived(m.rank, payload)
	}
}

// grpcHead is what gRPC puts before a message, 5 bytes, and HTTP/2 before that, 9.
const grpcHead = 5 + 9

func (m *grpcMember) send(payload []byte) error {
	for _, child := range m.children {
		if err := child.SendMsg(&payload); err != nil {
			return err
		}
	}
	return nil
}

func (g grpcGroup) Broadcast(_ context.Context, payload []byte) error { return g[0].send(payload) }

func (g grpcGroup) Counts() (messages, bytes uint64) {
	for _, m := range g {
		messages += m.messages.Load()
		bytes += m.bytes.Load()
	}
	return messages, bytes
}

func (g grpcGroup) Close() error {
	return closeAll(g, func(m *grpcMember) error {
		for _, c := range m.conns {
			_ = c.Close() // its stream ends in an error, as it should
		}
		m.server.Stop()
		return nil
	})
}
