package fleet

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/header"
)

// A request to another zone goes to a delegate of this one, from there over the backbone to a
// delegate of the other one, and the reply the same way back. A delegate that cannot pass it
// on is passed over for the next.

// requestName is the name of requests to another zone, in the zone and in the backbone.
const requestName = topicName + ".request"

// requestPatience is how long a request waits for a delegate, or half of its time if that is
// less: one may be about to enter the backbone.
const requestPatience = 5 * time.Second

// routeDelay is the time between two attempts.
const routeDelay = 100 * time.Millisecond

func patienceOf(ctx context.Context) time.Time {
	now := time.Now()
	if end, ok := ctx.Deadline(); ok {
		return now.Add(min(requestPatience, end.Sub(now)/2))
	}
	return now.Add(requestPatience)
}

// Request is a request of a process of any zone.
type Request struct {
	// Zone and ID name the process that asks.
	Zone, ID string
	// Name is the handler's.
	Name string
	Data []byte
}

// ZoneError is returned by [Fleet.Request] when a zone gives no reply.
type ZoneError struct {
	Zone string
	// Err is why: the handler's text, [pleach.ErrNoHandler], or [ErrUnreachable].
	Err error
}

func (e *ZoneError) Error() string { return fmt.Sprintf("fleet: zone %q: %v", e.Zone, e.Err) }

// Unwrap returns the cause.
func (e *ZoneError) Unwrap() error { return e.Err }

// ErrUnreachable means that no delegate of a zone can be reached.
var ErrUnreachable = errors.New("no delegate of it is reachable")

// asking is what answers the requests of others.
type asking struct {
	mu       sync.Mutex
	handlers map[string]func(context.Context, Request) ([]byte, error)
}

// Handle serves the requests of a name that processes of other zones make to this one. One of
// its delegates gets them, so all members handle the same names. The rules are those of
// [pleach.Group.Handle].
func (f *Fleet) Handle(name string, h func(ctx context.Context, r Request) ([]byte, error)) {
	f.asking.mu.Lock()
	defer f.asking.mu.Unlock()
	if f.asking.handlers == nil {
		f.asking.handlers = make(map[string]func(context.Context, Request) ([]byte, error))
	}
	f.asking.handlers[name] = h
	if h == nil {
		delete(f.asking.handlers, name)
	}
}

// Request asks a zone: the handler of the name ([Fleet.Handle]) of one of its delegates gives
// the reply; of this process's own zone, this process's. An error is a [*ZoneError], or that
// of ctx. If a delegate dies meanwhile, the next one is asked, so the request may be served
// twice. A header of ctx ([pleach.WithHeader]) does not go with it.
func (f *Fleet) Request(ctx context.Context, zone, name string, data []byte) ([]byte, error) {
	ctx = header.Without(ctx)
	r := Request{Zone: f.origin.Zone, ID: f.origin.ID, Name: name, Data: data}
	reply, err := f.route(ctx, zone, &r)
	for end := patienceOf(ctx); errors.Is(err, ErrUnreachable) && time.Now().Before(end) && ctx.Err() == nil; {
		sleep(ctx, routeDelay)
		reply, err = f.route(ctx, zone, &r)
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("fleet: request %q to zone %q: %w", name, zone, ctx.Err())
	case err != nil:
		return nil, &ZoneError{zone, err}
	}
	return reply, nil
}

// route finds a delegate that can reply. Of this zone, it asks in the order of their ages.
func (f *Fleet) route(ctx context.Context, zone string, r *Request) ([]byte, error) {
	if zone == f.config.Zone {
		return f.call(ctx, *r)
	}
	frame := r.encode(zone)
	if reply, err := f.cross(ctx, zone, frame); err == nil {
		return opened(reply)
	}
	for _, m := range f.Delegates() {
		if m.Rank == f.zone.Rank() {
			continue
		}
		if reply, err := f.zone.Request(ctx, m, requestName, frame); err == nil {
			return opened(reply)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, ErrUnreachable
}

// passOn passes a request of a member of this zone on to another one.
func (f *Fleet) passOn(ctx context.Context, r pleach.Request) ([]byte, error) {
	_, zone, err := decodeRequest(r.Data)
	if err != nil {
		return nil, err
	}
	return f.cross(ctx, zone, r.Data)
}

// cross asks the delegates of a zone in the backbone, one after the other, if this process is
// in it.
func (f *Fleet) cross(ctx context.Context, zone string, frame []byte) ([]byte, error) {
	f.mu.Lock()
	s := f.backbone
	f.mu.Unlock()
	if s == nil {
		return nil, ErrUnreachable
	}
	var of []pleach.Member
	for _, m := range s.group.View().Members() {
		if m.FailureDomain == zone {
			of = append(of, m)
		}
	}
	slices.SortFunc(of, func(a, b pleach.Member) int { return cmp.Compare(peerOf(a).Age, peerOf(b).Age) })
	for _, m := range of {
		if reply, err := s.group.Request(ctx, m, requestName, frame); err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, ErrUnreachable
}

// answer replies to a request of another zone.
func (f *Fleet) answer(ctx context.Context, r pleach.Request) ([]byte, error) {
	request, _, err := decodeRequest(r.Data)
	if err != nil {
		return nil, err
	}
	reply, err := f.call(ctx, request)
	switch {
	case errors.Is(err, pleach.ErrNoHandler):
		return []byte{replyNoHandler}, nil
	case err != nil:
		return append([]byte{replyError}, err.Error()...), nil
	}
	return append([]byte{replyData}, reply...), nil
}

// call calls the handler of a request.
func (f *Fleet) call(ctx context.Context, r Request) ([]byte, error) {
	f.asking.mu.Lock()
	h := f.asking.handlers[r.Name]
	f.asking.mu.Unlock()
	if h == nil {
		return nil, pleach.ErrNoHandler
	}
	return h(ctx, r)
}

// The kinds of replies, their first byte. An error of the handler is a reply: another
// delegate would say the same.
const (
	replyData = iota
	replyError
	replyNoHandler
)

// opened returns what a reply says.
func opened(reply []byte) ([]byte, error) {
	switch {
	case len(reply) > 0 && reply[0] == replyData:
		return reply[1:], nil
	case len(reply) > 0 && reply[0] == replyNoHandler:
		return nil, pleach.ErrNoHandler
	case len(reply) > 0 && reply[0] == replyError:
		return nil, errors.New(string(reply[1:]))
	}
	return nil, errFrame
}

var errFrame = errors.New("the frame is damaged")

// encode writes a request to a zone: four names, each with its length, and the data.
func (r *Request) encode(zone string) (b []byte) {
	for _, text := range []string{zone, r.Zone, r.ID, r.Name} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return append(b, r.Data...)
}

// decodeRequest reads a request.
func decodeRequest(b []byte) (r Request, zone string, err error) {
	for _, text := range []*string{&zone, &r.Zone, &r.ID, &r.Name} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return r, zone, errFrame
		}
		*text, b = string(b[size:size+int(n)]), b[size+int(n):]
	}
	r.Data = b
	return r, zone, nil
}
