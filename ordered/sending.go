package ordered

// What the machine sends, each kind by a goroutine of its own: a broadcast that is blocked by a
// slow member does not hold up what this process forwards.

import (
	"context"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/notify"
)

// watch tells the machine of views. It ends with the group.
func (o *Order) watch() {
	for v := range o.group.Views(o.life) {
		if v.Err != nil {
			continue
		}
		members, voters := membersOf(v)
		o.mu.Lock()
		o.machine.View(v.Number, members, voters)
		o.mu.Unlock()
		o.room.Notify() // handlers that wait lead another view, or none
		notify.Signal(o.casts)
	}
	if err := o.group.Err(); err != nil {
		o.end(err)
	}
}

// cast broadcasts what the leader of a view has to tell.
func (o *Order) cast() {
	for o.await(o.casts) {
		for o.castNext() {
		}
	}
}

func (o *Order) castNext() bool {
	o.mu.Lock()
	view, body, ok := o.machine.NextCast()
	o.mu.Unlock()
	if !ok {
		return false
	}
	err := o.broadcast(o.life, body)
	o.mu.Lock()
	o.machine.CastDone(view, err != nil)
	o.mu.Unlock()
	o.room.Notify()
	return err == nil || o.pause(o.casts)
}

// forward forwards the messages of this process to the leader, in one request at a time: what
// comes meanwhile goes together.
func (o *Order) forward() {
	for o.await(o.forwards) {
		for o.forwardNext() {
		}
	}
}

func (o *Order) forwardNext() bool {
	o.mu.Lock()
	f, ok := o.machine.NextForward()
	self := o.group.Rank()
	o.mu.Unlock()
	if !ok {
		return false
	}
	var err error
	if f.To == self {
		err = o.accept(o.life, self, f.Body)
	} else {
		_, err = o.group.Request(o.life, pleach.Member{Rank: f.To}, o.forwardName, f.Body)
	}
	if err == nil {
		return true
	}
	o.mu.Lock()
	o.machine.ForwardFailed(f.View)
	o.mu.Unlock()
	return o.pause(o.forwards)
}

// serve takes what another member forwards.
func (o *Order) serve(ctx context.Context, r pleach.Request) ([]byte, error) {
	if err := o.awaitStart(ctx); err != nil {
		return nil, err
	}
	return nil, o.accept(ctx, r.From, r.Data)
}

// awaitStart waits until this process takes part in the order of its group.
func (o *Order) awaitStart(ctx context.Context) error {
	select {
	case <-o.ready:
	case <-o.life.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return context.Cause(o.life)
}

// accept gives what a member forwards to the machine, as soon as there is room.
func (o *Order) accept(ctx context.Context, from int, body []byte) error {
	for {
		room := o.room.Wait()
		o.mu.Lock()
		full := o.machine.Queued() >= maxQueued
		var err error
		if !full {
			err = o.machine.Accept(from, body)
		}
		o.mu.Unlock()
		if !full {
			notify.Signal(o.casts)
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sendTo sends to the member of a rank. The order drops what members of earlier views send.
func (o *Order) sendTo(ctx context.Context, to int, body []byte) error {
	return o.group.Send(ctx, pleach.Member{Rank: to}, body)
}

// sendAcks tells the leader what this process has received.
func (o *Order) sendAcks() {
	for o.await(o.acks) {
		for o.acknowledgeNext() {
		}
	}
}

func (o *Order) acknowledgeNext() bool {
	o.mu.Lock()
	to, body, ok := o.machine.NextAck()
	o.mu.Unlock()
	if !ok {
		return false
	}
	if o.acknowledge(o.life, to, body) == nil {
		return true
	}
	o.mu.Lock()
	o.machine.AckFailed()
	o.mu.Unlock()
	return o.pause(o.acks)
}

// await waits for a sign. It reports false when this process is no longer a member.
func (o *Order) await(sign <-chan struct{}) bool {
	select {
	case <-sign:
		return true
	case <-o.life.Done():
		return false
	}
}

// pause waits before a send is repeated, until there is a sign at most.
func (o *Order) pause(sign <-chan struct{}) bool {
	select {
	case <-time.After(retryDelay):
	case <-sign:
	case <-o.life.Done():
		return false
	}
	return true
}
