package stream

import (
	"errors"
	"testing"

	"github.com/pleach-go/pleach/topology"
)

// Flags that do not go with the kind of a frame, or with what else it says, are refused.
func TestStrangeFlagsAreRefused(t *testing.T) {
	segment := []byte("segment")
	for _, c := range []struct {
		what    string
		frame   frame
		flags   byte
		refused bool
	}{
		{"a segment", frame{kind: data, first: 1, begins: true, segment: segment}, 0, false},
		{"a segment within an offer", frame{kind: data, first: 1, begins: true, segment: segment}, flagInline, true},
		{"a request within an offer", frame{kind: request, first: 1, last: 2}, flagInline, true},
		{"an offer with a segment", frame{kind: offer, first: 1, begins: true, inline: true, segment: segment}, 0, false},
		{
			"an offer of nothing with a segment",
			frame{kind: offer, first: 0, begins: true, inline: true, segment: segment},
			0, true,
		},
		{"an offer to the left", frame{kind: offer, first: 1}, flagLeftward, false},
		{"an offer to both sides", frame{kind: offer, first: 1}, flagLeftward | flagRightward, true},
		{"a request with more to come", frame{kind: request, first: 1, last: 2}, flagMore, true},
		{"a batch that begins no message", frame{kind: data, first: 1, segment: segment}, flagBatch, true},
		{"a topic that begins no message", frame{kind: data, first: 1, segment: segment}, flagLabel, true},
		{"a topic of a request", frame{kind: request, first: 1, last: 2}, flagLabel | flagBegins, true},
		{"a credit in two parts", frame{kind: grantCredit, first: 5, live: 6}, 0, false},
		{"a credit in two parts that are one", frame{kind: grantCredit, first: 5, live: 5}, 0, true},
		{"a poll about nothing", frame{kind: poll}, 0, true},
		{"a credit of nothing", frame{kind: grantCredit}, 0, false},
		{"a kind that is none", frame{kind: splitCredit + 1, first: 1}, 0, true},
		{
			"a segment before it was written",
			frame{kind: data, first: 1, begins: true, unaccepted: 2, segment: segment},
			0, true,
		},
	} {
		c.frame.incarnation = 1
		b := c.frame.append(nil)
		b[1] |= c.flags
		if _, err := parse(b); errors.Is(err, ErrFrame) != c.refused {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// A frame that carries no segment has one length: any other is refused.
func TestLengthsOfFramesAreChecked(t *testing.T) {
	for name, f := range goldenFrames() {
		b := f.append(nil)
		for n := range len(b) {
			if _, err := parse(b[:n]); err == nil && (!f.carriesSegment() || n < len(b)-len(f.segment)-ageSize) {
				t.Errorf("%s: %d of its %d bytes are taken for a frame", name, n, len(b))
			}
		}
		if _, err := parse(append(b, 0)); err == nil && !f.carriesSegment() {
			t.Errorf("%s: a frame with a byte more is taken", name)
		}
	}
}

// Members whose trees cannot be are refused.
func TestTreesThatCannotBe(t *testing.T) {
	if m, err := New(Config{Rank: 0, Size: 4, Incarnation: 1, Shape: topology.KAry(0)}); err == nil {
		t.Errorf("%v", m)
	}
}
