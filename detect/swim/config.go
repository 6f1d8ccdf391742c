package swim

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/detect"
)

// Config configures a [Detector]. A member of a group usually sets Port and
// nothing else.
type Config struct {
	// Port is the UDP and TCP port of the detector, the same on every member's
	// host. It supplies Bind and PeerAddress where they are not set: the host
	// is that of the member's address.
	Port int
	// Bind is the "host:port" to listen on, with UDP and TCP. If empty, the host
	// of the member's address and Port; without Port, any free port of every
	// interface, see [Detector.Address].
	Bind string
	// Advertise is the "host:port" at which other members reach Bind. If empty,
	// Bind, or the first private address of this host if Bind has no host.
	Advertise string
	// PeerAddress returns the "host:port" of a peer's detector, or "" if it is
	// not known; the peer is then found through other peers and Seeds. If nil, the
	// host of the peer's address and Port.
	PeerAddress func(detect.Peer) string
	// Seeds are the "host:port" of detectors to contact first, besides those of
	// the peers.
	Seeds []string

	// SuspicionTimeout is how long a member may be silent without being
	// suspected. It also sets the probe interval: every member probes one other
	// each quarter of it, which should be several round trips. A silent member is
	// suspected after one and a half to three times SuspicionTimeout; in groups of
	// more than ten members, that grows by a factor of log10 of their number. If
	// zero, 1 s. The minimum is 100 ms.
	SuspicionTimeout time.Duration

	// Key encrypts and authenticates all traffic with AES. It has 16, 24 or 32
	// bytes, the same for all members. If nil, one that follows from the group's secret.
	// Without either the traffic is plain, and every process that reaches the port can
	// make members suspect each other.
	Key []byte
}

// The tuning of memberlist, relative to SuspicionTimeout.
const (
	defaultTimeout = time.Second
	minTimeout     = 100 * time.Millisecond
	// A suspect has four probe intervals to answer, or three times as many if
	// no other member confirms the suspicion (Lifeguard).
	probesPerTimeout = 4
	unconfirmedMult  = 3
	// A member that resumes after a pause learns from the messages sent to it
	// meanwhile that it is suspected. It has one probe interval to refute that.
	gossipsPerProbe = 4
	// maxPing bounds how long Close waits for a ping.
	maxPing = 400 * time.Millisecond
	// streamTimeout is for the exchange of member lists.
	streamTimeout = 2 * time.Second
)

// memberlist returns the config of memberlist for a member.
func (c *Config) memberlist(self *detect.Member) (*memberlist.Config, error) {
	switch {
	case self.Rank < 0:
		return nil, fmt.Errorf("rank %d: choose 0 or more", self.Rank)
	case self.Incarnation == 0:
		return nil, errors.New("incarnation 0: call SetMember before Start")
	case c.SuspicionTimeout != 0 && c.SuspicionTimeout < minTimeout:
		return nil, fmt.Errorf("config: SuspicionTimeout %v: choose at least %v", c.SuspicionTimeout, minTimeout)
	case c.Port < 0 || c.Port > 65535:
		return nil, fmt.Errorf("config: Port %d: choose 1 to 65535", c.Port)
	}
	timeout := c.SuspicionTimeout
	if timeout == 0 {
		timeout = defaultTimeout
	}

	m := memberlist.DefaultLANConfig()
	m.Name = nodeName(self.Rank, self.Incarnation)
	m.Label = self.Group
	m.SecretKey = c.Key
	if c.Key == nil {
		m.SecretKey = self.Key
	}
	m.ProbeInterval = timeout / probesPerTimeout
	m.ProbeTimeout = min(m.ProbeInterval/2, maxPing)
	m.SuspicionMult = probesPerTimeout
	m.SuspicionMaxTimeoutMult = unconfirmedMult
	m.GossipInterval = m.ProbeInterval / gossipsPerProbe
	m.TCPTimeout = streamTimeout
	// Memberlist's own resolver asks for more than an address, and takes long.
	m.DNSConfigPath = os.DevNull
	m.Logger = log.New(io.Discard, "", 0)
	return m, c.addresses(m, self.Address)
}

// addresses sets where memberlist listens, and what it advertises.
func (c *Config) addresses(m *memberlist.Config, self string) error {
	m.BindAddr, m.BindPort = "0.0.0.0", 0
	bind := c.Bind
	if bind == "" {
		bind = c.onPort(self)
	}
	if bind != "" {
		a, err := net.ResolveTCPAddr("tcp", bind)
		if err != nil {
			return fmt.Errorf("bind address: %w", err)
		}
		m.BindPort = a.Port
		if len(a.IP) != 0 && !a.IP.IsUnspecified() {
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

// onPort returns the host of an address with Port, or "" if either is not known.
func (c *Config) onPort(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || c.Port == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(c.Port))
}

// peerAddress returns where a peer's detector is expected, or "".
func (c *Config) peerAddress(p detect.Peer) string {
	if c.PeerAddress != nil {
		return c.PeerAddress(p)
	}
	return c.onPort(p.Address)
}

// bindAttempts bounds the search for a port that is free for both UDP and TCP.
const bindAttempts = 10

// newList opens the port and starts memberlist. It opens the port itself, because
// memberlist does not close the port when it then rejects another setting.
func newList(m *memberlist.Config) (*memberlist.Memberlist, error) {
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
