package transfer

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
)

// network is a group in memory, with what copies need: broadcasts in order, requests that
// end with the receiver, and views. Members join and die when a test says so.
type network struct {
	mu      sync.Mutex
	view    pleach.View
	changed notify.Notifier
	live    map[int]*node
}

// node is a member of a network.
type node struct {
	net     *network
	self    pleach.Member
	life    context.Context
	die     context.CancelFunc
	dir     string
	service *Service

	mu      sync.Mutex
	inbox   []func()
	arrived notify.Notifier
	handler func(context.Context, pleach.Request) ([]byte, error)
}

func newNetwork() *network { return &network{live: make(map[int]*node)} }

// install makes a view of the live members. It is called with the lock held.
func (n *network) install() {
	var members []pleach.Member
	slots := 0
	for rank, m := range n.live {
		members = append(members, m.self)
		slots = max(slots, rank+1)
	}
	n.view = pleach.NewView(n.view.Number+1, slots, members...)
	n.changed.Notify()
}

// join adds a member with a directory, which may have files of one that has died.
func (n *network) join(t testing.TB, rank int, dir string, c Config) *node {
	n.mu.Lock()
	m := &node{net: n, dir: dir, self: pleach.Member{Rank: rank, ID: fmt.Sprint(rank), Incarnation: n.view.Number + 1}}
	m.life, m.die = context.WithCancel(context.Background())
	n.live[rank] = m
	n.install()
	n.mu.Unlock()
	if c.Dirs == nil {
		c.Dirs = []string{dir}
	}
	s, err := New(m, c)
	if err != nil {
		t.Fatal(err)
	}
	s.chunk = minChunk
	m.service = s
	go m.run()
	t.Cleanup(func() { n.kill(rank, m) })
	return m
}

// kill makes a member die: nothing reaches it any more, and it reaches no other member.
func (n *network) kill(rank int, m *node) {
	n.mu.Lock()
	if n.live[rank] == m {
		delete(n.live, rank)
		m.die()
		n.install()
	}
	n.mu.Unlock()
	m.service.Close()
}

// run handles what arrives.
func (m *node) run() {
	for m.life.Err() == nil {
		arrived := m.arrived.Wait()
		m.mu.Lock()
		inbox := m.inbox
		m.inbox = nil
		m.mu.Unlock()
		for _, f := range inbox {
			if m.life.Err() == nil {
				f()
			}
		}
		if len(inbox) == 0 {
			select {
			case <-arrived:
			case <-m.life.Done():
			}
		}
	}
}

func (m *node) Self() pleach.Member { return m.self }

func (m *node) View() pleach.View {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	return m.net.view
}

func (m *node) Views(ctx context.Context) iter.Seq[pleach.View] {
	return func(yield func(pleach.View) bool) {
		for ctx.Err() == nil && m.life.Err() == nil {
			changed := m.net.changed.Wait()
			if !yield(m.View()) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			case <-m.life.Done():
			}
		}
	}
}

func (m *node) BroadcastTopic(ctx context.Context, _ string, data []byte) error {
	if m.life.Err() != nil {
		return pleach.ErrClosed
	}
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	for _, to := range m.net.live {
		if data := bytes.Clone(data); to != m {
			to.deliver(func() { to.service.Receive(pleach.Message{From: m.self.Rank, Data: data}) })
		}
	}
	return ctx.Err()
}

func (m *node) deliver(f func()) {
	m.mu.Lock()
	m.inbox = append(m.inbox, f)
	m.mu.Unlock()
	m.arrived.Notify()
}

func (m *node) Request(ctx context.Context, member pleach.Member, name string, data []byte) ([]byte, error) {
	to := member.Rank
	m.net.mu.Lock()
	peer, view := m.net.live[to], m.net.view.Number
	m.net.mu.Unlock()
	if peer == nil {
		return nil, &pleach.GoneError{Rank: to, View: view}
	}
	peer.mu.Lock()
	handler := peer.handler
	peer.mu.Unlock()
	if handler == nil {
		return nil, &pleach.RequestError{Rank: to, Name: name, Err: pleach.ErrNoHandler}
	}
	type result struct {
		reply []byte
		err   error
	}
	results := make(chan result, 1)
	served, cancel := context.WithCancel(peer.life)
	defer cancel()
	go func() {
		reply, err := handler(served, pleach.Request{From: m.self.Rank, Name: name, Data: data})
		results <- result{reply, err}
	}()
	select {
	case r := <-results:
		return r.reply, r.err
	case <-peer.life.Done():
		return nil, &pleach.GoneError{Rank: to, View: view + 1}
	case <-m.life.Done():
		return nil, pleach.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *node) Handle(_ string, f func(context.Context, pleach.Request) ([]byte, error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handler = f
}

// Release overwrites the message, as a group may.
func (m *node) Release(released pleach.Message) {
	for i := range released.Data {
		released.Data[i] ^= 0xff
	}
}

// file is the file of a name that a member has.
func (m *node) file(name string) string {
	b, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}
