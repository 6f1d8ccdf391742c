package wire

import (
	"encoding/hex"
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

func hellos() (dialed, answer Hello) {
	dialed = Hello{Group: "hedge", From: 3, To: 5, Incarnation: 77, Attempt: 2, Nonce: [NonceSize]byte{1}}
	answer = Hello{Group: "hedge", From: 5, To: 3, Incarnation: 78, Attempt: 9, Nonce: [NonceSize]byte{2}}
	return dialed, answer
}

// Every field, every label and the secret itself change each code.
func TestCodesCoverEverything(t *testing.T) {
	dialed, answer := hellos()
	key := NewKey([]byte("a secret"), "hedge")
	seen := map[Code]string{{}: "no code"}
	note := func(what string, k *Key, dialed, answer *Hello, request string) {
		for kind, c := range map[string]Code{
			"hello": k.HelloCode(dialed), "answer": k.AnswerCode(dialed, answer),
			"proof": k.ProofCode(dialed, answer, []byte(request)),
		} {
			if other, known := seen[c]; known {
				t.Errorf("%s of %s is the same as %s", kind, what, other)
			}
			seen[c] = kind + " of " + what
		}
	}
	note("the handshake", key, &dialed, &answer, "")
	note("another secret", NewKey([]byte("another"), "hedge"), &dialed, &answer, "")
	note("another group", NewKey([]byte("a secret"), "edge"), &dialed, &answer, "")
	note("another channel", key.Bind([]byte("channel")), &dialed, &answer, "")
	note("reflected", key, &answer, &dialed, "")
	for name, change := range map[string]func(*Hello){
		"group":       func(h *Hello) { h.Group = "edge" },
		"size":        func(h *Hello) { h.Size = 8 },
		"from":        func(h *Hello) { h.From = protocol.NoRank },
		"to":          func(h *Hello) { h.To++ },
		"incarnation": func(h *Hello) { h.Incarnation++ },
		"attempt":     func(h *Hello) { h.Attempt++ },
		"status":      func(h *Hello) { h.Status = Stale },
		"nonce":       func(h *Hello) { h.Nonce[NonceSize-1]++ },
	} {
		d, a := dialed, answer
		change(&d)
		change(&a)
		note("another "+name, key, &d, &a, "")
		if key.AnswerCode(&dialed, &a).Equal(key.AnswerCode(&dialed, &answer)) {
			t.Errorf("the answer's %s is not covered", name)
		}
	}
	if key.ProofCode(&dialed, &answer, []byte("join")).Equal(key.ProofCode(&dialed, &answer, nil)) {
		t.Error("the request is not covered")
	}
	answer.Code = Code{1}
	if c := key.AnswerCode(&dialed, &answer); seen[c] != "answer of the handshake" {
		t.Error("a code covers itself")
	}
}

func TestNoSecretMakesNoCode(t *testing.T) {
	dialed, answer := hellos()
	none := NewKey(nil, "hedge").Bind([]byte("channel"))
	for _, c := range []Code{
		none.HelloCode(&dialed), none.AnswerCode(&dialed, &answer),
		none.ProofCode(&dialed, &answer, nil),
	} {
		if c != (Code{}) {
			t.Errorf("%x", c)
		}
	}
}

// The codes are part of the protocol: another implementation must compute the same.
func TestGoldenCodes(t *testing.T) {
	dialed, answer := hellos()
	key := NewKey([]byte("a secret"), "hedge")
	for name, test := range map[string]struct {
		code Code
		want string
	}{
		"hello":  {key.HelloCode(&dialed), "078619013617a5316ebf3198980a4967823a6cf23ff73a038e3801d823b453b4"},
		"answer": {key.AnswerCode(&dialed, &answer), "66ee0aae055404659fed79a074951429cba6aa24c7060069ffb1bc66411e7f8a"},
		"proof": {
			key.ProofCode(&dialed, &answer, []byte("join")),
			"fddc71387687f55b3e3e854a25e4eb0387f9b01b2b38417f4a2e481168f01d77",
		},
	} {
		if got := hex.EncodeToString(test.code[:]); got != test.want {
			t.Errorf("%s is %s, want %s", name, got, test.want)
		}
	}
}
