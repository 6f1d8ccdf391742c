package p2p

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"github.com/pleach-go/pleach/internal/testutil"
)

// goldenFrames is every kind of frame, by names that belong to the protocol and not
// to the code: code may be renamed, frames may not change.
func goldenFrames() map[string]frame {
	const large = math.MaxUint64
	return map[string]frame{
		"ack first":            {kind: ack, from: 1},
		"ack":                  {kind: ack, from: 0x1122334455667788, to: 0x99aabbccddeeff00, next: 300, number: 7},
		"ack large":            {kind: ack, from: large, to: large, next: large, number: large},
		"segment first":        {kind: segment, from: 1},
		"segment whole":        {kind: segment, first: true, last: true, length: 6, from: 17, to: 18, next: 4, number: 9, piece: []byte("pleach")},
		"segment whole empty":  {kind: segment, first: true, last: true, from: 17, to: 18, next: 4, number: 10},
		"segment begins":       {kind: segment, first: true, length: 70_000, from: 17, number: 11, piece: []byte("begin")},
		"segment middle":       {kind: segment, from: 17, to: 18, next: 5, number: 12, piece: []byte{0, 255}},
		"segment ends":         {kind: segment, last: true, from: 17, to: 18, next: 5, number: 13, piece: []byte("end")},
		"segment large":        {kind: segment, first: true, length: math.MaxUint32, from: large, to: large, next: large, number: large, piece: []byte("x")},
		"position query first": {kind: ask, from: 1},
		"position query":       {kind: ask, from: 17, to: 18, next: 5, number: 14},
		"position first":       {kind: answer, from: 1},
		"position":             {kind: answer, from: 17, to: 18, next: 5, number: 14},
		"position large":       {kind: answer, from: large, to: large, next: large, number: large},
	}
}

func TestGoldenFrames(t *testing.T) {
	encoded := make(map[string][]byte)
	for name, f := range goldenFrames() {
		encoded[name] = append(f.appendHead(nil), f.piece...)
	}
	recorded := testutil.Golden(t, "testdata/frames.golden", encoded)
	for name, want := range goldenFrames() {
		got, err := parse(recorded[name])
		if !bytes.Equal(got.piece, want.piece) {
			t.Errorf("%s: piece %q, want %q", name, got.piece, want.piece)
		}
		got.piece, want.piece = nil, nil
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
