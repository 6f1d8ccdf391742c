package fleet

import (
	"testing"

	"github.com/pleach-go/pleach"
)

// Broadcast waits while other zones lack too much. It tries again when there is a sign, and
// gives none itself: it would try all the time. The one that broadcasts here does not lead its
// zone's delegates, so nothing opens its window before they have what it has numbered.
func TestBroadcastWaitsForWindow(t *testing.T) {
	t.Parallel()
	seeds := map[string][]string{}
	var f *Fleet
	for _, id := range []string{"ber0", "ber1"} {
		var err error
		f, err = Join(t.Context(), Config{Zone: "ber", Group: pleach.Config{ID: id}, Seeds: seeds, KeepBytes: minWindow})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Abort()
		seeds["ber"] = []string{f.Zone().Self().Address}
	}
	var frames [][]byte
	for {
		frame := f.tryBroadcast("", make([]byte, minWindow))
		if frame == nil {
			break
		}
		frames = append(frames, frame)
		if len(frames) > 1000 {
			t.Fatal("the window stays open")
		}
	}
	f.mu.Lock()
	if len(f.window) > 0 && !f.open() {
		t.Error("a broadcast that has to wait gives a sign to itself")
	}
	f.mu.Unlock()
	for _, frame := range frames {
		if err := f.Zone().BroadcastTopic(t.Context(), topicName, frame); err != nil {
			t.Fatal(err)
		}
	}
	<-f.window // a watermark has opened the window
	f.mu.Lock()
	f.waiting--
	f.mu.Unlock()
	if err := f.Broadcast(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
