package shards

import (
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A member dies, and all are restarted under load. PLEACH_FULL has the size of the figures.
func TestNoRequestHasTwoOwners(t *testing.T) {
	for name, lease := range map[string]time.Duration{"lease": 200 * time.Millisecond, "tokens": -1} {
		t.Run(name, func(t *testing.T) {
			c := Config{Members: 4, Partitions: 64, Lease: lease, Trials: 1, Clients: 4, Seed: 1}
			if testutil.Full.On() {
				c = Config{Members: 16, Partitions: 1024, Lease: lease, Trials: 10, Clients: 16, Seed: 1}
			}
			r, err := Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", r)
			if r.Wrong() > 0 || r.Requests == 0 || r.Restarts != c.Members || r.P50 == 0 {
				t.Errorf("%+v", r)
			}
			if r.MovedKill > 1.1 || r.MovedJoin > 1.1 {
				t.Errorf("%v and %v times the minimum moved", r.MovedKill, r.MovedJoin)
			}
		})
	}
}
