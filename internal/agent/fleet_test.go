package agent

import (
	"bytes"
	"testing"
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
