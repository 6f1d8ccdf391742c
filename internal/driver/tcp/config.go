package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// MaxRanks is the largest number of ranks of an open group.
const MaxRanks = 1 << 20

// Config configures a [Transport]. Group, Rank and Addresses (or, in an open group,
// Listener) are required; every other field has a default.
type Config struct {
	// Group is the name of the group, at most 255 bytes. Members of different
	// groups refuse each other.
	Group string
	// Rank is the rank of this member.
	Rank protocol.Rank
	// Addresses has the "host:port" of every rank, or "" if it is not known.
	Addresses []string
	// Open means that members come and go. Then there may be [MaxRanks] ranks,
	// Addresses are those known at the start, possibly none, and
	// [Transport.SetPeer] adds others. A process that proves that it is of the
	// group may connect as any rank, because it may learn its rank before this
	// member does. Of the connections as ranks that have no address yet, the 128
	// newest are kept. All members must have the same value.
	Open bool
	// Incarnation tells the processes that have this rank one after another apart: it
	// grows with each. If zero, the time of the start in nanoseconds, or what the first
	// [Transport.SetView] says.
	Incarnation uint64
	// Nonce is a random number that tells this process from others with its rank and
	// incarnation. If zero, New draws one.
	Nonce uint64
	// Listener accepts the connections of peers. Close closes it. If nil, New
	// listens on Addresses[Rank].
	Listener net.Listener
	// Candidate, if not nil, is the candidate that becomes this member. Its listener
	// and its connections are the transport's from then on.
	Candidate *Candidate

	// TLS has this member's certificate and the group's CA, as RootCAs or
	// ClientCAs or both. Both sides then show a certificate of that CA, with TLS
	// 1.3. Members dial by address, so certificates must name the hosts of Addresses,
	// unless ServerName is set and all certificates have it, or Verify decides. If
	// GetConfigForClient is set, it returns the config of every new connection, also
	// of those that this member dials, for which only Conn of its argument is set. So
	// certificates and authorities can change. If nil, connections are plain TCP.
	TLS *tls.Config
	// Verify, if not nil, returns an error if the other side of a connection must not
	// be what it claims to be. It replaces the check of the host's name. Without it,
	// every process with a certificate may claim any rank. It must not block.
	Verify func(Claim) error
	// Secret is known to the processes of the group only. Each proves in the handshake
	// that it knows it, without sending it: a process without it is refused. It
	// neither encrypts frames nor protects them from a process that controls the
	// network between two members. All members must have the same. If empty, none.
	Secret []byte
	// Secrets, if not nil, returns the secrets that count for a new connection, and replaces
	// Secret. This process proves the first, and accepts a proof of each, so that members can
	// replace a secret one after the other. It must not block.
	Secrets func() [][]byte

	// MaxFrame is the largest frame sent or received. Send returns an error for a
	// larger one; a peer that sends one is disconnected. If zero, 1 MiB + 4 KiB.
	MaxFrame int
	// QueueBytes bounds the bytes that wait for one peer. Beyond it, Send returns
	// [transport.ErrFull]. If zero, 1 MiB, or one frame of MaxFrame if that is
	// more.
	QueueBytes int
	// SharedBytes bounds the memory that this member shares with members on its host. Two
	// of them that run as one user, on Linux, exchange frames through it when they have
	// many, with or without TLS: it is a connection that has proved who they are, and
	// only this user and root can look into the memory. Each of its connections takes a
	// quarter of what is left, from 132 KiB to 8 MiB, and beyond the limit sockets are
	// used. If zero, no memory is shared.
	SharedBytes int
	// DialTimeout bounds the time to open a connection. If zero, 2 s.
	DialTimeout time.Duration
	// Dial opens connections, as that of a proxy does. If nil, a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HandshakeTimeout bounds the time of a handshake. If zero, 5 s.
	HandshakeTimeout time.Duration
	// RequestTimeout bounds how long a client waits for a reply, see [Request], and
	// how long a member lets it wait. If zero, 60 s.
	RequestTimeout time.Duration
	// BackoffMin and BackoffMax bound the time after a lost connection or a failed
	// dial in which a peer is not dialed again. It doubles with each consecutive
	// failure, less a random part of up to a half, so that members do not dial all
	// at once. If zero, 10 ms and 1 s.
	BackoffMin, BackoffMax time.Duration
	// UserTimeout is how long a peer's host may be silent, or acknowledge nothing,
	// before the connection is lost (TCP_USER_TIMEOUT and keep-alive). A handler
	// that blocks for longer loses the connections to its peers. The system rounds
	// it to seconds. If zero, 10 s.
	UserTimeout time.Duration
	// IdleTimeout is how long a connection is open at least without a frame. In a group
	// with views, a member closes idle connections beyond six, in agreement with the
	// peer, and opens one again when it sends. If zero, 1 min.
	IdleTimeout time.Duration

	// Logger gets what an operator may want to know. If nil, nothing is logged.
	Logger *slog.Logger

	shareInside bool // Also with members in this process.
}

