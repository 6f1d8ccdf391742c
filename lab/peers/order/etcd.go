package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pleach-go/pleach/lab/bench/etcd"
	"github.com/pleach-go/pleach/lab/bench/order"
)

// etcdName differs from that of package order, whose puts go by HTTP and JSON.
const etcdName = "etcd-puts"

const (
	maxServers = 5 // more make etcd slower, and its manual advises against them
	keys       = 1000
)

func etcdSystem() order.System { return order.System{Name: etcdName, Senders: 32, Start: startEtcd} }

// puts puts messages to etcd, one of a thousand keys each.
type puts struct {
	cluster *etcd.Cluster
	clients []*clientv3.Client // of members
	done    atomic.Int64
}

func startEtcd(ctx context.Context, members int) (order.Started, error) {
	cluster, err := etcd.Start(ctx, min(members, maxServers))
	if err != nil {
		return nil, err
	}
	p := &puts{cluster: cluster}
	for m := range members {
		client, err := clientv3.New(clientv3.Config{
			Endpoints:   []string{cluster.URLs[m%len(cluster.URLs)]},
			DialTimeout: timeout, Logger: zap.NewNop(),
		})
		if err != nil {
			p.Close()
			return nil, err
		}
		p.clients = append(p.clients, client)
	}
	return p, nil
}

// Send puts a message by the server of a member.
func (p *puts) Send(ctx context.Context, m int, data []byte) error {
	_, err := p.clients[m].Put(ctx, fmt.Sprint("key-", p.done.Load()%keys), string(data))
	if err == nil {
		p.done.Add(1)
	}
	return err
}

// Received returns how many puts are done.
func (p *puts) Received(int) int { return int(p.done.Load()) }

// Await returns at once: a put that has returned is done.
func (p *puts) Await(ctx context.Context) error { return ctx.Err() }

// Close ends the clients and the servers.
func (p *puts) Close() {
	var errs []error
	for _, c := range p.clients {
		errs = append(errs, c.Close())
	}
	_ = errors.Join(errs...) // their servers end
	p.cluster.Close()
}
