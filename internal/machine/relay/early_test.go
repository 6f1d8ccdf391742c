package relay

import "testing"

// A member that does not have the positions of its zone yet keeps no more of what arrives
// than its log would.
func TestWhatComesEarlyIsBounded(t *testing.T) {
	m := New(Config{Self: Origin{Zone: "a", ID: "1"}, KeepBytes: 10_000, MaxOrigins: 8})
	for seq := range uint64(1000) {
		f := frame{kind: kindData, origin: Origin{Zone: "a", ID: "2"}, seq: seq + 1, data: make([]byte, 100)}
		if err := m.FromZone(1, 2, f.encode()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.early); n == 0 || n > 100 {
		t.Errorf("%d messages of 100 bytes are kept, of at most 10,000", n)
	}
}