// ranks returns the number of possible ranks.
func (c *Config) ranks() int {
	if c.Open {
		return MaxRanks
	}
	return len(c.Addresses)
}

// checkRank checks Rank, Addresses and Listener, which a client does not have.
func (c *Config) checkRank() error {
	size := len(c.Addresses)
	switch {
	case c.Open && size > MaxRanks:
		return fmt.Errorf("%d addresses, choose at most %d", size, MaxRanks)
	case !c.Open && (size == 0 || uint64(size) > math.MaxUint32):
		return fmt.Errorf("%d addresses, want one per rank", size)
	case c.Rank < 0 || c.Rank >= protocol.Rank(c.ranks()):
		return fmt.Errorf("rank %d: not in a group of %d, choose 0 to %d", c.Rank, c.ranks(), c.ranks()-1)
	case c.Listener == nil && (c.Rank >= protocol.Rank(size) || c.Addresses[c.Rank] == ""):
		return fmt.Errorf("rank %d has neither Listener nor address", c.Rank)
	}
	return nil
}

// complete returns the config with defaults filled in.
func (c Config) complete() (Config, error) {
	if len(c.Group) > wire.MaxGroup {
		return c, fmt.Errorf("group name of %d bytes, choose one of at most %d", len(c.Group), wire.MaxGroup)
	}
	if c.Incarnation == 0 {
		c.Incarnation = uint64(time.Now().UnixNano())
	}
	if c.Nonce == 0 {
		c.Nonce = rand.Uint64() | 1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.DialTimeout, 2*time.Second)
	setDefault(&c.HandshakeTimeout, 5*time.Second)
	setDefault(&c.RequestTimeout, time.Minute)
	setDefault(&c.BackoffMin, 10*time.Millisecond)
	setDefault(&c.BackoffMax, time.Second)
	setDefault(&c.UserTimeout, 10*time.Second)
	setDefault(&c.IdleTimeout, time.Minute)
	setDefault(&c.MaxFrame, wire.MaxFrame)
	setDefault(&c.QueueBytes, max(1<<20, wire.HeaderSize+c.MaxFrame))
	if err := c.checkLimits(); err != nil {
		return c, err
	}
	var err error
	c.TLS, err = mutual(c.TLS)
	return c, err
}

// keys returns the keys of a new connection, this process's own first. Without a secret it is
// the nil key.
func (c *Config) keys() []*wire.Key {
	if c.Secrets == nil {
		return []*wire.Key{wire.NewKey(c.Secret, c.Group)}
	}
	var keys []*wire.Key
	for _, secret := range c.Secrets() {
		keys = append(keys, wire.NewKey(secret, c.Group))
	}
	if len(keys) == 0 {
		keys = append(keys, nil)
	}
	return keys
}

func setDefault[T int | time.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

func (c *Config) checkLimits() error {
	switch {
	case c.MaxFrame < 0 || int64(c.MaxFrame) > math.MaxInt32:
		return fmt.Errorf("MaxFrame %d: choose 1 to %d", c.MaxFrame, math.MaxInt32)
	case c.QueueBytes < wire.HeaderSize+c.MaxFrame:
		return fmt.Errorf("QueueBytes %d: a frame of MaxFrame must fit, choose at least %d", c.QueueBytes,
			wire.HeaderSize+c.MaxFrame)
	case c.SharedBytes < 0:
		return fmt.Errorf("SharedBytes %d is negative", c.SharedBytes)
	case min(c.DialTimeout, c.HandshakeTimeout, c.RequestTimeout, c.BackoffMin, c.UserTimeout, c.IdleTimeout) < 0:
		return errors.New("a timeout is negative")
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("BackoffMax %v is below BackoffMin %v", c.BackoffMax, c.BackoffMin)
	}
	return nil
}
