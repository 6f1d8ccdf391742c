package experiments

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// A message that correction only offers costs each member one copy, and is late
// only for those below the dead; one that correction carries costs about two.
func TestOffersCostOneCopy(t *testing.T) {
	const payload = 32 << 10
	run := func(inline int, dies protocol.Rank) OffersResult {
		o := Offers{Size: 32, Payload: payload, Inline: inline, Latency: 10_000, Overhead: 5000, Dies: dies}
		r, err := o.Run()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Logf("%+v %+v %+v %+v", run(1, 0), run(1<<20, 0), run(1, 1), run(1<<20, 1))
	lazy, eager := run(1, 0), run(1<<20, 0)
	if copies := float64(lazy.Bytes) / payload / 31; copies < 1 || copies > 1.1 {
		t.Errorf("%.2f copies with offers", copies)
	}
	if eager.Bytes < 3*lazy.Bytes/2 {
		t.Errorf("%d bytes with copies, %d with offers", eager.Bytes, lazy.Bytes)
	}
	if late := run(1, 1); late.Time <= lazy.Time {
		t.Errorf("%d ns with a dead member, %d ns without", late.Time, lazy.Time)
	}
}
