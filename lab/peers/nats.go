package main

import (
	"context"
	"errors"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/pleach-go/pleach/lab/bench/broadcast"
)

// natsPeer is one NATS server in this process, with a client for each member:
// what a service does that has a broker at hand. The server counts among the
// members' goroutines and memory, and no message survives its death.
func natsPeer() peerSystem {
	return peerSystem{
		System: broadcast.System{Name: "nats", Start: startNATS, Files: 2},
		module: "github.com/nats-io/nats-server/v2",
	}
}

const natsSubject = "bench"

type natsGroup struct {
	server  *server.Server
	clients []*nats.Conn
}

func startNATS(_ context.Context, members int, arrived func(int, []byte)) (broadcast.Started, error) {
	s, err := newNATS(server.RANDOM_PORT)
	if err != nil {
		return nil, err
	}
	g := &natsGroup{server: s}
	for rank := range members {
		if err := g.connect(s.ClientURL(), rank != 0, func(payload []byte) { arrived(rank, payload) }); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

func (g *natsGroup) Broadcast(_ context.Context, payload []byte) error {
	return g.clients[0].Publish(natsSubject, payload)
}

// Counts knows messages; of bytes, clients tell only those within messages.
func (g *natsGroup) Counts() (messages, bytes uint64) {
	for _, c := range g.clients {
		messages += c.Stats().InMsgs
	}
	return messages, 0
}

func (g *natsGroup) Close() error {
	for _, c := range g.clients {
		c.Close()
	}
	g.server.Shutdown()
	g.server.WaitForShutdown()
	return nil
}
