package swim

import (
	"math"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Members tell memberlist's nodes apart by name, also those of another version.
func TestGoldenFrames(t *testing.T) {
	type member struct {
		rank        protocol.Rank
		incarnation uint64
	}
	members := map[string]member{
		"node name first": {0, 1},
		"node name":       {7, 1234567890123456789},
		"node name large": {math.MaxUint32, math.MaxUint64},
	}
	encoded := make(map[string][]byte)
	for name, m := range members {
		encoded[name] = []byte(nodeName(m.rank, m.incarnation))
	}
	for name, b := range testutil.Golden(t, "testdata/frames.golden", encoded) {
		if rank, incarnation, err := parseName(string(b)); err != nil || (member{rank, incarnation}) != members[name] {
			t.Errorf("%s: %d, %d, %v, want %v", name, rank, incarnation, err, members[name])
		}
	}
}
