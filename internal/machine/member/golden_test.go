package member

import (
	"bytes"
	"testing"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/heartbeat"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Frames of several protocols share connections: the first byte tells them apart.
func TestGoldenMarks(t *testing.T) {
	p := &Machine{}
	marked := testutil.Golden(t, "testdata/marks.golden", map[string][]byte{
		"membership": bytes.Clone(p.mark(viewFrame, []byte("frame"))),
		"unicast":    {unicastFrame},
		"direct":     bytes.Clone(p.mark(directFrame, []byte("frame"))),
		"heartbeat":  bytes.Clone(p.mark(heartbeatFrame, nil)),
		"handshake":  wire.AppendHello(nil, &wire.Hello{})[:6],
	})
	if b := marked["membership"]; b[0] != viewFrame || string(b[1:]) != "frame" {
		t.Errorf("membership: %x", b)
	}
	if b := marked["direct"]; b[0] != directFrame || string(b[1:]) != "frame" {
		t.Errorf("direct: %x", b)
	}
	if b := marked["unicast"]; b[0] != unicastFrame {
		t.Errorf("unicast: %x", b)
	}
	heard := 0
	p.heart = heartbeat.New(heartbeat.Config{Interval: 1, Timeout: 1, Report: func(protocol.Rank, bool) { heard++ }})
	p.heart.Watch(1, []heartbeat.Neighbor{{Rank: 3, Incarnation: 1, Started: true}})
	for now := protocol.Time(1); now < 9; now++ {
		p.heart.Next(now)
	}
	if err := p.Receive(9, 3, marked["heartbeat"]); err != nil || heard != 2 {
		t.Errorf("heartbeat: %v, %d reports, want silence and its end", err, heard)
	}
}
