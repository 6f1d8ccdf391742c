package detect

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/protocol"
)

// SWIMConfig says who a member is and how it asks for the others. Rank and
// Incarnation have to be given; everything else is good as its zero value.
type SWIMConfig struct {
	// Rank and Incarnation are this member's, as in the view.
	Rank        protocol.Rank
	Incarnation uint64
	// Group is the group's name, at most 255 bytes. Members of different
	// groups ignore each other.
	Group string

	// Bind is the "host:port" to use, both of UDP and of TCP. "": any port of
	// any interface, see [SWIM.Address].
	Bind string
	// Advertise is the "host:port" at which others reach Bind. "": the same, or
	// the first private address of this host if Bind names none.
	Advertise string
	// Seeds are "host:port" of members to begin with, besides those watched.
	Seeds []string

	// Grace is how long a member may be silent without being suspected. It also
	// sets how often members ask each other: each asks one other every quarter
	// of it, which should be several round trips. A silent member is suspected
	// after one and a half to three times as long, and in groups of more than
	// ten by a factor of log10 of their size later. 0: 1 s. At least 100 ms.
	Grace time.Duration

	// Key, if not nil, encrypts and authenticates everything, with AES. It has
	// 16, 24 or 32 bytes, the same for all members. Without it, anybody who
	// reaches the port can make members suspect each other.
	Key []byte
}

// How SWIM is tuned, in parts and multiples of the grace.
const (
	defaultGrace = time.Second
	minGrace     = 100 * time.Millisecond
	// A suspect has four probe intervals to answer, or three times as many if
	// nobody confirms the suspicion (Lifeguard).
	probesPerGrace  = 4
	unconfirmedMult = 3
	// A member that goes on after a pause learns that it is suspected from
	// what was sent to it meanwhile, and has one probe interval to say
	// otherwise to all.
	gossipsPerProbe = 4
	// maxPing bounds how long Close waits for a ping.
	maxPing = 400 * time.Millisecond
	// streamTimeout is for the exchange of member lists.
	streamTimeout = 2 * time.Second
)

// list returns the config as memberlist wants it.
func (c *SWIMConfig) list() (*memberlist.Config, error) {
	switch {
	case c.Rank < 0:
		return nil, fmt.Errorf("rank %d: choose 0 or more", c.Rank)
	case c.Incarnation == 0:
		return nil, errors.New("incarnation 0: choose a number that is larger each time the process is started")
	case c.Grace != 0 && c.Grace < minGrace:
		return nil, fmt.Errorf("grace %v: choose at least %v", c.Grace, minGrace)
	}
	grace := c.Grace
	setDefault(&grace, defaultGrace)

	m := memberlist.DefaultLANConfig()
	m.Name = nodeName(c.Rank, c.Incarnation)
	m.Label = c.Group
	m.SecretKey = c.Key
	m.ProbeInterval = grace / probesPerGrace
	m.ProbeTimeout = min(m.ProbeInterval/2, maxPing)
	m.SuspicionMult = probesPerGrace
	m.SuspicionMaxTimeoutMult = unconfirmedMult
	m.GossipInterval = m.ProbeInterval / gossipsPerProbe
	m.TCPTimeout = streamTimeout
	// Its own resolver asks for more than an address, and takes long.
	m.DNSConfigPath = os.DevNull
	m.Logger = log.New(io.Discard, "", 0)
	return m, c.addresses(m)
}

// addresses sets where to listen, and what to tell others about it.
func (c *SWIMConfig) addresses(m *memberlist.Config) error {
	m.BindAddr, m.BindPort = "0.0.0.0", 0
	if c.Bind != "" {
		a, err := net.ResolveTCPAddr("tcp", c.Bind)
		if err != nil {
			return fmt.Errorf("bind address: %w", err)
		}
		if m.BindPort = a.Port; len(a.IP) != 0 && !a.IP.IsUnspecified() {
			m.BindAddr = a.IP.String()
		}
	}
	if c.Advertise != "" {
		a, err := net.ResolveUDPAddr("udp", c.Advertise)
		if err != nil {
			return fmt.Errorf("advertised address: %w", err)
		}
		m.AdvertiseAddr, m.AdvertisePort = a.IP.String(), a.Port
	}
	return nil
}

// bindAttempts is for finding a port that is free both for UDP and for TCP.
const bindAttempts = 10

// create opens the port and starts a list. The port is opened here because
// memberlist does not close it if it then finds fault with something else.
func create(m *memberlist.Config) (*memberlist.Memberlist, error) {
	bind := &memberlist.NetTransportConfig{BindAddrs: []string{m.BindAddr}, BindPort: m.BindPort, Logger: m.Logger}
	transport, err := memberlist.NewNetTransport(bind)
	for i := 1; err != nil && m.BindPort == 0 && i < bindAttempts; i++ {
		transport, err = memberlist.NewNetTransport(bind)
	}
	if err != nil {
		return nil, err
	}
	m.Transport = transport
	list, err := memberlist.Create(m)
	if err != nil {
		return nil, errors.Join(err, transport.Shutdown())
	}
	return list, nil
}
