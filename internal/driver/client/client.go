// Package client talks to the processes of a group outside a view: it sends requests, and
// decides which processes may ask, and which are believed.
package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/base/logsuppress"
	"github.com/pleach-go/pleach/internal/driver/admission"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/transport"
)

// Refusals, as all processes know them.
var (
	// ErrRefused is wrapped by the error of a request that a member refuses for good.
	ErrRefused = errors.New("pleach: refused")
	// ErrUnreachable means that a member could not reach a candidate at its address.
	ErrUnreachable = errors.New("pleach: the member cannot reach the candidate at its address")
	// ErrNotYet is a refusal for now.
	ErrNotYet = errors.New("not accepted yet")
	// ErrNotAMember is the refusal of a process whose membership has ended.
	ErrNotAMember = errors.New("this process is no longer a member")
)

// Client is a process that has no rank. Its fields do not change.
type Client struct {
	Group string
	TLS   *tls.Config // nil: none
	// HostCertificates accepts certificates without a Pleach URI even if this process's own
	// certificate has one.
	HostCertificates bool
	// Secrets returns the group's secrets: this process proves the first, and accepts all. If
	// nil, there is none.
	Secrets func() [][]byte
	Deny    *admission.Deny // nil: nothing is denied
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Logger  *slog.Logger // nil: nothing is logged
	// Verify returns an error if the other side of a connection must not be a process of the
	// group. It is nil without TLS.
	Verify func(tcp.Claim) error
	// Explain returns the error of a reply as programs know it.
	Explain func(error) error
	// OnOperator, if not nil, is called with what operators ask of this process.
	OnOperator func(Action)
}

// Action is what an operator has asked of a process.
type Action struct {
	Name, What  string
	From        string   // the address of the operator
	Certificate []string // what its certificate is valid for; without TLS empty
	Err         error    // why it was refused; nil: it is carried out
}

// Operated records what an operator has asked of this process: in the log if it had the right to,
// which bounds the lines, and by OnOperator in any case.
func (c *Client) Operated(from transport.Client, name, what string, err error) {
	a := Action{Name: name, What: what, From: from.Address, Err: err}
	if len(from.Certificates) > 0 {
		a.Certificate = admission.NamesOf(from.Certificates[0])
	}
	if c.Logger != nil && !errors.Is(err, admission.ErrRight) && !errors.Is(err, admission.ErrRevoked) {
		c.Logger.Warn("an operator acts on the group", "group", c.Group, "action", name, "what", what, "from", a.From,
			"certificate", a.Certificate, "error", err)
	}
	if c.OnOperator != nil {
		c.OnOperator(a)
	}
}

// Config returns the config of connections; listener may be nil.
func (c *Client) Config(listener net.Listener) tcp.Config {
	return tcp.Config{
		Group: c.Group, TLS: c.TLS, Secrets: c.Secrets, Dial: c.Dial, Logger: c.Logger, Listener: listener,
		Verify: c.Verify,
	}
}

// Open returns the body of a reply, or the error that it is, as programs know it.
func (c *Client) Open(reply []byte) ([]byte, error) {
	body, err := control.Open(reply)
	var refusal *control.Refusal
	if errors.As(err, &refusal) {
		kind := map[control.Status]error{
			control.Refused: ErrRefused, control.Retry: ErrNotYet,
			control.Unreachable: ErrUnreachable,
		}[refusal.Status]
		return nil, fmt.Errorf("%w: %s", kind, refusal.Text)
	}
	if err != nil {
		return nil, c.Explain(err)
	}
	return body, nil
}

// Ask sends a request to the process at an address, and returns the body of its reply.
func (c *Client) Ask(ctx context.Context, address string, request control.Request) ([]byte, error) {
	b, err := tcp.Request(ctx, c.Config(nil), address, control.Encode(request))
	if err != nil {
		return nil, err
	}
	return c.Open(b)
}

// AskKnown sends a request, and returns the reply with the certificates of the process that
// it comes from.
func (c *Client) AskKnown(ctx context.Context, address string,
	request control.Request,
) (reply []byte, from []*x509.Certificate, err error) {
	t := c.Config(nil)
	if c.Verify != nil {
		t.Verify = func(claim tcp.Claim) error {
			from = claim.Certificates
			return c.Verify(claim)
		}
	}
	reply, err = tcp.Request(ctx, t, address, control.Encode(request))
	return reply, from, err
}

// View asks a member for its view.
func (c *Client) View(ctx context.Context, address string) (membership.View, error) {
	b, err := c.Ask(ctx, address, control.View{})
	if err != nil {
		return membership.View{}, err
	}
	r, err := control.DecodeView(b)
	return r.View, err
}

// Introduction asks the process at an address to introduce itself.
func (c *Client) Introduction(ctx context.Context, address string, q *control.Question) (*control.Introduction, error) {
	b, err := c.Ask(ctx, address, control.Introduce{Question: *q})
	if err != nil {
		return nil, err
	}
	return control.DecodeIntroduction(b)
}

// Retry asks with exponential backoff, until the process accepts or refuses the request, no
// attempt can succeed any more, or ctx ends. It logs why it tries again, once for each cause.
func (c *Client) Retry(ctx context.Context, address string, request control.Request) ([]byte, error) {
	var last error
	var causes logsuppress.Causes
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		reply, err := c.Ask(ctx, address, request)
		switch {
		case err == nil || errors.Is(err, ErrRefused):
			return reply, err
		case ctx.Err() != nil && last == nil:
			return nil, ctx.Err()
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w; last: %w", ctx.Err(), last)
		case Permanent(err):
			return nil, err
		}
		last = err
		if _, changed := causes.Changed(address, err); changed && c.Logger != nil {
			c.Logger.Info("request is retried", "group", c.Group, "member", address, "cause", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Permanent reports whether a request that failed would fail again: the member
// refuses it for good, is of another group, version or authority, or the settings are
// wrong. What the network reports may pass, and so may a member that is busy or ends.
func Permanent(err error) bool {
	var failed *net.OpError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.Is(err, ErrRefused), errors.As(err, new(*net.AddrError)):
		return true
	case errors.As(err, &failed) && failed.Op == "remote error": // crypto/tls: the member refuses the certificate
		return true
	case errors.Is(err, ErrNotYet), errors.As(err, new(*control.Restarted)), errors.Is(err, ErrUnreachable),
		errors.Is(err, tcp.ErrBusy), errors.Is(err, tcp.ErrUnanswered),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return false
	}
	return !errors.As(err, new(net.Error))
}

// Refuse returns a reply that says why a request is refused.
func Refuse(err error) []byte {
	if errors.Is(err, ErrUnreachable) {
		err = &control.Refusal{Status: control.Unreachable, Text: err.Error()}
	}
	return control.Refuse(err)
}

// Accepted returns the reply to a request that is done, or was refused.
func Accepted(err error) []byte {
	if err != nil {
		return Refuse(err)
	}
	return control.Accept(nil)
}
