package wire

import (
	"bytes"
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

func someHello() Hello {
	return Hello{
		Version: Version, Group: "hedge", Size: 8, From: 3, To: 5, Incarnation: 77, Attempt: 2, Status: Stale,
		Nonce: [NonceSize]byte{1}, Code: Code{2}, Features: 3,
	}
}

func TestHelloRoundTrip(t *testing.T) {
	for _, h := range []Hello{
		someHello(),
		{Version: MinVersion, Size: 1, Features: 1},
		{Group: "open", From: 7, To: 9},
		{Group: "client", From: protocol.NoRank, To: protocol.NoRank},
		{Group: "answer", Size: 4, From: 3, To: protocol.NoRank, Status: Busy},
		{
			Group: strings.Repeat("x", MaxGroup), Size: 1<<32 - 1, From: 1<<32 - 2, To: 1<<32 - 2, Incarnation: 1<<64 - 1,
			Attempt: 1<<64 - 1,
		},
	} {
		body := AppendHello(nil, &h)
		if len(body) > MaxHelloFrame {
			t.Errorf("a hello of %d bytes is over the limit of a hello's frame", len(body))
		}
		got, err := DecodeHello(body)
		h.Version = cmp.Or(h.Version, Version)
		if err != nil || got != h {
			t.Errorf("got %+v, %v; want %+v", got, err, h)
		}
	}
}

func TestHelloOfAnotherVersion(t *testing.T) {
	// Only what precedes is the same in all versions.
	for theirs, answer := range map[byte]uint16{MinVersion - 1: MinVersion, 9: Version} {
		h, err := DecodeHello([]byte{0x91, 0xEA, 0xC4, 0x01, 0, theirs, 1, 2, 3})
		var version *VersionError
		if !errors.As(err, &version) || version.Theirs != uint16(theirs) || h.AnswerVersion() != answer {
			t.Errorf("got %v, and an answer in version %d", err, h.AnswerVersion())
		}
	}
	if Version-MinVersion != 1 {
		t.Error("a group lets processes join that speak its version and a neighbor of it")
	}
	for version := uint16(MinVersion); version <= Version; version++ {
		if h := (&Hello{Version: version}); !Speaks(version) || h.AnswerVersion() != version {
			t.Errorf("version %d is answered in %d", version, h.AnswerVersion())
		}
	}
}

func TestMalformedHello(t *testing.T) {
	h := someHello()
	good := AppendHello(nil, &h)
	change := func(f func(*Hello)) []byte {
		h := someHello()
		f(&h)
		return AppendHello(nil, &h)
	}
	for _, tt := range []struct {
		field string
		body  []byte
	}{
		{"magic", nil},
		{"magic", []byte("GET / HTTP/1.1\r\n")},
		{"length", good[:4]},
		{"length", good[:len(good)-1]},
		{"length", append(bytes.Clone(good), 0)},
		{"rank", change(func(h *Hello) { h.From = 8 })},
		{"status", change(func(h *Hello) { h.Status = statuses })},
	} {
		_, err := DecodeHello(tt.body)
		var hello *HelloError
		if !errors.As(err, &hello) || hello.Field != tt.field {
			t.Errorf("%x: got %v, want an error about the %s", tt.body, err, tt.field)
		}
	}
	for i := range good {
		if _, err := DecodeHello(good[:i]); err == nil {
			t.Errorf("the first %d bytes of a hello are taken for one", i)
		}
	}
}

func TestMatch(t *testing.T) {
	ours := someHello()
	for _, tt := range []struct {
		field  string
		change func(*Hello)
	}{
		{"", func(*Hello) {}},
		{"", func(h *Hello) { h.Incarnation, h.Attempt, h.Status = 0, 0, 0 }},
		{"group", func(h *Hello) { h.Group = "edge" }},
		{"size", func(h *Hello) { h.Size++ }},
		{"size", func(h *Hello) { h.Size = 0 }},
		{"rank", func(h *Hello) { h.From = protocol.NoRank }}, // dialed, and a client answers
		{"wanted rank", func(h *Hello) { h.To = protocol.NoRank }},
		{"wanted rank", func(h *Hello) { h.To++ }},
		{"rank", func(h *Hello) { h.From++ }},
	} {
		theirs := ours
		theirs.From, theirs.To = ours.To, ours.From
		tt.change(&theirs)
		err := ours.Match(&theirs)
		var hello *HelloError
		switch {
		case tt.field == "" && err != nil:
			t.Errorf("%+v does not match: %v", theirs, err)
		case tt.field != "" && (!errors.As(err, &hello) || hello.Field != tt.field):
			t.Errorf("%+v: got %v, want an error about the %s", theirs, err, tt.field)
		}
	}
}

func TestInvalidHello(t *testing.T) {
	for field, h := range map[string]Hello{
		"rank":        {From: -2},
		"wanted rank": {To: -2},
		"group":       {Group: strings.Repeat("x", MaxGroup+1)},
	} {
		var hello *HelloError
		if err := h.Validate(); !errors.As(err, &hello) || hello.Field != field {
			t.Errorf("got %v, want an error about the %s", err, field)
		}
	}
	for _, h := range []Hello{{From: 1<<32 - 1}, {To: 1<<32 - 1}} {
		if h.Validate() == nil {
			t.Errorf("%+v has the number that stands for no rank", h)
		}
	}
}

// A client and a member need only be of one group.
func TestClientsMatch(t *testing.T) {
	client := Hello{Group: "hedge", From: protocol.NoRank, To: protocol.NoRank}
	for _, size := range []uint32{0, 8} {
		member := Hello{Group: "hedge", Size: size, From: 3, To: protocol.NoRank}
		if err := member.Match(&client); err != nil {
			t.Error(err)
		}
		if err := client.Match(&member); err != nil {
			t.Error(err)
		}
		member.Group = "edge"
		if member.Match(&client) == nil || client.Match(&member) == nil {
			t.Error("groups differ, and match")
		}
	}
	elsewhere := Hello{Group: "hedge", From: 3, To: 4}
	if client.Match(&elsewhere) == nil {
		t.Error("an answer to a member matches a client")
	}
}

func FuzzDecodeHello(f *testing.F) {
	h := someHello()
	f.Add(AppendHello(nil, &h))
	f.Add(AppendHello(nil, &Hello{Version: MinVersion, Size: 1}))
	f.Add(AppendHello(nil, &Hello{From: 1 << 20, To: 3}))
	f.Add(AppendHello(nil, &Hello{Group: "hedge", From: protocol.NoRank, To: protocol.NoRank}))
	f.Add([]byte{0x91, 0xEA, 0xC4, 0x01, 0, 2})
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := DecodeHello(body)
		if err == nil {
			// What is accepted has one encoding only.
			if again := AppendHello(nil, &h); !bytes.Equal(again, body) {
				t.Fatalf("%x decodes to %+v, which encodes to %x", body, h, again)
			}
			return
		}
		var version *VersionError
		var hello *HelloError
		if !errors.As(err, &version) && !errors.As(err, &hello) {
			t.Fatalf("untyped error %T: %v", err, err)
		}
	})
}
