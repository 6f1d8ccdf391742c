package ordered

// How a member of a shared order learns the order. It asks another member, which has the leader
// broadcast a mark. Where the mark comes in their messages, the one takes a snapshot and the other
// begins to keep what it receives: together they are the order.

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/notify"
	"github.com/pleach-go/pleach/internal/services/sequencer"
)

// Limits of joining.
const (
	maxHeld     = 64 << 20 // bytes that are kept while the snapshot is on its way; beyond it, all begins again
	maxAsked    = 64       // snapshots that are taken for others, and members that are asked, at a time
	stateWait   = 5 * time.Second
	minPause    = 20 * time.Millisecond // between two rounds, doubled after each up to maxPause
	maxPause    = time.Second
	membersEach = 3 // members that are asked in a round
)

var (
	errNoMark    = errors.New("ordered: the mark has not come: the view may have changed")
	errTooMany   = errors.New("ordered: too many members ask for the state")
	errNoState   = errors.New("ordered: no snapshot")
	errMalformed = errors.New("ordered: malformed request")
)

// joining is guarded by feed.
type joining struct {
	// Of a member that does not know the order:
	name     uint64 // of the mark that it waits for
	mark     sequencer.Mark
	leader   int // whose mark has come; -1: not yet
	held     []pleach.Message
	bytes    int    // of held
	snapshot []byte // nil: not yet

	// Of one that does: where snapshots at marks go.
	asked map[uint64]chan<- []byte
}

// expect waits for a mark.
func (j *joining) expect(name uint64) {
	j.name, j.leader, j.held, j.bytes, j.snapshot = name, -1, nil, 0, nil
}

// hold keeps a message behind the mark.
func (j *joining) hold(m pleach.Message) {
	j.held = append(j.held, m)
	if j.bytes += len(m.Data); j.bytes > maxHeld {
		j.expect(0)
	}
}

// reach handles a mark, where it comes in the messages.
func (s *Shared) reach(mark sequencer.Mark, leader int) {
	switch {
	case s.knows():
		if reply, ok := s.asked[mark.Name]; ok {
			delete(s.asked, mark.Name)
			reply <- s.write()
		}
	case mark.Name == sequencer.Fresh:
		s.begin(mark, leader)
	case mark.Name == s.name:
		s.mark, s.leader = mark, leader
		s.enter()
	}
}

// write returns a snapshot, or nil.
func (s *Shared) write() []byte {
	var b bytes.Buffer
	if (&state{s.order, s.config.State}).Snapshot(&b) != nil {
		return nil
	}
	return b.Bytes()
}

// begin begins an order without messages.
func (s *Shared) begin(mark sequencer.Mark, leader int) {
	o := s.order
	o.mu.Lock()
	o.machine.Begin(mark, leader)
	o.knows = true
	o.mu.Unlock()
	s.expect(0)
	s.config.Begin()
	s.entered()
}

// enter goes on with the order behind the mark, when both the mark and the snapshot are there.
func (s *Shared) enter() {
	if s.leader < 0 || s.snapshot == nil {
		return
	}
	o := s.order
	err := (&state{o, s.config.State}).Restore(bytes.NewReader(s.snapshot))
	if err != nil {
		o.end(err)
		return
	}
	o.mu.Lock()
	o.machine.Follow(s.leader)
	o.mu.Unlock()
	held := s.held
	s.expect(0)
	for i := range held {
		s.deliver(&held[i])
	}
	s.entered()
}

// entered wakes those that wait for the order.
func (s *Shared) entered() {
	s.order.room.Notify()
	notify.Signal(s.order.forwards)
	notify.Signal(s.order.acks)
}

// join asks other members until this one knows the order.
func (s *Shared) join() {
	self := s.order.group.Rank()
	for pause := minPause; !s.knows() && s.order.life.Err() == nil; pause = min(2*pause, maxPause) {
		switch v := s.order.group.View(); {
		case v.Err != nil:
		case v.Leader().Rank == self:
			s.lead(v)
		case !s.fetch(v.Leader().Rank):
			for _, i := range rand.Perm(v.Size())[:min(membersEach, v.Size())] {
				if m := v.Members()[i]; m.Rank != self && s.fetch(m.Rank) {
					break
				}
			}
		}
		s.await(pause)
	}
}

