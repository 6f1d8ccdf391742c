package transfer

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
)

// Group is what copies need of a group with views: [*pleach.Group] is one. What one member
// broadcasts to [Topic], the others pass to [Service.Receive], in order.
type Group interface {
	Self() pleach.Member
	View() pleach.View
	Views(ctx context.Context) iter.Seq[pleach.View]
	BroadcastTopic(ctx context.Context, topic string, data []byte) error
	Request(ctx context.Context, to pleach.Member, name string, data []byte) ([]byte, error)
	Handle(name string, f func(context.Context, pleach.Request) ([]byte, error))
	Release(m pleach.Message)
}

// Topic is the topic of what copies broadcast, and the name of their requests.
const Topic = "pleach.copy"

// SegmentSize is for Config.Limits of a group that copies files: a chunk is one segment. A
// member wakes up for each segment, so few long ones cost less than many short ones.
const SegmentSize = defaultChunk + 1<<10

// Config configures a Service.
type Config struct {
	// Dirs are the directories, as absolute paths, that files of other members may be written
	// to, and to directories below. A relative target is below the first one. If empty, this
	// member takes no files.
	Dirs []string
	// MaxReceives is how many files this member receives at a time. If zero, 16. Further
	// ones are refused.
	MaxReceives int
	// Logger receives files that have come in and those that have not. If nil, nothing is
	// logged.
	Logger *slog.Logger
}

// defaultReceives is MaxReceives, if that is zero. A member knows maxKnown copies, with
// those that it has refused.
const (
	defaultReceives = 16
	maxKnown        = 1024
)

// Service is a member's part in copies: it sends files, and receives those of others.
type Service struct {
	group  Group
	config Config
	begun  notify.Notifier // notifies when there is a new receive
	cancel context.CancelFunc
	ended  chan struct{}
	chunk  int64 // size of a chunk, in tests

	running  sync.WaitGroup // receives
	mu       sync.Mutex
	receives map[key]*receive
	targets  map[string]*receive // the last one of each file
	closed   bool
}

// key names a copy: its sender's rank, and its number.
type key struct {
	from int
	copy uint64
}

// New makes this process take part in the copies of its group, until Close.
func New(g Group, c Config) (*Service, error) {
	for _, dir := range c.Dirs {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return nil, fmt.Errorf("transfer: %q is not an absolute path", dir)
		}
	}
	if c.MaxReceives == 0 {
		c.MaxReceives = defaultReceives
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{
		group: g, config: c, cancel: cancel, ended: make(chan struct{}),
		receives: make(map[key]*receive), targets: make(map[string]*receive),
	}
	go s.watch(ctx)
	g.Handle(Topic, s.handle)
	return s, nil
}

// Close ends the receives. Partial files stay.
func (s *Service) Close() {
	s.group.Handle(Topic, nil)
	s.cancel()
	<-s.ended
	s.mu.Lock()
	s.closed = true
	var all []*receive
	for _, r := range s.receives {
		all = append(all, r)
	}
	s.mu.Unlock()
	for _, r := range all {
		s.end(r.key)
	}
	s.running.Wait()
}

// watch ends the receives of senders that have left the group.
func (s *Service) watch(ctx context.Context) {
	defer close(s.ended)
	for v := range s.group.Views(ctx) {
		s.mu.Lock()
		var gone []key
		for k, r := range s.receives {
			if !r.sentIn(v) {
				gone = append(gone, k)
			}
		}
		s.mu.Unlock()
		for _, k := range gone {
			s.end(k)
		}
	}
}

// sentIn reports whether the sender is in a view.
func (r *receive) sentIn(v pleach.View) bool {
	m, ok := v.Member(r.key.from)
	return ok && (r.manifest.sender == 0 || m.Incarnation == r.manifest.sender)
}

