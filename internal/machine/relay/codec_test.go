package relay

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Frames survive the wire, and a part of one is refused.
func TestFramesSurviveTheWire(t *testing.T) {
	name := rapid.StringN(0, 20, 20)
	origin := rapid.Custom(func(t *rapid.T) Origin {
		return Origin{name.Draw(t, "zone"), name.Draw(t, "id"), rapid.Uint64().Draw(t, "incarnation")}
	})
	rapid.Check(t, func(t *rapid.T) {
		f := &frame{kind: kind(rapid.IntRange(int(kindData), int(kindHello)).Draw(t, "kind"))}
		whole := 0 // bytes without the data, which may be any number
		switch f.kind {
		case kindData, kindLost, kindFetch, kindHello:
			f.origin, f.seq = origin.Draw(t, "origin"), rapid.Uint64().Draw(t, "seq")
		case kindSummary:
			for range rapid.IntRange(0, 3).Draw(t, "summaries") {
				f.summaries = append(f.summaries, Summary{
					Zone: name.Draw(t, "zone"), Members: rapid.IntRange(0, 1<<31-1).Draw(t,
						"members"), View: rapid.Uint64().Draw(t, "view"), Healthy: rapid.Bool().Draw(t, "healthy"),
					Version: rapid.Uint16().Draw(t, "version"),
				})
			}
		default:
			f.zone, f.born, f.positions = name.Draw(t, "zone"), rapid.Uint64().Draw(t, "born"), []position{}
			f.zones, f.covers = rapid.SliceOfN(name, 1, 3).Draw(t, "zones"), rapid.SliceOfN(name, 1, 3).Draw(t, "covers")
			for range rapid.IntRange(0, 3).Draw(t, "positions") {
				f.positions = append(f.positions, position{
					origin.Draw(t, "origin"), rapid.Uint64().Draw(t, "seq"),
					rapid.Uint64().Draw(t, "acked"),
				})
			}
		}
		b := f.append(nil)
		whole = len(b)
		got, err := decode(b)
		got.data = nil
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Fatalf("%+v became %+v, %v", f, got, err)
		}
		if cut := rapid.IntRange(0, whole-1).Draw(t, "cut"); cut < whole {
			if got, err := decode(b[:cut]); err == nil {
				t.Fatalf("%d of %d bytes became %+v", cut, whole, got)
			}
		}
		sent := f.encode()
		if frames, err := splitFrames(append(sent, sent...)); err != nil || len(frames) != 2 {
			t.Fatalf("two frames are %d, %v", len(frames), err)
		}
		if _, err := splitFrames(append(sent, sent[:len(sent)-1]...)); err == nil {
			t.Fatal("a part of a frame is taken")
		}
	})
	for _, longer := range []string{"", "x"} {
		o := Origin{Zone: strings.Repeat("z", MaxName) + longer, ID: strings.Repeat("i", MaxName)}
		if _, err := decode((&frame{kind: kindData, origin: o}).append(nil)); err != nil != (longer != "") {
			t.Errorf("a name of %d bytes: %v", len(o.Zone), err)
		}
	}
}

// Messages and notices of losses keep their order among each other; what zones need to get on with
// them does not wait for either.
func TestMessagesAreNotUrgent(t *testing.T) {
	for k := kindData; k <= kindHello; k++ {
		var o outbox
		o.send(Peer{}, &frame{kind: k})
		if urgent := o.Actions()[0].(Send).Urgent; urgent == (k == kindLost) {
			t.Errorf("kind %d is urgent: %t", k, urgent)
		}
	}
}
