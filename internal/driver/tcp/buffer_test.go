package tcp

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// bufferHandler is a recorder that has a place for long frames.
type bufferHandler struct {
	*recorder
	filled atomic.Int64
}

func (h *bufferHandler) ReceiveBuffer(from protocol.Rank, head []byte, size int) (body []byte) {
	h.call(from, func() { body = make([]byte, size-len(head)) })
	return body
}

func (h *bufferHandler) BufferFilled(from protocol.Rank, head, body []byte) {
	h.filled.Add(1)
	h.Receive(from, append(bytes.Clone(head), body...))
}

// Long frames, in two parts or in one, arrive where they belong, and in their turn
// among short ones; plain and under TLS.
func TestLongFramesFillTheirBuffers(t *testing.T) {
	ca := testutil.NewCA(t)
	for name, secure := range map[string]func(*Config){
		"plain": func(*Config) {},
		"TLS":   func(c *Config) { c.TLS = ca.Config(t, ca) },
	} {
		t.Run(name, func(t *testing.T) {
			listeners, addresses := listen(t, 2)
			at := new(bufferHandler)
			config := func(r protocol.Rank) Config {
				c := Config{Group: "test", Rank: r, Addresses: addresses, Listener: listeners[r], QueueBytes: 64 << 20}
				secure(&c)
				return c
			}
			receiver := startWith(t, config(1), func(r *recorder) transport.Handler {
				at.recorder = r
				return at
			})
			sender := start(t, config(0))
			var want [][]byte
			for i := range 200 {
				frame := bytes.Repeat(fmt.Appendf(nil, "%04d", i), []int{1, 20, 300, 9000, 40_000}[i%5])
				cut := len(frame) * (i % 3) / 2
				if i%7 == 0 {
					cut = min(30, len(frame)) // as a protocol's head
				}
				want = append(want, frame)
				if err := sender.SendVector(1, frame[:cut], frame[cut:]); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all frames", func() bool { return len(receiver.received(0)) == len(want) })
			for i, got := range receiver.received(0) {
				if !bytes.Equal(got, want[i]) {
					t.Fatalf("frame %d of %d bytes is not what was sent", i, len(want[i]))
				}
			}
			if sent, got := sender.Stats().BytesSent, receiver.Stats().BytesReceived; sent != got {
				t.Errorf("%d bytes were sent, and %d received", sent, got)
			}
			if n := at.filled.Load(); n == 0 {
				t.Error("nothing was placed")
			}
		})
	}
}
