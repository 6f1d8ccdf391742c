package fault

import (
	"context"

	"github.com/pleach-go/pleach/transport"
)

// requestFilter is the filter of a member that answers clients. A client has no rank,
// so only the faults of the member apply to it: requests and replies wait while the
// member is frozen, and are dropped once it has ended.
type requestFilter struct {
	*filter
	handler transport.RequestHandler
}

var _ transport.RequestHandler = requestFilter{}

// HandleRequest implements [transport.RequestHandler].
func (d requestFilter) HandleRequest(ctx context.Context, from transport.Client, request []byte, answer func([]byte)) {
	m := (*member)(d.filter)
	m.net.mu.Lock()
	opens := m.awake()
	m.net.mu.Unlock()
	if opens {
		d.handler.HandleRequest(ctx, from, request, func(b []byte) { m.answer(b, answer) })
	}
}

// answer passes a reply on once the member is not frozen. Its caller does not wait
// for that.
func (m *member) answer(b []byte, pass func([]byte)) {
	m.net.mu.Lock()
	defer m.net.mu.Unlock()
	switch {
	case m.ended:
		return
	case !m.net.frozen[m.rank]:
		pass(b)
		return
	}
	m.running.Go(func() {
		m.net.mu.Lock()
		awake := m.awake()
		m.net.mu.Unlock()
		if awake {
			pass(b)
		}
	})
}

// awake waits while the member is frozen, and reports whether it still runs.
func (m *member) awake() bool {
	for !m.ended && m.net.frozen[m.rank] {
		m.changed.Wait()
	}
	return !m.ended
}
