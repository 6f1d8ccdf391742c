package ordered

// How a member of a shared order learns the order: what the machine decides is carried out.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/services/sequencer"
	"github.com/pleach-go/pleach/protocol"
)

// step has the machine do something, and carries out what follows.
func (s *Shared) step(f func(now protocol.Time)) {
	s.feed.Lock()
	defer s.feed.Unlock()
	o := s.order
	o.mu.Lock()
	f(s.now())
	for actions := s.joining.Take(); len(actions) > 0; actions = s.joining.Take() {
		o.count(actions)
		o.mu.Unlock()
		for _, a := range actions {
			s.carryOut(a)
		}
		o.mu.Lock()
	}
	o.mu.Unlock()
	s.current.Store(s.joining.Knows())
	o.stepped()
	if len(s.asks) > 0 || s.joining.Deadline() < s.armed {
		notify.Signal(s.wake)
	}
}

// now is the time of the machine.
func (s *Shared) now() protocol.Time { return protocol.Time(time.Since(s.began)) }

// count counts what the machine does.
func (o *Order) count(actions []sequencer.Action) {
	for _, action := range actions {
		switch a := action.(type) {
		case sequencer.Deliver:
			o.stats.Delivered += uint64(len(a.Messages))
		case sequencer.Reset:
			o.stats.Begun++
		}
	}
}

func (s *Shared) carryOut(action sequencer.Action) {
	switch a := action.(type) {
	case sequencer.Ask:
		s.asks = append(s.asks, a)
	case sequencer.Answer:
		s.reply(a)
	case sequencer.Capture:
		var b bytes.Buffer
		err := s.config.State.Snapshot(&b)
		if err != nil {
			err = fmt.Errorf("ordered: no snapshot: %w", err)
		}
		s.joining.Captured(s.now(), a.ID, b.Bytes(), err)
	case sequencer.Restore:
		if a.Err == nil {
			a.Err = s.config.State.Restore(bytes.NewReader(a.State))
		}
		if a.Err != nil {
			s.order.end(a.Err)
		}
	case sequencer.Reset:
		s.config.Begin(a.View)
	case sequencer.HandedOver:
		close(s.handedOver)
	case sequencer.Deliver:
		for i := range a.Messages {
			s.config.Deliver(messageOf(&a.Messages[i]))
		}
	}
}

// reply answers a request that waits.
func (s *Shared) reply(a sequencer.Answer) {
	if reply := s.replies[a.ID]; reply != nil {
		delete(s.replies, a.ID)
		reply <- a
	}
}

// join has time pass in the machine, and sends what it asks.
func (s *Shared) join() {
	o := s.order
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.step(s.tick)
		case <-s.wake:
		case <-o.life.Done():
			return
		}
		s.feed.Lock()
		asks, due := s.asks, s.joining.Deadline()
		s.asks, s.armed = nil, due
		s.feed.Unlock()
		for _, a := range asks {
			o.running.Go(func() { s.ask(&a) })
		}
		if due != protocol.Never {
			timer.Reset(time.Until(s.began.Add(time.Duration(due))))
		}
	}
}

// tick tells the machine the time, and the view of the group.
func (s *Shared) tick(now protocol.Time) {
	s.viewed()
	s.joining.Tick(now)
}

// viewed tells the machine the view of the group.
func (s *Shared) viewed() {
	v := s.order.group.View()
	var members []sequencer.Member
	if v.Err == nil {
		members, _ = membersOf(v)
	}
	s.joining.View(v.Number, members)
}

// ask sends a request to a member.
func (s *Shared) ask(a *sequencer.Ask) {
	ctx, cancel := context.WithTimeout(s.order.life, time.Duration(a.Timeout))
	defer cancel()
	name := map[sequencer.Request]string{
		sequencer.StateRequest: stateName, sequencer.MarkRequest: markName, sequencer.TransferRequest: transferName,
	}[a.Request]
	b, err := s.order.group.Request(ctx, pleach.Member{Rank: a.To}, s.config.Topic+name, a.Body)
	s.step(func(now protocol.Time) {
		s.joining.Replied(now, a.Token, sequencer.Reply{Body: b, Err: err, NoPart: errors.Is(err, pleach.ErrNoHandler)})
	})
}

// serveState gives another member the order, or tells whether this member knows it.
func (s *Shared) serveState(ctx context.Context, r pleach.Request) ([]byte, error) {
	return s.answer(ctx, func(now protocol.Time, id uint64) { s.joining.StateAsked(now, id, r.Data) })
}

// serveTransfer gives another member the order, block by block.
func (s *Shared) serveTransfer(ctx context.Context, r pleach.Request) ([]byte, error) {
	return s.answer(ctx, func(now protocol.Time, id uint64) { s.joining.TransferAsked(now, id, r.From, r.Data) })
}

// answer gives a request to the machine, and waits for its answer.
func (s *Shared) answer(ctx context.Context, ask func(now protocol.Time, id uint64)) ([]byte, error) {
	if err := s.order.awaitStart(ctx); err != nil {
		return nil, err
	}
	id, reply := uint64(0), make(chan sequencer.Answer, 1)
	s.step(func(now protocol.Time) {
		s.served++
		id, s.replies[s.served] = s.served, reply
		ask(now, id)
	})
	select {
	case a := <-reply:
		return a.Body, a.Err
	case <-ctx.Done():
		s.step(func(protocol.Time) {
			delete(s.replies, id)
			s.joining.Canceled(id)
		})
		return nil, ctx.Err()
	}
}

// serveMark broadcasts a mark that another member asks for.
func (s *Shared) serveMark(ctx context.Context, r pleach.Request) ([]byte, error) {
	o := s.order
	if err := o.awaitStart(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	err := s.joining.MarkAsked(r.Data)
	o.mu.Unlock()
	notify.Signal(o.casts)
	return nil, err
}
