package p2p

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// goldenFrames is every kind of frame, by names that belong to the protocol and not
// to the code: code may be renamed, frames may not change.
func goldenFrames() map[string]frame {
	const large = math.MaxUint64
	return map[string]frame{
		"ack first":     {kind: ack, from: 1},
		"ack":           {kind: ack, from: 0x1122334455667788, to: 0x99aabbccddeeff00, next: 300, number: 7},
		"ack large":     {kind: ack, from: large, to: large, next: large, number: large},
		"segment first": {kind: data, from: 1},
		"segment whole": {
			kind: data, first: true, last: true, length: 6, from: 17, to: 18, next: 4, number: 9,
			payload: []byte("pleach"),
		},
		"segment whole empty": {kind: data, first: true, last: true, from: 17, to: 18, next: 4, number: 10},
		"segment begins":      {kind: data, first: true, length: 70_000, from: 17, number: 11, payload: []byte("begin")},
		"segment middle":      {kind: data, from: 17, to: 18, next: 5, number: 12, payload: []byte{0, 255}},
		"segment ends":        {kind: data, last: true, from: 17, to: 18, next: 5, number: 13, payload: []byte("end")},
		"segment large": {
			kind: data, first: true, length: math.MaxUint32, from: large, to: large, next: large,
			number: large, payload: []byte("x"),
		},
		"position query first": {kind: poll, from: 1},
		"position query":       {kind: poll, from: 17, to: 18, next: 5, number: 14},
		"position first":       {kind: pollReply, from: 1},
		"position":             {kind: pollReply, from: 17, to: 18, next: 5, number: 14},
		"position large":       {kind: pollReply, from: large, to: large, next: large, number: large},
	}
}

func TestGoldenFrames(t *testing.T) {
	encoded := make(map[string][]byte)
	for name, f := range goldenFrames() {
		encoded[name] = append(f.appendHead(nil), f.payload...)
	}
	recorded := testutil.Golden(t, "testdata/frames.golden", encoded)
	for name, want := range goldenFrames() {
		got, err := parse(recorded[name])
		if !bytes.Equal(got.payload, want.payload) {
			t.Errorf("%s: piece %q, want %q", name, got.payload, want.payload)
		}
		got.payload, want.payload = nil, nil
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	understood := func(frame []byte) bool {
		_, err := parse(frame)
		return err == nil
	}
	testutil.EveryKind(t, recorded, 0, understood) // of protocols
	testutil.EveryKind(t, recorded, 1, understood)
}
