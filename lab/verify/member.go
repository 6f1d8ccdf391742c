package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/shard"
)

// A member runs the workloads of its kind of round and writes down what it sees. A workload is a
// function of the member.

// memberConfig is the command line of a member.
type memberConfig struct {
	id, process, listen, seeds, dir, kind string
	expect                                int
	seed                                  uint64
}

func (m *memberConfig) flags(f *flag.FlagSet) {
	f.StringVar(&m.id, "id", "", "name across restarts")
	f.StringVar(&m.process, "process", "", "name of this start")
	f.StringVar(&m.listen, "listen", "", "address")
	f.StringVar(&m.seeds, "seeds", "", "addresses of all")
	f.StringVar(&m.dir, "dir", "", "directory of the round")
	f.StringVar(&m.kind, "kind", disks, "kind of the round")
	f.IntVar(&m.expect, "expect", 0, "number of members")
	f.Uint64Var(&m.seed, "seed", 0, "seed of the clients")
}

// member is a process of the group.
type member struct {
	memberConfig
	group   *pleach.Group
	shards  *shard.Shards       // in a round with disks
	replica *replicated.Replica // in a round of memory
	do      func(ctx context.Context, r request) (string, error)
	pause   time.Duration // between two calls of do by a client
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
	longEvery    = 8                      // broadcasts
	longMessage  = 40_000                 // bytes: several segments
	drainTime    = time.Second            // after the end of sending
	fullPause    = 100 * time.Millisecond // before a process starts again whose disk is full
)

