package tcp

// The handshake's codes, see wire.Key. The dialing side's proof goes out together with
// its first frames, so a secret costs no round trip: the accepting side uses the
// connection once the proof has arrived.

import (
	"crypto/rand"
	"errors"

	"github.com/pleach-go/pleach/internal/base/wire"
)

// dialHello makes a Hello the first of this connection, and returns its frame.
func (s *handshakeConn) dialHello(h wire.Hello) []byte {
	_, _ = rand.Read(h.Nonce[:])
	h.Code = s.key.HelloCode(&h)
	s.dialed = h
	return wire.AppendFrame(nil, wire.AppendHello(nil, &h))
}

// answerHello makes a Hello the answer to the other side's, and returns its frame.
// Only an answer that has consequences has a code: a process without the secret gets
// none.
func (s *handshakeConn) answerHello(h wire.Hello) []byte {
	_, _ = rand.Read(h.Nonce[:])
	h.Version = s.dialed.AnswerVersion()
	if h.Status == wire.Accepted || h.Status == wire.Removed {
		h.Code = s.key.AnswerCode(&s.dialed, &h)
	}
	s.answer = h
	return wire.AppendFrame(nil, wire.AppendHello(nil, &h))
}

// checkHello finds the key of the connection: that of the secret which the dialing side
// knows. It returns an error if that is none of this side's, or if only one side has one.
func (s *handshakeConn) checkHello() error {
	for _, key := range s.keys {
		if s.dialed.Code.Equal(key.HelloCode(&s.dialed)) {
			s.key = key
			return nil
		}
	}
	return refused(wire.WrongSecret)
}

// checkAnswer returns an error if the accepting side does not know the secret.
func (s *handshakeConn) checkAnswer() error {
	if !s.answer.Code.Equal(s.key.AnswerCode(&s.dialed, &s.answer)) {
		return ErrSecret
	}
	return nil
}

// proof returns the frame that ends the dialing side's part of the handshake. Without
// a secret there is none.
func (s *handshakeConn) proof(request []byte) []byte {
	if s.key == nil {
		return nil
	}
	code := s.key.ProofCode(&s.dialed, &s.answer, request)
	return wire.AppendFrame(nil, code[:])
}

// readProof reads the other side's proof.
func (s *handshakeConn) readProof() (code wire.Code, err error) {
	if s.key == nil {
		return code, nil
	}
	b, err := s.in.Next()
	if err == nil && len(b) != len(code) {
		err = errors.New("malformed proof of the secret")
	}
	copy(code[:], b)
	return code, err
}

// checkProof returns an error if a proof is not that of this connection.
func (s *handshakeConn) checkProof(code wire.Code, request []byte) error {
	if !code.Equal(s.key.ProofCode(&s.dialed, &s.answer, request)) {
		return ErrSecret
	}
	return nil
}
