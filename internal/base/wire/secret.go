package wire

// Two processes that share a secret prove it to each other in the handshake, by
// challenge and response (ISO/IEC 9798-4, mutual authentication in three passes). The
// challenges are the random nonces of the two Hellos. Three message authentication
// codes, each under a label of its own, cover everything that the sides say:
//
//	hello:  the dialing side's Hello, so that a process without the secret is refused
//	        before it has any effect;
//	answer: both Hellos, so that the dialing side knows that the answer is fresh;
//	proof:  both Hellos and a client's request, so that the accepting side knows that
//	        the first Hello is not a recorded one.
//
// The labels and the ranks in the Hellos keep a code from being reflected to its
// sender.

import (
	"crypto/hmac"
	"crypto/sha256"
)

// Sizes of the fields that authenticate a Hello, in bytes.
const (
	NonceSize = 16
	CodeSize  = sha256.Size
)

// Code is a message authentication code, HMAC-SHA256. The zero Code means that the
// sender has no secret.
type Code [CodeSize]byte

// Key makes and checks the codes of one connection. A nil Key stands for a process
// without a secret: its codes are zero.
type Key struct{ key []byte }

// NewKey returns the key that a group derives from its secret, or nil if the secret is
// empty.
func NewKey(secret []byte, group string) *Key {
	if len(secret) == 0 {
		return nil
	}
	return (&Key{secret}).derive("pleach group", []byte(group))
}

// Bind returns the key of a connection that a secure channel protects. The binding is
// a value that only the ends of that channel know, so that a process between two
// channels cannot pass codes on.
func (k *Key) Bind(binding []byte) *Key {
	if k == nil || len(binding) == 0 {
		return k
	}
	return k.derive("pleach channel", binding)
}

// HelloCode is the code of the dialing side's Hello.
func (k *Key) HelloCode(dialed *Hello) Code { return k.code("pleach hello", dialed) }

// AnswerCode is the code of the accepting side's Hello.
func (k *Key) AnswerCode(dialed, answer *Hello) Code { return k.code("pleach answer", dialed, answer) }

// ProofCode is what the dialing side sends after the other side's Hello. A client's
// request is covered too.
func (k *Key) ProofCode(dialed, answer *Hello, request []byte) Code {
	if k == nil {
		return Code{}
	}
	return k.derive("pleach proof", request).code("pleach proof", dialed, answer)
}

// Equal reports whether two codes are the same, in constant time.
func (c Code) Equal(other Code) bool { return hmac.Equal(c[:], other[:]) }

// code covers Hellos, without their own codes.
func (k *Key) code(label string, hellos ...*Hello) (c Code) {
	if k == nil {
		return c
	}
	var b []byte
	for _, h := range hellos {
		h := *h
		h.Code = Code{}
		b = AppendBytes(b, AppendHello(nil, &h))
	}
	return Code(k.derive(label, b).key)
}

// derive returns the key that belongs to a label and data.
func (k *Key) derive(label string, data []byte) *Key {
	mac := hmac.New(sha256.New, k.key)
	mac.Write(AppendBytes(nil, []byte(label)))
	mac.Write(data)
	return &Key{mac.Sum(nil)}
}
