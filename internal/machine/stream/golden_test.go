package stream

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// goldenFrames is every kind of frame, by names that belong to the protocol and not
// to the code: code may be renamed, frames may not change.
func goldenFrames() map[string]frame {
	const large = math.MaxUint64
	batched := batchOf("one", "", "three")
	long := batchOf(string(bytes.Repeat([]byte{'x'}, 300)), "y") // its length takes two bytes
	topics := batchOf("\x04newsone", "\x06pricestwo", "\x04news")
	return map[string]frame{
		"data zero": {kind: data},
		"data whole message": {
			kind: data, begins: true, root: 3, incarnation: 77, first: 12, messages: 9, unaccepted: 5,
			segment: []byte("pleach"),
		},
		"data empty message": {kind: data, begins: true, root: 3, incarnation: 77, first: 13},
		"data first segment": {
			kind: data, begins: true, remaining: 70_000, root: 5, incarnation: 1, first: 14,
			segment: []byte("begin"),
		},
		"data last segment": {kind: data, root: 5, incarnation: 1, first: 15, segment: []byte("end")},
		"data large": {
			kind: data, remaining: math.MaxUint32, root: math.MaxInt32, incarnation: large, first: large,
			messages: math.MaxUint32, unaccepted: math.MaxUint32, segment: []byte{0, 255},
		},
		"data batch":       {kind: data, begins: true, batch: true, root: 1, incarnation: 2, first: 3, segment: batched},
		"data batch long":  {kind: data, begins: true, batch: true, root: 1, incarnation: 2, first: 4, segment: long},
		"data batch empty": {kind: data, begins: true, batch: true, root: 1, incarnation: 2, first: 5},
		"data topic": {
			kind: data, begins: true, labeled: true, root: 3, incarnation: 77, first: 14,
			segment: append(Label{Topic: "news"}.append(nil), "pleach"...),
		},
		"data topic empty": {
			kind: data, begins: true, labeled: true, root: 3, incarnation: 77, first: 15,
			segment: Label{Topic: "é"}.append(nil),
		},
		"data topic segment": {
			kind: data, begins: true, labeled: true, remaining: 70_000, root: 5, incarnation: 1, first: 14,
			segment: append(Label{Topic: "news"}.append(nil), "begin"...),
		},
		"data traced": {
			kind: data, begins: true, traced: true, root: 3, incarnation: 77, first: 14,
			segment: []byte("pleach"),
		},
		"offer with traced": {
			kind: offer, inline: true, begins: true, traced: true, root: 2, incarnation: 9, first: 1,
			segment: []byte("last"),
		},
		"data header": {
			kind: data, begins: true, labeled: true, root: 3, incarnation: 77, first: 16,
			segment: append(Label{Header: goldenHeader}.append(nil), "pleach"...),
		},
		"data header topic": {
			kind: data, begins: true, labeled: true, root: 3, incarnation: 77, first: 17,
			segment: append(Label{Topic: "news", Header: goldenHeader}.append(nil), "pleach"...),
		},
		"data topic batch": {
			kind: data, begins: true, batch: true, labeled: true, root: 1, incarnation: 2, first: 6,
			segment: topics,
		},
		"repair zero": {kind: repair},
		"repair topic": {
			kind: repair, begins: true, labeled: true, root: 3, incarnation: 77, first: 14,
			segment: append(Label{Topic: "news"}.append(nil), "pleach"...),
		},
		"repair whole message": {kind: repair, begins: true, root: 3, incarnation: 77, first: 12, segment: []byte("pleach")},
		"repair middle":        {kind: repair, remaining: 1, root: 3, incarnation: 77, first: 12, segment: []byte("pleach")},
		"repair batch": {
			kind: repair, begins: true, batch: true, root: 1, incarnation: 2, first: 3,
			segment: batched,
		},
		"offer zero":      {kind: offer},
		"offer":           {kind: offer, root: 2, incarnation: 9, first: 1000},
		"offer leftward":  {kind: offer, direction: leftward, root: 2, incarnation: 9, first: 1000},
		"offer rightward": {kind: offer, direction: rightward, root: 2, incarnation: 9, first: large},
		"offer with segment": {
			kind: offer, direction: leftward, inline: true, begins: true, root: 2, incarnation: 9,
			first: 1000, unaccepted: 999, segment: []byte("last"),
		},
		"offer with middle": {
			kind: offer, direction: rightward, inline: true, remaining: 8, root: 2, incarnation: 9,
			first: 1, segment: []byte("last"),
		},
		"offer with batch": {
			kind: offer, inline: true, begins: true, batch: true, root: 2, incarnation: 9, first: 1,
			segment: batched,
		},
		"offer with topic": {
			kind: offer, inline: true, begins: true, labeled: true, root: 2, incarnation: 9, first: 1,
			segment: append(Label{Topic: "news"}.append(nil), "last"...),
		},
		"request zero":      {kind: request},
		"request":           {kind: request, root: 4, incarnation: 8, first: 100, last: 200},
		"request large":     {kind: request, root: math.MaxInt32, incarnation: large, first: large - 1, last: large},
		"trimmed zero":      {kind: trimmed},
		"trimmed":           {kind: trimmed, root: 4, incarnation: 8, first: 150, messages: 140},
		"graft zero":        {kind: adopt},
		"graft":             {kind: adopt, root: 6, incarnation: 7, first: 31},
		"poll":              {kind: poll, root: 6, incarnation: 7, first: 32, view: 9},
		"poll large":        {kind: poll, root: math.MaxInt32, incarnation: large, first: large, view: large},
		"ack":               {kind: ack, root: 6, incarnation: 7, first: 32, view: 9},
		"credit of nothing": {kind: grantCredit, root: 6, incarnation: 7, view: 9},
		"credit":            {kind: grantCredit, root: 6, incarnation: 7, first: 32, view: 9},
		"credit large":      {kind: grantCredit, root: math.MaxInt32, incarnation: large, first: large, view: large},
		"credit poll":       {kind: creditPoll, root: 6, incarnation: 7, first: 32, view: 9},
		"credit poll large": {kind: creditPoll, root: math.MaxInt32, incarnation: large, first: large, view: large},
		"offer aged": {
			kind: offer, root: 6, incarnation: 7, first: 32, direction: leftward, aged: true, age: 1500,
			skew: 300,
		},
		"offer aged inline": {
			kind: offer, root: 6, incarnation: 7, first: 32, direction: leftward, aged: true, age: 1500,
			skew: 300, inline: true, begins: true, messages: 3, unaccepted: 2, segment: []byte("aged"),
		},
		"credit split": {kind: grantCredit, root: 6, incarnation: 7, first: 32, view: 9, live: 40},
		"ack large":    {kind: ack, root: math.MaxInt32, incarnation: large, first: large, view: large},
	}
}

