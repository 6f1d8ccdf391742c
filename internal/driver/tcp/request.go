package tcp

// A process that is not a member can send one request to a member, usually to join.
// This file is the client; client.go is the member that replies.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Request sends a request of at most [MaxRequest] bytes to the member at an address
// and returns its reply. The caller need not be a member. The
// [transport.RequestHandler] of the member has [Config.RequestTimeout] to reply. An
// error is a [*RequestError].
//
// Request uses Group, TLS, Verify, Secret, the limits and the timeouts of the config.
// The member must be of this group, and speak a protocol version that this build speaks
// too. With TLS, both sides show a certificate of the
// group's CA.
func Request(ctx context.Context, cfg Config, address string, body []byte) ([]byte, error) {
	reply, err := request(ctx, cfg, address, body)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // Any other error follows from that.
		}
		return nil, &RequestError{Address: address, Err: err}
	}
	return reply, nil
}

func request(ctx context.Context, cfg Config, address string, body []byte) ([]byte, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if len(body) > MaxRequest {
		return nil, &wire.SizeError{Size: int64(len(body)), Limit: MaxRequest}
	}
	reply, err := requestIn(ctx, &cfg, wire.Newest(), address, body)
	var other *wire.VersionError
	if errors.As(err, &other) && wire.Speaks(other.Theirs) {
		return requestIn(ctx, &cfg, other.Theirs, address, body)
	}
	return reply, err
}

// requestIn sends a request in one protocol version.
func requestIn(ctx context.Context, cfg *Config, version uint16, address string, body []byte) ([]byte, error) {
	raw, err := cfg.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	s := newHandshakeConn(ctx, cfg, raw)
	defer s.close()
	if err := s.secure(ctx, cfg, &Claim{Rank: protocol.NoRank, Address: address}); err != nil {
		return nil, err
	}
	if err := s.clientHello(cfg.Group, version); err != nil {
		return nil, err
	}

	// The request follows the handshake: a member that refuses would close the
	// connection with bytes unread, and its answer might get lost by that.
	s.promoted = true
	_ = s.SetDeadline(time.Now().Add(cfg.RequestTimeout))
	if _, err := s.stream.Write(wire.AppendFrame(s.proof(body), body)); err != nil {
		return nil, err
	}
	s.in.SetLimit(cfg.MaxFrame)
	reply, err := s.in.Next()
	if errors.Is(err, io.EOF) {
		return nil, ErrUnanswered
	}
	return reply, err
}

// clientHello does the client's side of the handshake.
func (s *handshakeConn) clientHello(group string, version uint16) error {
	ours := wire.Hello{Version: version, Group: group, From: protocol.NoRank, To: protocol.NoRank}
	if _, err := s.stream.Write(s.dialHello(ours)); err != nil {
		return err
	}
	theirs, err := s.readAnswer()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("disconnected during the handshake, does only one side use TLS? %w", err)
	}
	if err != nil {
		return err
	}
	if err := ours.Match(&theirs); err != nil {
		return err
	}
	if theirs.Status != wire.Accepted {
		return refused(theirs.Status)
	}
	s.answer = theirs
	return s.checkAnswer()
}
