package pleach

import (
	"context"
	"errors"

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
	return g.session().broadcast(ctx, "", data, nil)
}

// broadcast broadcasts to a topic, unless that is empty. If mark is not nil, it is called
// before the message is written, within node.Do.
func (g *session) broadcast(ctx context.Context, topic string, data []byte, mark func()) error {
	defer g.dispatchOwn()
	if err := g.lockSend(ctx); err != nil {
		return g.wrap("broadcast", err)
	}
	defer g.unlockSend()
	if err := g.tooLong(len(data) + stream.TopicSize(topic)); err != nil {
		return g.wrap("broadcast", err)
	}
	for {
		if mark != nil {
			_ = g.node.Do(func(protocol.Time) { mark() })
		}
		again, err := g.send(ctx, topic, data)
		if !again || err != nil {
			return g.wrap("broadcast", err)
		}
	}
}

// send sends a message. It has to be sent again if a new view has cut it in two.
func (g *session) send(ctx context.Context, topic string, data []byte) (again bool, err error) {
	if err := g.sendErr(); err != nil {
		return false, err
	}
	var restarts uint64
	cut := g.restarts.Load()
	size := g.stream.SegmentSize()
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), size)]
		data = data[len(piece):]
		if restarts, err = g.write(ctx, topic, piece, len(data), cut); err != nil || restarts != cut {
			return err == nil, err
		}
		topic = "" // the first piece has it
	}
	if g.unwritten.Load() == 0 && g.restarts.Load() == cut {
		return false, nil // as usual: what was written last went out at once
	}
	err = g.waitToSend(ctx, func(protocol.Time) bool {
		restarts = g.stream.Restarts()
		return g.stream.Unwritten() == 0 || restarts != cut
	})
	return restarts != cut, err
}

// lockSend waits until nobody else is broadcasting.
func (g *session) lockSend(ctx context.Context) error {
	select {
	case g.sendLock <- struct{}{}:
		return nil
	default:
	}
	for {
		changed := g.changed.Wait()
		if lost := g.quorumErr.Load(); lost != nil {
			return lost
		}
		select {
		case g.sendLock <- struct{}{}:
			return nil
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.life.Done():
			return g.Err()
		}
	}
}

func (g *session) unlockSend() { <-g.sendLock }

// flush waits until all that was broadcast before has been sent.
func (g *session) flush(ctx context.Context) error {
	if err := g.lockSend(ctx); err != nil {
		return err
	}
	defer g.unlockSend()
	if err := g.node.Do(func(protocol.Time) { g.machine.FlushBatch() }); err != nil {
		return ErrClosed
	}
	return g.wait(ctx, g.written, func(protocol.Time) bool { return g.stream.Unwritten() == 0 })
}

// write hands a piece of a message to the member, as soon as it has room, unless
// the message has been cut meanwhile. The first piece may have a topic.
func (g *session) write(ctx context.Context, topic string, piece []byte, left int, cut uint64) (restarts uint64, err error) {
	var written error
	err = g.waitToSend(ctx, func(protocol.Time) bool {
		if restarts = g.stream.Restarts(); restarts != cut {
			return true
		}
		if topic == "" {
			written = g.machine.Write(piece, left)
		} else {
			written = g.machine.WriteTopic(topic, piece, left)
		}
		if written == nil {
			g.sentIn = g.view.Load().Number
		}
		return !errors.Is(written, stream.ErrBusy)
	})
	if err = errors.Join(err, written); err != nil {
		_ = g.node.Do(func(protocol.Time) { g.machine.Abandon() })
	}
	return restarts, err
}

// wait tries until it works: at once, and each time there is a sign that it may.
func (g *session) wait(ctx context.Context, sign <-chan struct{}, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := g.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		g.dispatchOwn() // they may fill the inbox
		if err := g.await(ctx, sign); err != nil {
			return err
		}
	}
}

// waitToSend tries until it works, or the quorum is lost: without one, members that hold
// this one up are not removed.
func (g *session) waitToSend(ctx context.Context, try func(now protocol.Time) bool) error {
	for {
		ok := false
		if err := g.node.Do(func(now protocol.Time) { ok = try(now) }); err != nil {
			return ErrClosed
		}
		if ok {
			return nil
		}
		changed := g.changed.Wait()
		if lost := g.quorumErr.Load(); lost != nil {
			return lost
		}
		select {
		case <-g.written:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.life.Done():
			return g.Err()
		}
	}
}

// await waits for a sign.
func (g *session) await(ctx context.Context, sign <-chan struct{}) error {
	select {
	case <-sign:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.life.Done():
		return g.Err()
	}
}
