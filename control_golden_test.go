package pleach

import (
	"testing"

	"github.com/pleach-go/pleach/internal/founding"
	"github.com/pleach-go/pleach/internal/lifecycle"
	"github.com/pleach-go/pleach/internal/testutil"
	"github.com/pleach-go/pleach/internal/wire"
)

func TestGoldenControl(t *testing.T) {
	f := founding.Request{From: founding.Candidate{ID: "hedge-7", Address: "10.0.0.7:7000", Domain: "rack 3", Nonce: 0x1122334455667788, Version: 5}, Expect: 3, Promise: 9, Term: 1 << 40, Group: "10.0.0.1:7000"}
	q := lifecycle.Question{From: lifecycle.Contact{ID: "hedge-7", Address: "10.0.0.7:7000"}, View: 300}
	force := wire.AppendUint64([]byte{requestForce}, 300)
	for _, r := range []uint32{1, 8} {
		force = wire.AppendUint32(force, r)
	}
	testutil.Golden(t, "internal/control/testdata/requests.golden", map[string][]byte{
		"founding-request":      f.Encode([]byte{requestFounding}),
		"force-request":         force,
		"catch-up-request":      wire.AppendBytes(wire.AppendUint64([]byte{requestCatchUp}, 300), []byte("10.0.0.7:7000")),
		"decisions-query":       {requestDecisions},
		"raise-request":         wire.AppendUint16([]byte{requestRaise}, 6),
		"introduction-question": q.Encode([]byte{requestIntroduction}),
	})
}