// Receive takes what a member has broadcast for a copy. A chunk is released when it is
// written. Receive blocks for a second at most, if the disk is slow.
func (s *Service) Receive(broadcast pleach.Message) {
	m, err := parseMessage(broadcast.Data)
	if err != nil {
		s.config.Logger.Warn("message refused", "from", broadcast.From, "error", err)
		return
	}
	m.broadcast = broadcast
	k := key{broadcast.From, m.copy}
	switch m.kind {
	case offer:
		s.begin(k, &m)
	case chunk, endRun:
		if r := s.find(k); r != nil {
			r.push(m)
		}
	case over:
		s.end(k)
	}
}

// handle serves the requests of senders.
func (s *Service) handle(ctx context.Context, q pleach.Request) ([]byte, error) {
	m, err := parseMessage(q.Data)
	if err != nil {
		return nil, err
	}
	k := key{q.From, m.copy}
	switch m.kind {
	case offer:
		return s.begin(k, &m).await(ctx, int(m.number)), nil
	case chunk:
		if r := s.find(k); r != nil {
			r.take(int(m.number), m.data)
		}
		return nil, nil
	case query:
		if len(m.data) != 8 {
			return nil, errMessage
		}
		if binary.BigEndian.Uint64(m.data) != s.group.Self().Incarnation {
			break // the manifest was for the process that had this rank before
		}
		if r := s.await(ctx, k); r != nil {
			return r.await(ctx, int(m.number)), nil
		}
	default:
		return nil, errMessage
	}
	return (&answer{state: unknown}).append(nil), nil
}

func (s *Service) find(k key) *receive {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receives[k]
}

// await waits for a copy whose manifest is on its way, and not for long.
func (s *Service) await(ctx context.Context, k key) *receive {
	timer := time.NewTimer(stalled)
	defer timer.Stop()
	for {
		begun := s.begun.Wait()
		if r := s.find(k); r != nil {
			return r
		}
		select {
		case <-begun:
		case <-ctx.Done():
			return nil
		case <-timer.C:
			return nil
		}
	}
}

// begin begins to receive a file, unless that has begun.
func (s *Service) begin(k key, m *message) *receive {
	s.mu.Lock()
	r := s.receives[k]
	if r == nil {
		r = s.accept(k, m)
		if len(s.receives) < maxKnown {
			s.receives[k] = r
		}
		s.mu.Unlock()
		s.begun.Notify()
		if v := s.group.View(); !r.sentIn(v) {
			s.end(k) // a later view would not tell
		}
		return r
	}
	s.mu.Unlock()
	r.push(message{kind: endRun, number: m.number})
	return r
}

// accept starts to receive a file, or refuses it. It is called with the lock held.
func (s *Service) accept(k key, m *message) *receive {
	round := int(m.number)
	about, err := parseManifest(m.data)
	if err != nil {
		return refused(k, round, err)
	}
	base, elements, err := locate(s.config.Dirs, about.dir)
	if err != nil {
		return refused(k, round, err)
	}
	path := filepath.Join(append(append([]string{base}, elements...), about.name)...)
	before := s.targets[path]
	switch {
	case s.closed:
		return refused(k, round, fmt.Errorf("this member takes no more files"))
	case len(s.targets) >= s.config.MaxReceives || len(s.receives) >= maxKnown:
		return refused(k, round, fmt.Errorf("this member receives %d files already", len(s.targets)))
	case before != nil && !before.isOver():
		return refused(k, round, fmt.Errorf("%s is received from rank %d already", path, before.key.from))
	}
	r := newReceive(k, about)
	r.base, r.elements, r.giveBack = base, elements, s.group.Release
	s.targets[path] = r
	s.running.Go(func() {
		r.run(before, round)
		s.forget(path, r)
	})
	return r
}

// forget forgets the last receive of a file, and the manifests of copies that no sender says
// are over.
func (s *Service) forget(path string, r *receive) {
	r.mu.Lock()
	s.config.Logger.Info("file", "path", path, "from", r.key.from, "outcome", r.answer.state, "why", r.answer.why)
	r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.targets[path] == r {
		delete(s.targets, path)
	}
	if s.receives[r.key] == r {
		s.receives[r.key] = r.remains()
	}
}

// end ends the receive of a copy that is over.
func (s *Service) end(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.receives[k]; r != nil {
		close(r.over)
		delete(s.receives, k)
	}
}
