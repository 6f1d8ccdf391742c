package pleach

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/tcp"
)

// Config says who is in a group and how it communicates. The zero value is a
// good one for a program started by a launcher (pleach run, Slurm, mpirun,
// torchrun, a Kubernetes Indexed Job): who is who is then read from the
// environment.
type Config struct {
	// Group names the group: members of different groups do not talk. Empty:
	// what the launcher calls it.
	Group string
	// Addresses are the members' addresses, host:port, by rank; Rank is this
	// process's place among them. Without addresses, both come from the
	// environment.
	Addresses []string
	Rank      int
	// TLS, if not nil, protects every connection: TLS 1.3, and both sides show a
	// certificate of the group's authority (Certificates, RootCAs, ClientCAs).
	TLS *tls.Config
	// Transport, if not nil, is used instead of TCP, and closed with the group.
	// Stream.Rank and Stream.Size then say who this is.
	Transport transport.Transport
	// Handler, if not nil, is called with each message, instead of
	// [Group.Messages] yielding it: in the same order, one at a time, by the
	// goroutine that has received it. That is the quickest way to get a message;
	// a handler that takes its time holds up what this member receives.
	Handler func(Message)
	// Stream holds limits and the tree's shape. Rank, Size and Incarnation are
	// filled in, except as said above.
	Stream stream.Config
	// Logger is told of peers that come and go. Nil: silent.
	Logger *slog.Logger
}

// settle finds out who this process is, and makes its transport.
func (c *Config) settle() (transport.Transport, error) {
	if c.Stream.Incarnation == 0 {
		c.Stream.Incarnation = uint64(time.Now().UnixNano())
	}
	if c.Transport != nil {
		return c.Transport, nil
	}
	place := bootstrap.Place{Group: c.Group, Rank: protocol.Rank(c.Rank), Size: protocol.Rank(len(c.Addresses)), Addresses: c.Addresses}
	if len(c.Addresses) == 0 {
		var err error
		if place, err = bootstrap.Detect(os.Getenv); err != nil {
			return nil, err
		}
		if err := place.Check(); err != nil {
			return nil, err
		}
	}
	place.Group = cmp.Or(c.Group, place.Group)
	c.Stream.Rank, c.Stream.Size = place.Rank, place.Size
	listener, err := place.Listener()
	if err != nil {
		return nil, err
	}
	t, err := tcp.New(tcp.Config{
		Group: place.Group, Rank: place.Rank, Addresses: place.Addresses, Listener: listener,
		Incarnation: c.Stream.Incarnation, TLS: c.TLS, Logger: c.Logger,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("transport: %w", err), listener.Close())
	}
	return t, nil
}
