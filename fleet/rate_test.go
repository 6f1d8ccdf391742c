package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
)

// All members of three zones broadcast as fast as they can, ten times as much as their logs
// keep. Every member gets everything, once and in order: origins wait for the slowest zone.
func TestFullRateLosesNothing(t *testing.T) {
	t.Parallel()
	const keep, size, count = 128 << 10, 200, 800
	seeds := map[string][]string{}
	members := map[string][]*fleet.Fleet{}
	for i := range 3 {
		for _, zone := range []string{"ber", "fra", "iad"} {
			f, err := fleet.Join(t.Context(), fleet.Config{
				Zone: zone, Seeds: seeds, KeepBytes: keep,
				Group: pleach.Config{ID: fmt.Sprint(zone, i), Listen: "127.0.0.1:0"},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Abort() })
			members[zone] = append(members[zone], f)
			seeds[zone] = append(seeds[zone], f.Zone().Self().Address)
		}
	}
	connected(t, members)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var running sync.WaitGroup
	for _, of := range members {
		for _, f := range of {
			running.Go(func() {
				for i := range count {
					data := make([]byte, size)
					if i == count-1 {
						data = []byte(last)
					}
					if err := f.Broadcast(ctx, data); err != nil {
						t.Error(err)
						return
					}
				}
			})
			running.Go(func() { receiveAll(ctx, t, f, 8) })
		}
	}
	running.Wait()
}

// last is the last message of an origin.
const last = "last"

// receiveAll receives messages at a member until it has the last ones of so many others.
// Those of each origin begin with any number, as the zones may not have met before.
func receiveAll(ctx context.Context, t *testing.T, f *fleet.Fleet, others int) {
	next := map[string]uint64{}
	for m, err := range f.Messages(ctx) {
		if n, ok := next[m.ID]; err != nil || ok && m.Seq != n {
			t.Errorf("%s got number %d of %s instead of %d: %v", f.Zone().Self().ID, m.Seq, m.ID, n, err)
			return
		}
		next[m.ID] = m.Seq + 1
		if string(m.Data) == last {
			others--
		}
		if others == 0 {
			return
		}
	}
	t.Errorf("%s lacks the last messages of %d others: %v", f.Zone().Self().ID, others, f.Err())
}
