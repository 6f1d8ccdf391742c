package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pleach-go/pleach/lab/bench/order"
)

const (
	jetStreamName = "jetstream"
	servers       = 3 // and replicas of the stream
	subject       = "bench"
	timeout       = 30 * time.Second
	maxPending    = 256 // publications of a member without an acknowledgment
)

func jetStreamSystem() order.System {
	return order.System{Name: jetStreamName, Senders: 1, Start: startJetStream}
}

// jetStream is a stream on servers in this process, and a client with a consumer for each member.
type jetStream struct {
	folder  string
	servers []*server.Server
	clients []*nats.Conn
	streams []nats.JetStreamContext
	counts  []atomic.Int64
	arrived chan struct{} // a message at a member; one that nobody awaits is dropped
}

func startJetStream(ctx context.Context, members int) (order.Started, error) {
	folder, err := os.MkdirTemp("", "pleach-bench-jetstream-")
	if err != nil {
		return nil, err
	}
	j := &jetStream{folder: folder, counts: make([]atomic.Int64, members), arrived: make(chan struct{}, members)}
	err = j.startServers()
	for m := range members {
		if err == nil {
			err = j.connect(ctx, m)
		}
	}
	if err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// startServers starts a cluster.
func (j *jetStream) startServers() error {
	var routes []*url.URL
	var ports []int
	for range servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
		_ = l.Close()
	}
	for i := range servers {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("s", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: "bench", Host: "127.0.0.1", Port: ports[i]}, Routes: routes,
			JetStream: true, StoreDir: filepath.Join(j.folder, fmt.Sprint(i)),
		})
		if err != nil {
			return err
		}
		j.servers = append(j.servers, s)
		s.Start()
	}
	for _, s := range j.servers {
		if !s.ReadyForConnections(timeout) {
			return errors.New("a server takes no connections")
		}
	}
	return nil
}

// connect makes a client of a member, and the stream with the first one.
func (j *jetStream) connect(ctx context.Context, m int) error {
	client, err := nats.Connect(j.servers[m%servers].ClientURL(), nats.Timeout(timeout))
	if err != nil {
		return err
	}
	j.clients = append(j.clients, client)
	stream, err := client.JetStream(nats.PublishAsyncMaxPending(maxPending), nats.MaxWait(time.Second))
	if err != nil {
		return err
	}
	j.streams = append(j.streams, stream)
	if m == 0 {
		if err := addStream(ctx, stream); err != nil {
			return err
		}
	}
	_, err = stream.Subscribe(subject, func(*nats.Msg) { j.note(m) }, nats.OrderedConsumer())
	return err
}

// addStream adds the stream, as soon as the cluster has a leader.
func addStream(ctx context.Context, stream nats.JetStreamContext) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		_, err := stream.AddStream(&nats.StreamConfig{
			Name: "bench", Subjects: []string{subject}, Replicas: servers,
			Storage: nats.FileStorage,
		})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// note counts a message that a member has received.
func (j *jetStream) note(m int) {
	j.counts[m].Add(1)
	select {
	case j.arrived <- struct{}{}:
	default:
	}
}

// Send publishes a message of a member, and waits while too many have no acknowledgment.
func (j *jetStream) Send(ctx context.Context, m int, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := j.streams[m].PublishAsync(subject, data, nats.StallWait(timeout))
	return err
}

// Received returns how many messages a member has received.
func (j *jetStream) Received(m int) int { return int(j.counts[m].Load()) }

// Await waits until every member has received one message.
func (j *jetStream) Await(ctx context.Context) error {
	for range j.counts {
		select {
		case <-j.arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends clients and servers, and removes what they have written.
func (j *jetStream) Close() {
	for _, c := range j.clients {
		c.Close()
	}
	for _, s := range j.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
	_ = os.RemoveAll(j.folder)
}
