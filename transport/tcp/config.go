package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/pleach-go/pleach/internal/wire"
	"github.com/pleach-go/pleach/protocol"
)

// MaxRanks is how many ranks an open group can have.
const MaxRanks = 1 << 20

// Config says who a member is, and how it talks to the others. Group, Rank and
// Addresses (or, in an open group, Listener) have to be given; everything else is
// good as its zero value.
type Config struct {
	// Group is the group's name, at most 255 bytes. Members of different
	// groups refuse each other.
	Group string
	// Rank is this member's.
	Rank protocol.Rank
	// Addresses has the "host:port" of every rank. "" is one that is not known.
	Addresses []string
	// Open says that members come and go: there may be ranks up to [MaxRanks],
	// and Addresses are those known at the start, possibly none;
	// [Transport.SetPeer] tells of others. Who shows that it is of the group may
	// connect as any rank, because it may know of its rank before we do.
	// All members must agree on this.
	Open bool
	// Incarnation must be larger each time this member's process is started
	// anew. 0: the time at the start, in nanoseconds.
	Incarnation uint64
	// Listener is where peers connect. It is closed by Close. nil: one at
	// Addresses[Rank], which must be known then.
	Listener net.Listener

	// TLS, if not nil, has this member's certificate and the group's CA, as
	// RootCAs or ClientCAs or both. Each side then has to show a certificate of
	// that CA, under TLS 1.3. Any such member may claim any rank: the CA must be
	// the group's own. Members dial by address, so certificates must name the
	// hosts of Addresses, unless ServerName is set and in all of them.
	TLS *tls.Config

	// MaxFrame is the largest frame sent or received. 0: [wire.MaxFrame].
	MaxFrame int
	// QueueBytes is how much may wait for one peer. 0: 1 MiB, or what one
	// frame of MaxFrame needs if that is more.
	QueueBytes int
	// DialTimeout is for opening a connection. 0: 2 s.
	DialTimeout time.Duration
	// HandshakeTimeout is how long the other side may take to say who it is.
	// 0: 5 s.
	HandshakeTimeout time.Duration
	// RequestTimeout is how long a guest waits for an answer, see [Knock], and how
	// long a member lets it. 0: 60 s.
	RequestTimeout time.Duration
	// BackoffMin and BackoffMax bound the time after a loss or a failure in
	// which a peer is not dialed again. It doubles with each failure in a row,
	// and a random part of up to a half is taken off so that members do not dial
	// all at once. 0: 10 ms and 1 s.
	BackoffMin, BackoffMax time.Duration
	// UserTimeout is how long a peer's host may be silent, or take nothing of
	// what was sent, before it is taken for dead. A handler that blocks for
	// longer than that makes its peers think so. It is a whole number of
	// seconds to the system. 0: 10 s.
	UserTimeout time.Duration

	// Logger gets what an operator may want to know. nil: nobody does.
	Logger *slog.Logger
}

// ranks returns how many there may be.
func (c *Config) ranks() int {
	if c.Open {
		return MaxRanks
	}
	return len(c.Addresses)
}

// checkRank reports what is wrong with the place among the others, which a
// guest does not have.
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
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	setDefault(&c.DialTimeout, 2*time.Second)
	setDefault(&c.HandshakeTimeout, 5*time.Second)
	setDefault(&c.RequestTimeout, time.Minute)
	setDefault(&c.BackoffMin, 10*time.Millisecond)
	setDefault(&c.BackoffMax, time.Second)
	setDefault(&c.UserTimeout, 10*time.Second)
	setDefault(&c.MaxFrame, wire.MaxFrame)
	setDefault(&c.QueueBytes, max(1<<20, wire.HeaderSize+c.MaxFrame))
	if err := c.checkLimits(); err != nil {
		return c, err
	}
	var err error
	c.TLS, err = mutual(c.TLS)
	return c, err
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
		return fmt.Errorf("QueueBytes %d: a frame of MaxFrame must fit, choose at least %d", c.QueueBytes, wire.HeaderSize+c.MaxFrame)
	case c.DialTimeout < 0 || c.HandshakeTimeout < 0 || c.RequestTimeout < 0 || c.BackoffMin < 0 || c.UserTimeout < 0:
		return errors.New("a timeout is negative")
	case c.BackoffMax < c.BackoffMin:
		return fmt.Errorf("BackoffMax %v is below BackoffMin %v", c.BackoffMax, c.BackoffMin)
	}
	return nil
}

// mutual makes both sides show a certificate, and refuses what would let in
// somebody without.
func mutual(c *tls.Config) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	c = c.Clone()
	if c.RootCAs == nil {
		c.RootCAs = c.ClientCAs
	}
	if c.ClientCAs == nil {
		c.ClientCAs = c.RootCAs
	}
	switch {
	case c.RootCAs == nil:
		// The system's roots would let in half of the internet.
		return nil, errors.New("TLS: no CA, set RootCAs to the group's")
	case c.InsecureSkipVerify || c.GetConfigForClient != nil:
		return nil, errors.New("TLS: InsecureSkipVerify and GetConfigForClient could let in strangers, leave them unset")
	}
	c.MinVersion = tls.VersionTLS13
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}
