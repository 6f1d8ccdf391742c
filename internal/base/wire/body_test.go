package wire

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

func TestDecoderReturnsWhatWasAppended(t *testing.T) {
	b := AppendUint8(nil, 200)
	b = AppendUint16(b, 60_000)
	b = AppendUint32(b, 4_000_000_000)
	b = AppendUint64(b, math.MaxUint64)
	b = AppendRank(b, protocol.NoRank)
	b = AppendRank(b, 1<<40)
	b = AppendBytes(b, []byte("body"))
	b = AppendBytes(b, nil)
	b = append(b, "rest"...)

	d := NewDecoder(b)
	if d.Uint8() != 200 || d.Uint16() != 60_000 || d.Uint32() != 4_000_000_000 || d.Uint64() != math.MaxUint64 {
		t.Error("integers differ")
	}
	if d.Rank() != protocol.NoRank || d.Rank() != 1<<40 {
		t.Error("ranks differ")
	}
	if string(d.Bytes()) != "body" || len(d.Bytes()) != 0 || string(d.Rest()) != "rest" {
		t.Error("bytes differ")
	}
	if err := d.Finish(); err != nil {
		t.Error(err)
	}
}

func TestDecoderKeepsItsFirstError(t *testing.T) {
	d := NewDecoder([]byte{1, 2, 3})
	d.Uint8()
	if d.Uint32() != 0 || d.Uint8() != 0 || d.Rank() != 0 || d.Bytes() != nil || d.Rest() != nil {
		t.Error("something was decoded after an error")
	}
	var decode *DecodeError
	if err := d.Finish(); !errors.As(err, &decode) || decode.Offset != 1 {
		t.Errorf("got %v", err)
	}
}

func TestDecoderRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		body   []byte
		decode func(*Decoder)
	}{
		"left over":            {[]byte{1, 2}, func(d *Decoder) { d.Uint8() }},
		"a negative rank":      {AppendRank(nil, -2), func(d *Decoder) { d.Rank() }},
		"bytes that are short": {[]byte{0, 0, 0, 3, 1, 2}, func(d *Decoder) { d.Bytes() }},
		"an absurd length":     {[]byte{0xff, 0xff, 0xff, 0xff}, func(d *Decoder) { d.Bytes() }},
	} {
		d := NewDecoder(tt.body)
		tt.decode(&d)
		if d.Finish() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2}, []byte("script"))
	f.Fuzz(func(t *testing.T, body, script []byte) {
		d := NewDecoder(body)
		var again []byte
		for _, op := range script {
			before := d
			var part []byte
			switch op % 6 {
			case 0:
				part = AppendUint8(nil, d.Uint8())
			case 1:
				part = AppendUint16(nil, d.Uint16())
			case 2:
				part = AppendUint32(nil, d.Uint32())
			case 3:
				part = AppendUint64(nil, d.Uint64())
			case 4:
				part = AppendRank(nil, d.Rank())
			case 5:
				part = AppendBytes(nil, d.Bytes())
			}
			if d.Err() != nil {
				if before.Err() != nil && d.Err() != before.Err() {
					t.Fatal("the first error did not stay")
				}
				continue
			}
			again = append(again, part...)
		}
		if !bytes.HasPrefix(body, again) {
			t.Fatalf("decoded %x from %x", again, body)
		}
	})
}