func runMember(c memberConfig) (err error) {
	m := &member{memberConfig: c, random: rand.New(rand.NewPCG(c.seed, 7)), store: store{
		filepath.Join(c.dir, "store"),
		make(map[int]cached),
		sync.Mutex{},
	}}
	m.journal, err = openJournal(filepath.Join(c.dir, c.process+".jsonl"))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	followShifts(shiftFile(c.dir, c.id))
	config := pleach.Config{
		Group: "verify", ID: c.id, Listen: c.listen, Expect: c.expect,
		Recovery: pleach.Recovery{Rejoin: true},
		Security: pleach.Security{Secret: []byte("a secret of sixteen bytes or more")},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	join := m.joinOwners
	if c.kind == memory {
		join = m.joinState
	}
	w, err := join(ctx, config, strings.Split(c.seeds, ","))
	if err != nil && ctx.Err() != nil {
		return nil // it is stopped before it is a member
	}
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	defer end()
	var receiving, sending sync.WaitGroup
	for _, f := range append(w.receive, m.followViews) {
		receiving.Go(func() { f(life) })
	}
	for _, f := range w.send {
		sending.Go(func() { f(ctx) })
	}
	<-ctx.Done()
	sending.Wait()
	time.Sleep(drainTime) // what others have sent arrives
	end()
	receiving.Wait()
	m.journal.write(Event{Type: evEnd})
	closing, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	return w.close(closing)
}

// work is what a member does: it sends until it is to end, and receives a little longer.
type work struct {
	send, receive []func(ctx context.Context)
	close         func(ctx context.Context) error
}

// joinOwners makes this process a member of a group with broadcasts, and registers that have
// owners.
func (m *member) joinOwners(ctx context.Context, config pleach.Config, seeds []string) (w work, err error) {
	config.Recovery.DataDir = filepath.Join(m.dir, "data-"+m.id)
	for m.group, err = pleach.Join(ctx, config, seeds...); errors.Is(err, syscall.ENOSPC) && pause(ctx, fullPause); {
		m.group, err = pleach.Join(ctx, config, seeds...) // as a supervisor does
	}
	if err != nil {
		return w, err
	}
	m.group.Handle("register", m.serveRequest)
	m.do, m.pause = m.route, callPause
	m.shards, err = shard.New(m.group, shard.Config{Partitions: partitions, Lease: time.Second})
	if err != nil {
		return w, err
	}
	return work{
		send:    []func(context.Context){m.broadcast, m.call, m.call, m.call},
		receive: []func(context.Context){m.deliver},
		close: func(ctx context.Context) error {
			_ = m.shards.Leave(ctx) // nobody waits for what is handed over
			return m.group.Close()
		},
	}, nil
}

// sizeFile has the size of a member's view, for the nemesis; 0: it has no quorum.
func sizeFile(dir, id string) string { return filepath.Join(dir, id+".size") }

// followViews writes down views.
func (m *member) followViews(ctx context.Context) {
	for v := range m.group.Views(ctx) {
		e, size := Event{Type: evView, View: v.Number, Members: membersOf(v.Members())}, v.Size()
		if v.Err != nil {
			e.Err, size = v.Err.Error(), 0
		}
		self := m.group.Self()
		e.Self = &Member{self.Rank, self.ID, self.Incarnation}
		m.journal.write(e)
		_ = os.WriteFile(sizeFile(m.dir, m.id), fmt.Append(nil, size), 0o600)
	}
}

func membersOf(list []pleach.Member) (members []Member) {
	for _, m := range list {
		members = append(members, Member{m.Rank, m.ID, m.Incarnation})
	}
	return members
}

// deliver writes down messages, and errors in their place.
func (m *member) deliver(ctx context.Context) {
	for msg, err := range m.group.Messages(ctx) {
		if err != nil {
			m.journal.write(Event{Type: evNotice, Err: err.Error()})
			continue
		}
		e := Event{Type: evDeliver, View: msg.View, Rank: msg.From}
		if _, err := fmt.Sscan(string(msg.Data), &e.From, &e.Seq); err != nil {
			panic(err) // it is not what was sent
		}
		m.journal.write(e)
	}
}

// broadcast sends numbered messages, and asks for receipts.
func (m *member) broadcast(ctx context.Context) {
	positions := []uint64{0} // what Sent was before each message
	missing := 0             // the last message that an error has named
	for seq := 1; pause(ctx, sendPause); seq++ {
		positions = append(positions, m.group.Sent())
		sending, cancel := context.WithTimeout(ctx, 5*time.Second)
		data := fmt.Appendf(nil, "%s %d ", m.process, seq)
		if seq%longEvery == 0 {
			data = append(data, make([]byte, longMessage)...)
		}
		err := m.group.Broadcast(sending, data)
		cancel()
		m.journal.write(Event{Type: evSend, Seq: seq, Err: text(err)})
		if err == nil && seq%receiptEvery == 0 {
			waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
			r, err := m.group.WaitStable(waiting)
			if lost := new(pleach.UnconfirmedError); errors.As(err, &lost) {
				for missing < seq && positions[missing+1] < lost.Last() {
					missing++
				}
				r, err = m.group.WaitStable(waiting, pleach.Since(lost.Last()))
			}
			cancel()
			m.journal.write(Event{
				Type: evReceipt, View: r.View, Seq: seq, Since: missing, Members: membersOf(r.Members),
				Err: text(err),
			})
		}
	}
}

// call makes calls of one client, one after the other.
func (m *member) call(ctx context.Context) {
	for pause(ctx, m.pause) {
		op, write := m.draw()
		r := request{Key: op % keys, Write: write}
		if r.Write {
			r.Value = m.unique(op)
		}
		m.journal.write(Event{Type: evCall, Op: op, Key: r.Key, Write: r.Write, Value: r.Value})
		calling, cancel := context.WithTimeout(ctx, callLimit)
		value, err := m.do(calling, r)
		cancel()
		if err == nil || errors.Is(err, errNotDone) { // otherwise it may have been done
			m.journal.write(Event{Type: evReturn, Op: op, Key: r.Key, Write: r.Write, Value: value, Err: text(err)})
		}
	}
}

// draw draws the number of a call, and whether it writes.
func (m *member) draw() (op int, write bool) {
	m.rng.Lock()
	defer m.rng.Unlock()
	return int(m.random.Int32()), m.random.IntN(2) == 0
}

// unique is a value that no other call has.
func (m *member) unique(op int) string { return fmt.Sprint(m.process, "-", op) }

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
	reply, err := m.group.Request(ctx, owner.Member, "register", data)
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