// await waits until this member knows the order, for a time at most.
func (s *Shared) await(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		changed := s.order.room.Wait()
		if s.knows() {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-s.order.life.Done():
			return false
		}
	}
}

// lead is how a leader joins that does not know the order: after a restart it has its old rank.
// If no member of its view knows the order, it begins anew. A member that takes no part has no
// handler.
func (s *Shared) lead(v pleach.View) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	knowing, silent := -1, 0
	slots := make(chan struct{}, maxAsked)
	for _, m := range v.Members() {
		if m.Rank == s.order.group.Rank() {
			continue
		}
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			b, err := s.request(m.Rank, 0)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && len(b) > 0:
				knowing = m.Rank
			case err != nil && !errors.Is(err, pleach.ErrNoHandler):
				silent++
			}
		})
	}
	asking.Wait()
	switch {
	case knowing >= 0:
		s.fetch(knowing)
	case silent == 0 && s.acceptMark(sequencer.Mark{View: v.Number, Name: sequencer.Fresh}) == nil:
		s.await(stateWait)
	}
}

// fetch gets the order from a member. It reports false if that does not know it.
func (s *Shared) fetch(rank int) bool {
	name := 1 + rand.Uint64N(1<<63)
	s.feed.Lock()
	if !s.knows() {
		s.expect(name)
	}
	s.feed.Unlock()
	b, err := s.request(rank, name)
	if err != nil || len(b) == 0 {
		return false
	}
	s.feed.Lock()
	if s.name == name {
		s.snapshot = b
		s.enter()
	}
	s.feed.Unlock()
	return s.await(stateWait)
}

// request asks a member whether it knows the order: the reply is empty if not. If a mark is named,
// the reply is a snapshot at that mark.
func (s *Shared) request(rank int, mark uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.order.life, stateWait)
	defer cancel()
	return s.order.group.Request(ctx, rank, s.config.Topic+stateName, binary.BigEndian.AppendUint64(nil, mark))
}

// serveState answers request.
func (s *Shared) serveState(ctx context.Context, r pleach.Request) ([]byte, error) {
	if len(r.Data) != 8 {
		return nil, errMalformed
	}
	if err := s.order.awaitStart(ctx); err != nil {
		return nil, err
	}
	name, reply := binary.BigEndian.Uint64(r.Data), make(chan []byte, 1)
	s.feed.Lock()
	knows, full := s.knows(), len(s.asked) >= maxAsked
	if knows && !full && name != 0 {
		s.asked[name] = reply
	}
	s.feed.Unlock()
	switch {
	case !knows:
		return nil, nil
	case name == 0:
		return []byte{1}, nil
	case full:
		return nil, errTooMany
	}
	defer func() {
		s.feed.Lock()
		defer s.feed.Unlock()
		delete(s.asked, name)
	}()
	return s.takeSnapshot(ctx, name, reply)
}

// takeSnapshot has the leader broadcast a mark, and waits for the snapshot there.
func (s *Shared) takeSnapshot(ctx context.Context, name uint64, reply <-chan []byte) ([]byte, error) {
	o := s.order
	o.mu.Lock()
	view, leader, _ := o.machine.Place()
	o.mu.Unlock()
	mark := sequencer.Mark{View: view, Name: name}
	var err error
	if leader == o.group.Rank() {
		err = s.acceptMark(mark)
	} else if leader >= 0 {
		b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, mark.View), mark.Name)
		_, err = o.group.Request(ctx, leader, s.config.Topic+markName, b)
	}
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(stateWait / 2)
	defer timer.Stop()
	select {
	case b := <-reply:
		if b == nil {
			return nil, errNoState
		}
		return b, nil
	case <-timer.C:
		return nil, errNoMark
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveMark broadcasts a mark that another member asks for.
func (s *Shared) serveMark(ctx context.Context, r pleach.Request) ([]byte, error) {
	if len(r.Data) != 16 {
		return nil, errMalformed
	}
	if err := s.order.awaitStart(ctx); err != nil {
		return nil, err
	}
	return nil, s.acceptMark(sequencer.Mark{View: binary.BigEndian.Uint64(r.Data), Name: binary.BigEndian.Uint64(r.Data[8:])})
}

func (s *Shared) acceptMark(mark sequencer.Mark) error {
	o := s.order
	o.mu.Lock()
	err := o.machine.AcceptMark(mark)
	o.mu.Unlock()
	notify.Signal(o.casts)
	return err
}
