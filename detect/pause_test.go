package detect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Who has others closer to a peer looks later, and not at all if a view without the
// peer comes first.
func TestOutsidersLookLater(t *testing.T) {
	for name, leaves := range map[string]bool{"it stays": false, "it leaves the view first": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, looked := time.Now(), time.Duration(-1)
				d := scripted(func(ctx context.Context) error {
					looked = time.Since(start)
					return refuses(ctx)
				})
				defer d.Close()
				j := newJournal()
				if err := d.Start(j.add); err != nil {
					t.Fatal(err)
				}
				peer := known
				peer.Pause = 50 * time.Millisecond
				d.Watch(PeerList([]Peer{peer}))
				d.Down(peer.Rank, nil)
				testutil.Advance(20 * time.Millisecond)
				if leaves {
					d.Watch(PeerList(nil))
				}
				testutil.Advance(time.Second)
				switch {
				case leaves && (looked >= 0 || len(j.all()) > 0):
					t.Errorf("looked after %v, reported %v", looked, j.all())
				case !leaves && (looked != peer.Pause || len(j.all()) != 1):
					t.Errorf("looked after %v, reported %v", looked, j.all())
				}
			})
		})
	}
}
