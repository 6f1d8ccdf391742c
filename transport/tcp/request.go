package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Request asks the member at an address something, without being one: usually to
// become one. The request is at most [MaxRequest] bytes. It returns when the
// member's [transport.Doorkeeper] has answered, which may take it until
// [Config.KnockTimeout]. An error is a [*KnockError].
//
// Of the config, Group and TLS count, and the limits and timeouts. The member
// must be of this group, and under TLS both sides show a certificate of its CA.
func Request(ctx context.Context, cfg Config, address string, body []byte) ([]byte, error) {
	reply, err := request(ctx, cfg, address, body)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // The rest follows from that.
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
	dialer := net.Dialer{Timeout: cfg.DialTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := newHandshakeConn(ctx, &cfg, raw)
	defer s.close()
	if err := s.secure(ctx, cfg.TLS, address); err != nil {
		return nil, err
	}
	if err := s.clientHello(cfg.Group); err != nil {
		return nil, err
	}

	// The request only now: a member that does not want it would end the
	// connection with bytes unread, and its verdict might get lost by that.
	s.promoted = true
	_ = s.SetDeadline(time.Now().Add(cfg.RequestTimeout))
	if _, err := s.stream.Write(wire.AppendFrame(nil, body)); err != nil {
		return nil, err
	}
	s.in.SetLimit(cfg.MaxFrame)
	reply, err := s.in.Next()
	if errors.Is(err, io.EOF) {
		return nil, ErrUnanswered
	}
	return reply, err
}

// clientHello does the guest's side of the handshake.
func (s *handshakeConn) clientHello(group string) error {
	ours := wire.Hello{Group: group, From: protocol.NoRank, To: protocol.NoRank}
	if _, err := s.stream.Write(wire.AppendFrame(nil, wire.AppendHello(nil, &ours))); err != nil {
		return err
	}
	theirs, err := s.hello()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("hung up during the handshake, does one side use TLS and the other not? %w", err)
	}
	if err != nil {
		return err
	}
	if err := ours.Match(&theirs); err != nil {
		return err
	}
	if theirs.Status != wire.Accepted {
		return &RefusedError{theirs.Status}
	}
	return nil
}

// ErrUnanswered: the member has hung up without an answer. It has closed, or did
// not have one in time.
var ErrUnanswered = errors.New("no answer")

// RequestError is why a knock got no answer.
type RequestError struct {
	Address string
	// Err is the context's error, one of package net or crypto/tls, a
	// [*RefusedError], a [*wire.VersionError], [*wire.HelloError] or
	// [*wire.SizeError], or [ErrUnanswered].
	Err error
}

func (e *RequestError) Error() string { return fmt.Sprintf("tcp: knock at %s: %v", e.Address, e.Err) }

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }
