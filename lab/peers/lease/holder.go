package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/replicated"
)

// The systems.
const (
	pleachName = "pleach"
	etcdName   = "etcd"
)

// holder is a process that contends for all leases.
type holder struct {
	ttl    time.Duration
	leases int
	id     string
	others []string // members, or the server
	out    sync.Mutex
}

// acquire waits for a lease, and returns a channel that is closed when it is lost.
type acquire func(ctx context.Context, name string) (lost <-chan struct{}, err error)

// hold is one process: SYSTEM TTL LEASES ID OTHERS…
func hold(ctx context.Context, args []string) error {
	if len(args) < 4 {
		return errors.New("a holder is started by this program")
	}
	h := &holder{id: args[3], others: args[4:]}
	var err error
	h.ttl, err = time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	h.leases, err = strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	start := h.joinPleach
	if args[0] == etcdName {
		start = h.joinEtcd
	}
	address, take, err := start(ctx)
	if err != nil {
		return err
	}
	h.report("ready", address)
	for i := range h.leases {
		go h.contend(ctx, i, take)
	}
	<-ctx.Done()
	return nil
}

// contend holds a lease, over and over.
func (h *holder) contend(ctx context.Context, i int, take acquire) {
	for ctx.Err() == nil {
		lost, err := take(ctx, fmt.Sprint("lease-", i))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		h.report("held", i)
		<-lost
		h.report("lost", i)
	}
}

func (h *holder) report(word string, rest any) {
	h.out.Lock()
	defer h.out.Unlock()
	fmt.Println(word, rest)
}

// joinPleach makes this process a member.
func (h *holder) joinPleach(ctx context.Context) (string, acquire, error) {
	table := lease.NewTable()
	replica, err := replicated.Join(ctx, replicated.Config{
		Group:    pleach.Config{Group: "bench-lease", ID: h.id, Rejoin: true},
		Machines: map[string]replicated.Machine{"leases": table},
	}, h.others...)
	if err != nil {
		return "", nil, err
	}
	leases, err := lease.New(lease.Config{Replica: replica, Machine: "leases", Table: table, TTL: h.ttl})
	if err != nil {
		return "", nil, err
	}
	return replica.Group().Self().Address, func(ctx context.Context, name string) (<-chan struct{}, error) {
		held, err := leases.Acquire(ctx, name)
		if err != nil {
			return nil, err
		}
		return held.Done(), nil
	}, nil
}

// joinEtcd makes this process a client with a session, whose lease all its mutexes have.
func (h *holder) joinEtcd(ctx context.Context) (string, acquire, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: h.others, DialTimeout: patience, Logger: zap.NewNop()})
	if err != nil {
		return "", nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(max(int(h.ttl/time.Second), 1)),
		concurrency.WithContext(ctx))
	if err != nil {
		return "", nil, err
	}
	return h.others[0], func(ctx context.Context, name string) (<-chan struct{}, error) {
		if err := concurrency.NewMutex(session, name).Lock(ctx); err != nil {
			return nil, err
		}
		return session.Done(), nil
	}, nil
}
