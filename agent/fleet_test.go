package agent

import (
	"bytes"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What was put into an envelope comes out of it, and what has none stays as it is.
func FuzzEnvelope(f *testing.F) {
	f.Add("cache", []byte("flush"))
	f.Add("", []byte(envelopeMark+"\xff"))
	f.Fuzz(func(t *testing.T, topic string, data []byte) {
		gotTopic, got := openEnvelope(sealEnvelope(topic, data))
		if topic != "" && (gotTopic != topic || !bytes.Equal(got, data)) {
			t.Errorf("%q, %q became %q, %q", topic, data, gotTopic, got)
		}
		openEnvelope(data) // any bytes come from Go programs
	})
}

// A zone whose name is not UTF-8 has no metrics, and does not end the agents of other zones when they
// are scraped (case 100).
func TestZoneThatIsNotUTF8(t *testing.T) {
	ch := make(chan prometheus.Metric, 2)
	emit(ch, fleetMembers, 1, "\xffbad")
	emit(ch, fleetMembers, 1, "good")
	if len(ch) != 1 {
		t.Errorf("%d metrics", len(ch))
	}
}
