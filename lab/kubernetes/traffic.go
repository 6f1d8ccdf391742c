package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
)

// Traffic runs next to the agent of each pod: it sends, receives, writes keys and takes a lock, and
// tells a collector outside of the cluster what it has seen. What it has not told yet when its node
// is cut off it tells later.

// The rates of one pod.
const (
	sendEvery   = 30 * time.Millisecond
	putEvery    = 250 * time.Millisecond
	lockEvery   = time.Second
	statusEvery = 100 * time.Millisecond
)

// The kinds of records.
const (
	recordSent       = "sent"     // Key is the message
	recordStable     = "stable"   // all of Members have it
	recordReceived   = "received" //
	recordMissed     = "missed"   // the subscriber got an event about missed messages
	recordPut        = "put"      // Key has N
	recordLostKey    = "lost key" // Key had N once, and has it no more
	recordToken      = "token"    // the lock was taken with token N
	recordQuorum     = "quorum"   // N is 1 with a quorum, 0 without
	recordSubscribed = "subscribed"
	recordFlooded    = "flooded" // the agent has taken N messages in a flood
)

// record is something that a pod has seen.
type record struct {
	Pod     string   `json:"pod"`
	Process int64    `json:"process"` // when it began
	Time    int64    `json:"time"`
	Kind    string   `json:"kind"`
	Key     string   `json:"key,omitempty"`
	N       uint64   `json:"n,omitempty"`
	Members []string `json:"members,omitempty"`
}

// seen is what one process has seen and not told yet.
type seen struct {
	pod     string
	process int64
	records chan record
}

func (s *seen) note(r record) {
	r.Pod, r.Process = s.pod, s.process
	if r.Time == 0 {
		r.Time = time.Now().UnixNano()
	}
	s.records <- r
}

// traffic is the program. Its arguments are the pod's name, the agent's socket and the collector.
func traffic(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("traffic: POD SOCKET COLLECTOR")
	}
	s := &seen{args[0], time.Now().UnixNano(), make(chan record, 1<<17)}
	c := client.Socket(args[1])
	var telling, working sync.WaitGroup
	telling.Go(func() { s.tell(args[2]) })
	for _, work := range []func(context.Context, *client.Client){s.send, s.receive, s.put, s.lock, s.watch, s.flood} {
		working.Go(func() { work(ctx, c) })
	}
	working.Wait()
	close(s.records)
	telling.Wait()
	return nil
}

// tell writes records to the collector, again and again if the connection breaks.
func (s *seen) tell(collector string) {
	var connection net.Conn
	for r := range s.records {
		text, err := json.Marshal(r)
		for err == nil {
			if connection == nil {
				connection, err = net.DialTimeout("tcp", collector, time.Second)
			}
			if err == nil {
				_ = connection.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err = connection.Write(append(text, '\n')); err == nil {
					break
				}
				_ = connection.Close()
				connection = nil
			}
			time.Sleep(100 * time.Millisecond)
			err = nil
		}
	}
}

// send sends numbered messages, and says which have arrived everywhere.
func (s *seen) send(ctx context.Context, c *client.Client) {
	pace := time.NewTicker(sendEvery)
	defer pace.Stop()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	limit := make(chan struct{}, 64)
	for n := uint64(1); ctx.Err() == nil; n++ {
		<-pace.C
		limit <- struct{}{}
		waiting.Go(func() {
			defer func() { <-limit }()
			key := fmt.Sprintf("%s/%d/%d", s.pod, s.process, n)
			sent := time.Now().UnixNano()
			receipt, err := c.Broadcast(ctx, "traffic", []byte(key), true, 20*time.Second)
			if err != nil {
				return
			}
			s.note(record{Time: sent, Kind: recordSent, Key: key})
			var members []string
			for _, m := range receipt.Members {
				members = append(members, m.ID)
			}
			s.note(record{Kind: recordStable, Key: key, Members: members})
		})
	}
}

// floodTime is how long a signal has the program send as much as the agent takes.
const floodTime = 30 * time.Second

// flood waits for signals.
func (s *seen) flood(ctx context.Context, c *client.Client) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	for {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		limited, cancel := context.WithTimeout(ctx, floodTime)
		var senders sync.WaitGroup
		var taken atomic.Uint64
		for range 16 {
			senders.Go(func() {
				for body := make([]byte, 16<<10); limited.Err() == nil; {
					if _, err := c.Broadcast(limited, "flood", body, false, floodTime); err == nil {
						taken.Add(1)
					}
				}
			})
		}
		senders.Wait()
		cancel()
		s.note(record{Kind: recordFlooded, N: taken.Load()})
	}
}

// receive subscribes, and resumes after the last message if the agent is started again.
func (s *seen) receive(ctx context.Context, c *client.Client) {
	subscription := client.Subscription{Topic: new(string)}
	*subscription.Topic = "traffic"
	subscription.Begins = func(id string) { subscription.After = id }
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		_ = c.Messages(ctx, subscription, func() { s.note(record{Kind: recordSubscribed}) }, func(e client.Event) error {
			subscription.After = e.ID
			switch {
			case e.Message != nil:
				s.note(record{Kind: recordReceived, Key: e.Message.Data})
			case e.Missed != nil || e.Gap != nil:
				s.note(record{Kind: recordMissed})
			}
			return nil
		})
	}
}

// put counts in a key of its own.
func (s *seen) put(ctx context.Context, c *client.Client) {
	key := fmt.Sprintf("%s-%d", s.pod, s.process)
	for n := uint64(1); ctx.Err() == nil; time.Sleep(putEvery) {
		if n > 1 {
			e, err := c.Get(ctx, key, 10*time.Second)
			if isGone(err) || err == nil && e.Data != fmt.Sprint(n-1) && e.Data != fmt.Sprint(n) {
				s.note(record{Kind: recordLostKey, Key: key, N: n - 1})
			}
		}
		if _, err := c.Put(ctx, key, fmt.Append(nil, n), nil, 10*time.Second); err == nil {
			s.note(record{Kind: recordPut, Key: key, N: n})
			n++
		}
	}
}

// isGone reports whether there is no such key, although the agent is a member.
func isGone(err error) bool {
	var refused *client.RefusedError
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// lock takes the lock that all pods want, and tells its token.
func (s *seen) lock(ctx context.Context, c *client.Client) {
	for ; ctx.Err() == nil; time.Sleep(lockEvery) {
		request := client.LockRequest{Name: "traffic", TTL: api.DefaultTTL, Wait: true, Timeout: 20 * time.Second}
		l, err := c.Lock(ctx, request)
		if err != nil {
			continue
		}
		s.note(record{Kind: recordToken, N: l.Token})
		_ = c.Unlock(ctx, &l, 10*time.Second)
	}
}

// watch tells whether the agent has a quorum, whenever that changes and once a second.
func (s *seen) watch(ctx context.Context, c *client.Client) {
	for ; ctx.Err() == nil; time.Sleep(statusEvery) {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		status, err := c.Status(limited)
		cancel()
		has := uint64(0)
		if err == nil && status.Quorum.OK {
			has = 1
		}
		s.note(record{Kind: recordQuorum, N: has})
	}
}
