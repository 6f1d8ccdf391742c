package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/shard"
)

// A member runs the workloads and writes down what it sees: broadcasts with receipts, views,
// and registers whose owners are those of shards. A register that is kept by all members in
// one order, and a lock, fit beside registers.go: a workload is a function of the member.

// memberConfig is the command line of a member.
type memberConfig struct {
	id, process, listen, seeds, dir string
	expect                          int
	seed                            uint64
}

func (m *memberConfig) flags(f *flag.FlagSet) {
	f.StringVar(&m.id, "id", "", "name across restarts")
	f.StringVar(&m.process, "process", "", "name of this start")
	f.StringVar(&m.listen, "listen", "", "address")
	f.StringVar(&m.seeds, "seeds", "", "addresses of all")
	f.StringVar(&m.dir, "dir", "", "folder of the round")
	f.IntVar(&m.expect, "expect", 0, "number of members")
	f.Uint64Var(&m.seed, "seed", 0, "seed of the clients")
}

// member is a process of the group.
type member struct {
	memberConfig
	group   *pleach.Group
	shards  *shard.Shards
	journal *journal
	store   store
	rng     sync.Mutex
	random  *rand.Rand
}

// Sizes of the workloads. A key is a partition of its own with most names, and some share one.
const (
	partitions   = 16
	keys         = 8
	sendPause    = 5 * time.Millisecond
	receiptEvery = 20 // broadcasts
	callPause    = 15 * time.Millisecond
	callLimit    = time.Second
	clients      = 3
	drainTime    = time.Second // after the end of sending
)

func runMember(c memberConfig) (err error) {
	m := &member{memberConfig: c, random: rand.New(rand.NewPCG(c.seed, 7)), store: store{filepath.Join(c.dir, "store"), make(map[int]cached), sync.Mutex{}}}
	if m.journal, err = openJournal(filepath.Join(c.dir, c.process+".jsonl")); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	m.group, err = pleach.Join(ctx, pleach.Config{
		Group: "verify", ID: c.id, Listen: c.listen, Expect: c.expect, DataDir: filepath.Join(c.dir, "data-"+c.id),
		Rejoin: true, Secret: []byte("a secret of sixteen bytes or more"),
	}, strings.Split(c.seeds, ",")...)
	if err != nil {
		return err
	}
	m.group.Handle("register", m.serveRequest)
	if m.shards, err = shard.New(m.group, shard.Config{Partitions: partitions, Lease: time.Second}); err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	defer end()
	var receiving, sending sync.WaitGroup
	receiving.Go(func() { m.followViews(life) })
	receiving.Go(func() { m.deliver(life) })
	sending.Go(func() { m.broadcast(ctx) })
	for range clients {
		sending.Go(func() { m.call(ctx) })
	}
	<-ctx.Done()
	sending.Wait()
	time.Sleep(drainTime) // what others have sent arrives
	end()
	receiving.Wait()
	m.journal.write(Event{Type: evEnd})
	closing, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	return errors.Join(ignore(m.shards.Close(closing)), m.group.Close())
}

// ignore drops the error of a handover that nobody waits for any more.
func ignore(error) error { return nil }

// followViews writes down views.
func (m *member) followViews(ctx context.Context) {
	for v := range m.group.Views(ctx) {
		e := Event{Type: evView, View: v.Number, Members: membersOf(v.Members())}
		if v.Err != nil {
			e.Err = v.Err.Error()
		}
		self := m.group.Self()
		e.Self = &Member{self.Rank, self.ID, self.Incarnation}
		m.journal.write(e)
	}
}

func membersOf(list []pleach.Member) (members []Member) {
	for _, m := range list {
		members = append(members, Member{m.Rank, m.ID, m.Incarnation})
	}
	return members
}

// deliver writes down messages and notices.
func (m *member) deliver(ctx context.Context) {
	for msg := range m.group.Messages(ctx) {
		if msg.Gap != nil || msg.Lost > 0 {
			m.journal.write(Event{Type: evNotice, Err: fmt.Sprint(msg.Gap, msg.Lost)})
			continue
		}
		from, seq, _ := strings.Cut(string(msg.Data), " ")
		n, _ := strconv.Atoi(seq)
		m.journal.write(Event{Type: evDeliver, View: msg.View, Rank: msg.From, From: from, Seq: n})
	}
}

// broadcast sends numbered messages, and asks for receipts.
func (m *member) broadcast(ctx context.Context) {
	for seq := 1; pause(ctx, sendPause); seq++ {
		sending, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := m.group.Broadcast(sending, fmt.Appendf(nil, "%s %d", m.process, seq))
		cancel()
		m.journal.write(Event{Type: evSend, Seq: seq, Err: text(err)})
		if err == nil && seq%receiptEvery == 0 {
			waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
			r, err := m.group.WaitStable(waiting)
			cancel()
			m.journal.write(Event{Type: evReceipt, View: r.View, Seq: seq, Members: membersOf(r.Members), Err: text(err)})
		}
	}
}

// call makes calls of one client, one after the other.
func (m *member) call(ctx context.Context) {
	for pause(ctx, callPause) {
		m.rng.Lock()
		r := request{Key: m.random.IntN(keys), Write: m.random.IntN(2) == 0}
		op := int(m.random.Int32())
		m.rng.Unlock()
		if r.Write {
			r.Value = fmt.Sprint(m.process, "-", op)
		}
		m.journal.write(Event{Type: evCall, Op: op, Key: r.Key, Write: r.Write, Value: r.Value})
		calling, cancel := context.WithTimeout(ctx, callLimit)
		value, err := m.route(calling, r)
		cancel()
		if err == nil || errors.Is(err, errNotDone) { // otherwise it may have been done
			m.journal.write(Event{Type: evReturn, Op: op, Key: r.Key, Write: r.Write, Value: value, Err: text(err)})
		}
	}
}

// route has the owner of a key do something.
func (m *member) route(ctx context.Context, r request) (string, error) {
	owner, ok := m.shards.Owner(r.name())
	switch {
	case !ok:
		return "", errNotDone
	case owner.Member.ID == m.id:
		return m.serve(ctx, r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	reply, err := m.group.Request(ctx, owner.Member.Rank, "register", data)
	var refused *pleach.RequestError
	if errors.As(err, &refused) && strings.Contains(err.Error(), errNotDone.Error()) {
		err = errNotDone
	}
	return string(reply), err
}

func (m *member) serveRequest(ctx context.Context, r pleach.Request) ([]byte, error) {
	var asked request
	if err := json.Unmarshal(r.Data, &asked); err != nil {
		return nil, err
	}
	value, err := m.serve(ctx, asked)
	return []byte(value), err
}

// pause waits, and reports false when the work is to end.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
