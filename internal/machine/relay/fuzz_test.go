package relay

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// withLength makes bytes what a frame is sent as.
func withLength(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// Frames come from other processes, so any bytes may be one. A member takes them from its
// zone and from the backbone, and keeps to its limits.
func FuzzFrames(f *testing.F) {
	origin := Origin{Zone: "b", ID: "7", Incarnation: 3}
	for _, s := range []frame{
		{kind: kindData, origin: origin, seq: 1, data: []byte("data")},
		{kind: kindData, headed: true, origin: origin, seq: 1, data: []byte("\x00\x05\x01k\x00\x01vdata")},
		{kind: kindLost, origin: origin, seq: 1 << 63},
		{kind: kindFetch, origin: origin, seq: 1},
		{kind: kindSync, zone: "b", zones: []string{"a", "b"}, covers: []string{"b"}, positions: []position{{origin, 5, 4}}},
		{kind: kindReply, zone: "b", zones: []string{"a"}, positions: []position{{origin, 1<<64 - 1, 0}}},
		{kind: kindBase, zone: "b", positions: []position{{origin, 1, 1}}},
		{kind: kindWatermark, zone: "a", positions: []position{{origin, 9, 9}}},
		{kind: kindAck, zone: "b", positions: []position{{origin, 9, 9}}},
		{kind: kindTable, zone: "a", zones: []string{"a"}, positions: []position{{origin, 1, 1}}},
		{kind: kindSummary, summaries: []Summary{{Zone: "b", Members: 3, View: 9}}},
	} {
		f.Add(s.append(nil), s.append(nil))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		c := Config{
			Self: Origin{Zone: "a", ID: "1"}, KeepBytes: 1000, MaxOrigins: 4, Window: 500, AckDelay: 2,
			AckBytes: 1 << 15, WatermarkDelay: 2, Stall: 10, GapDelay: 2,
		}
		m := New(c)
		m.Begin(1)
		m.SetZone(1, []Sibling{{Rank: 0, Age: 1}, {Rank: 1, Age: 2}, {Rank: 2, Age: 3}}, 0)
		m.SetBackbone(1, []Peer{{Rank: 0, Zone: "a"}, {Rank: 1, Zone: "b"}, {Rank: 2, Zone: "c"}})
		for now, b := range [][]byte{first, second} {
			decoded, err := decode(b)
			if err == nil {
				if again, err := decode(decoded.append(nil)); err != nil || !bytes.Equal(again.append(nil), decoded.append(nil)) {
					t.Fatalf("a frame is %v when encoded again", err)
				}
			}
			at := Time(10 * (now + 1))
			_ = m.FromPeer(at, 1, withLength(b))
			_ = m.FromZone(at+1, 2, withLength(b))
			_, _ = m.Serve(b)
			_ = m.Fetched(at+2, withLength(b))
			m.Stable(at+3, true)
			m.Tick(at + 4)
			m.Actions()
		}
		if m.keptBytes > c.KeepBytes+len(first)+len(second) || m.heldBytes > c.KeepBytes+len(first)+len(second) ||
			len(m.streams) > c.MaxOrigins+1 {
			t.Fatalf("%d bytes kept, %d held, %d origins", m.keptBytes, m.heldBytes, len(m.streams))
		}
	})
}
