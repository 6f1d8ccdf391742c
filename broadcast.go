package pleach

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/pleach-go/pleach/internal/base/notify"
	"github.com/pleach-go/pleach/internal/machine/stream"
	"github.com/pleach-go/pleach/protocol"
)

// Broadcast sends data to all other members; the sender itself does not receive it, unless
// Config has Echo or a State.
// When it returns nil, the message is
// handed to the operating system, and every live member receives it even if others
// die. The caller may reuse data.
//
// Small messages of a burst may wait a fraction of a millisecond to be sent
// together. Close, Leave and WaitStable send what is waiting.
//
// Broadcast blocks while Config.Limits.OutboxBytes are waiting to be sent, and once,
// briefly, for a member that has become slow. If ctx ends or the quorum is lost meanwhile,
// a message that was accepted in part reaches no member, and one that was accepted whole
// is still sent.
func (g *Group) Broadcast(ctx context.Context, data []byte) error {
	return g.session().sender.broadcast(ctx, "", data, nil)
}

// sender writes this process's broadcasts.
type sender struct {
	*core
	agreed      *agreed
	dispatchOwn func()        // calls the program's handler for messages of this process
	sendLock    chan struct{} // held by the one broadcast that is writing
	written     chan struct{} // what was written is on its way, or some of it
	unwritten   atomic.Int64  // segments that were not, after the previous step
	restarts    atomic.Uint64 // messages cut in two by a new view, after the previous step
	sentIn      uint64        // the view in which the last broadcast was written; used within node.Do
}

// broadcast broadcasts to a topic, unless that is empty. If mark is not nil, it is called
// before the message is written, within node.Do.
func (s *sender) broadcast(ctx context.Context, topic string, data []byte, mark func()) error {
	h, err := headerOf(ctx, s.view.Load())
	if err != nil {
		return s.wrap("broadcast", err)
	}
	defer s.dispatchOwn()
	if err := s.lockSend(ctx); err != nil {
		return s.wrap("broadcast", err)
	}
	defer s.unlockSend()
	label := stream.Label{Topic: topic, Header: h}
	if err := s.agreed.tooLong(len(data) + label.Size()); err != nil {
		return s.wrap("broadcast", err)
	}
	for {
		if mark != nil {
			_ = s.node.Do(func(protocol.Time) { mark() })
		}
		again, err := s.send(ctx, label, data)
		if !again || err != nil {
			return s.wrap("broadcast", err)
		}
	}
}

// send sends a message. It has to be sent again if a new view has cut it in two.
func (s *sender) send(ctx context.Context, label stream.Label, data []byte) (again bool, err error) {
	if err := s.sendErr(); err != nil {
		return false, err
	}
	var restarts uint64
	cut := s.restarts.Load()
	size := s.stream.SegmentSize()
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), size)]
		data = data[len(piece):]
		restarts, err = s.write(ctx, label, piece, len(data), cut)
		if err != nil || restarts != cut {
			return err == nil, err
		}
		label = stream.Label{} // the first piece has it
	}
	if s.unwritten.Load() == 0 && s.restarts.Load() == cut {
		return false, nil // as usual: what was written last went out at once
	}
	err = s.waitToSend(ctx, func(protocol.Time) bool {
		restarts = s.stream.Restarts()
		return s.stream.Unwritten() == 0 || restarts != cut
	})
	return restarts != cut, err
}

// lockSend waits until nobody else is broadcasting.
func (s *sender) lockSend(ctx context.Context) error {
	select {
	case s.sendLock <- struct{}{}:
		return nil
	default:
	}
	for {
		changed := s.changed.Wait()
		if lost := quorumLost(s.core); lost != nil {
			return lost
		}
		select {
		case s.sendLock <- struct{}{}:
			return nil
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return s.Err()
		}
	}
}

func (s *sender) unlockSend() { <-s.sendLock }

// flush waits until all that was broadcast before has been sent.
func (s *sender) flush(ctx context.Context) error {
	if err := s.lockSend(ctx); err != nil {
		return err
	}
	defer s.unlockSend()
	if err := s.node.Do(func(protocol.Time) { s.machine.FlushBatch() }); err != nil {
		return ErrClosed
	}
	return s.wait(ctx, s.written, func(protocol.Time) bool { return s.stream.Unwritten() == 0 })
}

// write hands a piece of a message to the member, as soon as it has room, unless
// the message has been cut meanwhile. The first piece may have a label.
func (s *sender) write(ctx context.Context, label stream.Label, piece []byte, left int,
	cut uint64,
) (restarts uint64, err error) {
	var written error
	err = s.waitToSend(ctx, func(protocol.Time) bool {
		restarts = s.stream.Restarts()
		if restarts != cut {
			return true
		}
		if label == (stream.Label{}) {
			written = s.machine.Write(piece, left)
		} else {
			written = s.machine.WriteLabeled(label, piece, left)
		}
		if written == nil {
			s.sentIn = s.view.Load().Number
		}
		return !errors.Is(written, stream.ErrBusy)
	})
	if err = errors.Join(err, written); err != nil {
		_ = s.node.Do(func(protocol.Time) { s.machine.Abandon() })
	}
	return restarts, err
}

// wait tries until it works: at once, and each time there is a sign that it may.
func (s *sender) wait(ctx context.Context, sign <-chan struct{}, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := s.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		s.dispatchOwn() // they may fill the inbox
		if err := s.await(ctx, sign); err != nil {
			return err
		}
	}
}

// waitToSend tries until it works, or the quorum is lost: without one, members that hold
// this one up are not removed.
func (s *sender) waitToSend(ctx context.Context, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := s.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		changed := s.changed.Wait()
		if lost := quorumLost(s.core); lost != nil {
			return lost
		}
		select {
		case <-s.written:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return s.Err()
		}
	}
}

// noteWritten wakes those who wait for what was written to be sent, if a step has sent some of it.
// It is called within node.Do.
func (s *sender) noteWritten() {
	unwritten, restarts := int64(s.stream.Unwritten()), s.stream.Restarts()
	if unwritten != s.unwritten.Load() || restarts != s.restarts.Load() {
		s.restarts.Store(restarts) // first: nothing unwritten must not look like all sent
		s.unwritten.Store(unwritten)
		notify.Signal(s.written)
	}
}

// await waits for a sign.
func (c *core) await(ctx context.Context, sign <-chan struct{}) error {
	select {
	case <-sign:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return c.Err()
	}
}
