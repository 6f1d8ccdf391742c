package calibrate

import (
	"context"
	"net"

	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Ranks in the group of two.
const (
	group             = "pleach calibration"
	asks, answers     = protocol.Rank(0), protocol.Rank(1)
	silent, wantsEcho = byte(0), byte(1) // the first byte of a frame
)

// Echo answers a process that measures, until the context ends. The listener is closed
// then.
func Echo(ctx context.Context, l net.Listener) error {
	t, err := tcp.New(tcp.Config{Group: group, Rank: answers, Open: true, Listener: l})
	if err != nil {
		return err
	}
	if err := t.Start(&echo{transport: t}); err != nil {
		return err
	}
	<-ctx.Done()
	return t.Close()
}

// echo sends back what asks for it.
type echo struct{ transport *tcp.Transport }

// Receive implements [transport.Handler].
func (e *echo) Receive(from protocol.Rank, frame []byte) {
	if len(frame) > 0 && frame[0] == wantsEcho {
		_ = e.transport.Send(from, frame) // a process that has gone does not wait
	}
}

// Up implements [transport.Handler].
func (*echo) Up(protocol.Rank, uint64) {}

// Down implements [transport.Handler].
func (*echo) Down(protocol.Rank, error) {}

// Writable implements [transport.Handler].
func (*echo) Writable(protocol.Rank) {}

var _ transport.Handler = (*echo)(nil)
