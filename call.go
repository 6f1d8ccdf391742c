package pleach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/driver/rounds"
	"github.com/pleach-go/pleach/internal/machine/unicast"
	"github.com/pleach-go/pleach/protocol"
)

// Request is a request of a member.
type Request struct {
	// From is the rank of the member that asks, and Name is the handler's.
	From int
	Name string
	Data []byte
	// Header is what the context of the member that asks has ([WithHeader]). It is nil if there is
	// none.
	Header Header
}

// RequestError is returned by [Group.Request] when the receiver has no reply.
type RequestError struct {
	// Rank is the receiver's, and Name the handler's.
	Rank int
	Name string
	// Err is [ErrNoHandler], [ErrOverloaded], or the text of the handler's error.
	Err error
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("request %q to rank %d: %v", e.Name, e.Rank, e.Err)
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// GoneError is an [ErrGone] that names the member and the view.
type GoneError struct {
	// Rank was the receiver's. View is the first one known without it.
	Rank int
	View uint64
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: rank %d in view %d", ErrGone, e.Rank, e.View)
}

// Unwrap returns [ErrGone].
func (e *GoneError) Unwrap() error { return ErrGone }

// handlers are the functions that serve the requests of other members, by name.
type handlers struct {
	mu sync.Mutex
	by map[string]func(context.Context, Request) ([]byte, error)
}

// find returns the function of a name, or nil.
func (h *handlers) find(name string) func(context.Context, Request) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[name]
}

// calls are the requests of this member to others, and those of others that it serves.
type calls struct {
	*core
	direct   *directs
	handlers *handlers
	current  *rounds.Rounds // serves the requests by which members find out whether they are current
	mu       sync.Mutex
	cancels  map[unicast.Caller]context.CancelFunc // end the contexts of the requests that are being served
}

// Handle serves the requests of a name with a function, which several goroutines call at
// the same time. Its context ends when the member that asks gives up or is no longer in
// the view, and when this process is no longer a member. If it returns an error, the other
// member gets its text, in a [*RequestError]. A later Handle of the same name replaces the
// function, and nil removes it.
//
// A process can be asked as soon as it is a member. Until it has called Handle, the others
// get [ErrNoHandler].
func (g *Group) Handle(name string, f func(ctx context.Context, r Request) ([]byte, error)) {
	g.handlers.mu.Lock()
	defer g.handlers.mu.Unlock()
	if g.handlers.by == nil {
		g.handlers.by = make(map[string]func(context.Context, Request) ([]byte, error))
	}
	g.handlers.by[name] = f
	if f == nil {
		delete(g.handlers.by, name)
	}
}

// Request asks a member, as [Group.Send] finds it, whose handler of the name (see
// [Group.Handle]) gives the reply. It needs no timeout: if the receiver dies or leaves, Request returns a
// [*GoneError] as soon as there is a view without it, and a [*QuorumError] if there cannot
// be one because too few members are reachable. The request may have been served then, or
// not. If the receiver has no reply, the error is a [*RequestError].
//
// Request blocks while Config.Limits.Requests requests of this process wait for replies.
// If ctx ends first, the context of the handler is canceled. The caller may reuse data, and
// owns the reply. Requests and replies may overtake each other and what Send sends. As
// Send does, Request needs views.
func (g *Group) Request(ctx context.Context, to Member, name string, data []byte) ([]byte, error) {
	s := g.session()
	reply, err := s.calls.request(ctx, to, name, slices.Clone(data))
	return reply, s.wrap("request", err)
}

func (c *calls) request(ctx context.Context, to Member, name string, data []byte) ([]byte, error) {
	if len(name) > unicast.MaxName {
		return nil, fmt.Errorf("a name of %d bytes is too long: %d at most", len(name), unicast.MaxName)
	}
	replies := make(chan unicast.Reply, 1)
	var number uint64
	err := c.direct.tryDirect(ctx, to, data, func(h header.Encoded) (err error) {
		number, err = c.direct.channel.Request(protocol.Rank(to.Rank), name, h, data, func(r unicast.Reply) { replies <- r })
		return err
	})
	if err != nil {
		return nil, err
	}
	select {
	case r := <-replies:
		return resultOf(to.Rank, name, &r)
	case <-ctx.Done():
		_ = c.node.Do(func(protocol.Time) { c.direct.channel.Cancel(number) })
		return nil, ctx.Err()
	case <-c.life.Done():
		return nil, c.Err()
	}
}

// resultOf is what Request returns for the end of a request.
func resultOf(to int, name string, r *unicast.Reply) ([]byte, error) {
	gone := new(unicast.GoneError)
	switch {
	case errors.As(r.Err, &gone):
		return nil, &GoneError{Rank: to, View: gone.View}
	case r.Err != nil:
		return nil, r.Err
	}
	switch r.Status {
	case unicast.NoHandler:
		return nil, &RequestError{to, name, ErrNoHandler}
	case unicast.Overloaded:
		return nil, &RequestError{to, name, ErrOverloaded}
	case unicast.Failed:
		return nil, &RequestError{to, name, errors.New(string(r.Data))}
	}
	return r.Data, nil
}

// serve serves a request on a goroutine of its own. It is called within node.Do.
func (c *calls) serve(r unicast.Request) {
	if r.Name == rounds.Name {
		c.current.Serve(r.Caller)
		return
	}
	ctx, cancel := context.WithCancel(c.life)
	f := c.handlers.find(r.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancels == nil {
		c.cancels = make(map[unicast.Caller]context.CancelFunc)
	}
	c.cancels[r.Caller] = cancel
	go func() {
		status, reply := c.callHandler(ctx, f, &r)
		c.cancelServing(r.Caller)
		_ = c.node.Do(func(protocol.Time) { c.direct.channel.Reply(r.Caller, status, reply) })
	}()
}

// callHandler calls a handler, if there is one.
func (c *calls) callHandler(ctx context.Context, f func(context.Context, Request) ([]byte, error),
	r *unicast.Request,
) (unicast.Status, []byte) {
	if f == nil {
		return unicast.NoHandler, nil
	}
	reply, err := f(ctx, Request{From: int(r.Rank), Name: r.Name, Data: r.Data, Header: r.Header.Map()})
	if err == nil {
		err = c.direct.tooLongDirect(len(reply))
	}
	if err != nil {
		text := err.Error()
		return unicast.Failed, []byte(text[:min(len(text), maxErrorText)])
	}
	return unicast.OK, reply
}

// maxErrorText bounds the text of a handler's error.
const maxErrorText = 4096

// cancelServing ends the context of a handler.
func (c *calls) cancelServing(from unicast.Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.cancels[from]; cancel != nil {
		cancel()
		delete(c.cancels, from)
	}
}
