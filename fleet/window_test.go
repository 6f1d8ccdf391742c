package fleet

import (
	"testing"

	"github.com/pleach-go/pleach"
)

// Broadcast waits while other zones lack too much. It tries again when there is a sign, and
// gives none itself: it would try all the time.
func TestBroadcastWaitsForWindow(t *testing.T) {
	t.Parallel()
	f, err := Join(t.Context(), Config{Zone: "ber", Group: pleach.Config{ID: "ber0"}, KeepBytes: minWindow})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Abort()
	for f.tryBroadcast(make([]byte, minWindow)) != nil {
		continue
	}
	f.mu.Lock()
	if len(f.window) > 0 && !f.open() {
		t.Error("a broadcast that has to wait gives a sign to itself")
	}
	f.mu.Unlock()
	<-f.window // a watermark has opened the window
	f.mu.Lock()
	f.waiting--
	f.mu.Unlock()
	if err := f.Broadcast(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