// goldenHeader is a header of two pairs.
const goldenHeader = header.Encoded("\x01a\x00\x02bc\x0btraceparent\x00\x00")

// batchOf makes a batch as a sender does.
func batchOf(messages ...string) (batch []byte) {
	for _, m := range messages {
		batch = appendMessage(batch, &segment{frame: append(make([]byte, headSizeOf(0)), m...)})
	}
	return batch
}

func TestGoldenFrames(t *testing.T) {
	encoded := make(map[string][]byte)
	for name, f := range goldenFrames() {
		encoded[name] = f.append(nil)
	}
	recorded := testutil.Golden(t, "testdata/frames.golden", encoded)
	for name, want := range goldenFrames() {
		got, err := parse(recorded[name])
		if !bytes.Equal(got.segment, want.segment) {
			t.Errorf("%s: segment %q, want %q", name, got.segment, want.segment)
		}
		got.segment, got.encoded, got.batched, want.segment = nil, nil, 0, nil
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	testutil.EveryKind(t, recorded, 0, func(frame []byte) bool {
		_, err := parse(frame)
		return err == nil
	})
	var messages []string
	f, _ := parse(recorded["data batch"])
	if err := split(f.segment, func(m []byte) { messages = append(messages, string(m)) }); err != nil ||
		!slices.Equal(messages, []string{"one", "", "three"}) {
		t.Errorf("a batch of %q, %v", messages, err)
	}
}
