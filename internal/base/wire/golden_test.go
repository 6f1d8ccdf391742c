package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// goldenHellos is every verdict, and every sort of sender, by names that belong to
// the protocol and not to the code: code may be renamed, frames may not change.
func goldenHellos(version uint16) map[string]Hello {
	member := func(v Status) Hello {
		return Hello{Group: "hedge", Size: 8, From: 3, To: 5, Incarnation: 77, Attempt: 2, Status: v}
	}
	hellos := map[string]Hello{
		"hello zero":        {},
		"hello accepted":    member(Accepted),
		"hello refused":     member(Refused),
		"hello stale":       member(Stale),
		"hello duplicate":   member(Duplicate),
		"hello unsupported": member(Unsupported),
		"hello busy":        member(Busy),
		"hello secret":      member(WrongSecret),
		"hello certificate": member(WrongCertificate),
		"hello taken":       member(Taken),
		"hello early":       member(Early),
		"hello other group": member(OtherGroup),
		"hello other rank":  member(OtherRank),
		"hello removed": {
			Group: "hedge", From: 7, To: 9, Incarnation: 3, Process: 4, Status: Removed,
			Removal: Removal{View: 12},
		},
		"hello replaced": {
			Group: "hedge", From: 7, To: 9, Incarnation: 3, Process: 4, Status: Removed,
			Removal: Removal{12, "hedge-9", "10.0.0.9:7000", 11},
		},
		"hello open group": {Group: "open", From: 7, To: 9, Incarnation: 1, Attempt: 1},
		"hello client":     {Group: "hedge", From: protocol.NoRank, To: protocol.NoRank},
		"hello large": {
			Group: strings.Repeat("g", MaxGroup), Size: math.MaxUint32, From: maxRank, To: maxRank,
			Incarnation: math.MaxUint64, Attempt: math.MaxUint64, Features: math.MaxUint32,
		},
	}
	for name, h := range hellos {
		h.Version = version
		hellos[name] = h
	}
	return hellos
}

// Each version that this build speaks has a file.
func TestGoldenFrames(t *testing.T) {
	for version := uint16(MinVersion); version <= Version; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) { testGoldenFrames(t, version) })
	}
}

func testGoldenFrames(t *testing.T, version uint16) {
	payloads := map[string][]byte{
		"frame empty":  {},
		"frame short":  []byte("pleach"),
		"frame longer": bytes.Repeat([]byte{0xab}, 300),
	}
	encoded := map[string][]byte{"fields": goldenFields()}
	for name, payload := range payloads {
		encoded[name] = AppendFrame(nil, payload)
	}
	for _, size := range []int{0, MaxHelloFrame, LongFrame, MaxFrame, math.MaxUint32} {
		header := Header(size)
		encoded["length of "+strconv.Itoa(size)] = header[:]
	}
	for name, h := range goldenHellos(version) {
		encoded[name] = AppendHello(nil, &h)
	}
	recorded := testutil.Golden(t, fmt.Sprintf("testdata/frames-%d.golden", version), encoded)

	for name, want := range payloads {
		if got, err := NewReader(bytes.NewReader(recorded[name]), MaxFrame).Next(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v, want %x", name, got, err, want)
		}
	}
	seen := make(map[Status]bool)
	for name, want := range goldenHellos(version) {
		got, err := DecodeHello(recorded[name])
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
		seen[got.Status] = true
	}
	for v := range Status(statuses) {
		if !seen[v] {
			t.Errorf("no hello is recorded that says %v", v)
		}
	}
	checkGoldenFields(t, recorded["fields"])
}

// goldenFields is one of each field that frames are made of.
func goldenFields() []byte {
	b := AppendUint64(AppendUint32(AppendUint16(AppendUint8(nil, 0x12), 0x1234), 0x12345678), 0x123456789abcdef0)
	b = AppendRank(AppendRank(AppendRank(b, protocol.NoRank), 0), 1<<31)
	return append(AppendBytes(AppendBytes(b, nil), []byte("pleach")), "rest"...)
}

func checkGoldenFields(t *testing.T, b []byte) {
	d := NewDecoder(b)
	if d.Uint8() != 0x12 || d.Uint16() != 0x1234 || d.Uint32() != 0x12345678 || d.Uint64() != 0x123456789abcdef0 {
		t.Error("integers differ")
	}
	if d.Rank() != protocol.NoRank || d.Rank() != 0 || d.Rank() != 1<<31 {
		t.Error("ranks differ")
	}
	if len(d.Bytes()) != 0 || string(d.Bytes()) != "pleach" || string(d.Rest()) != "rest" {
		t.Error("bytes differ")
	}
	if err := d.Finish(); err != nil {
		t.Error(err)
	}
}
