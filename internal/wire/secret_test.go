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
			"hello": k.HelloCode(dialed), "answer": k.AnswerCode(dialed, answer), "proof": k.ProofCode(dialed, answer, []byte(request)),
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
	for _, c := range []Code{none.HelloCode(&dialed), none.AnswerCode(&dialed, &answer), none.ProofCode(&dialed, &answer, nil)} {
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
		"hello":  {key.HelloCode(&dialed), "73d48947b06bb36b6728f7e078d8f664a1abd4fa1080faba1d291797e074f04a"},
		"answer": {key.AnswerCode(&dialed, &answer), "a2bad7bd1fc1964727c8e4b6007d8ed3c242da9ce06dad87fb5d84d4fb1e3175"},
		"proof":  {key.ProofCode(&dialed, &answer, []byte("join")), "827a2dc95692d1a46afa9088745bed58298a4df12e7192f07861cdee879039ff"},
	} {
		if got := hex.EncodeToString(test.code[:]); got != test.want {
			t.Errorf("%s is %s, want %s", name, got, test.want)
		}
	}
}
