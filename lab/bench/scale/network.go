package scale

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/mem"
)

// groupName is that of all groups.
const groupName = "scale"

// network is what connects the members of a group.
type network interface {
	// addresses are those of the members, by rank.
	addresses() []string
	// open makes the transport of a rank.
	open(rank int) (transport.Transport, error)
	// kill ends a rank's transport as the death of its process would, if closing it
	// does not.
	kill(rank int)
	// counts are the frames that all members have received, and the ends of
	// connections that are open.
	counts() (frames uint64, connections int)
	// outOfFiles counts the members that the limit of open files kept from connecting at
	// times.
	outOfFiles() int
}

func newNetwork(name string, members int) (network, error) {
	if name == "mem" {
		return newMemory(members), nil
	}
	sockets, err := launch.Listen(groupName, members)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return &tcpNetwork{sockets, make([]*tcp.Transport, members)}, nil
}

// tcpNetwork connects members over the loopback interface.
type tcpNetwork struct {
	sockets    *launch.Sockets
	transports []*tcp.Transport
}

func (n *tcpNetwork) addresses() []string { return n.sockets.Addresses }
func (n *tcpNetwork) kill(int)            {}

// idleTimeout is that of connections: shorter than usual, so that a run of seconds sees
// what a group is after minutes. A status keeps the connection to the parent in the tree
// every two seconds.
const idleTimeout = 3 * time.Second

func (n *tcpNetwork) open(rank int) (_ transport.Transport, err error) {
	n.transports[rank], err = tcp.New(tcp.Config{
		Group: groupName, Rank: protocol.Rank(rank), Addresses: n.sockets.Addresses, Listener: n.sockets.Take(rank),
		Open: true, Incarnation: uint64(time.Now().UnixNano()), IdleTimeout: idleTimeout,
	})
	return n.transports[rank], err
}

func (n *tcpNetwork) counts() (frames uint64, connections int) {
	for _, t := range n.transports {
		if t != nil {
			s := t.Stats()
			frames += s.FramesReceived
			connections += s.Connections
		}
	}
	return frames, connections
}

func (n *tcpNetwork) outOfFiles() (members int) {
	for _, t := range n.transports {
		if t == nil {
			continue
		}
		if _, err := t.LocalError(); err != nil {
			members++
		}
	}
	return members
}

// memory connects members without sockets. Their addresses are loopback addresses at
// which no process listens, so that a probe of a dead member is refused, as it is over
// TCP. Live members are not probed, since their connections do not break.
type memory struct {
	network     *mem.Network
	list        []string
	frames      atomic.Uint64
	connections atomic.Int64
}

// unusedPort is tcpmux, which no host of today serves.
const unusedPort = 1

func newMemory(members int) *memory {
	m := &memory{network: mem.NewNetwork(members, mem.Config{})}
	address := netip.AddrFrom4([4]byte{127, 1, 0, 0})
	for range members {
		m.list = append(m.list, netip.AddrPortFrom(address, unusedPort).String())
		address = address.Next()
	}
	return m
}

func (m *memory) addresses() []string { return m.list }
func (m *memory) kill(rank int)       { m.network.Kill(protocol.Rank(rank)) }

func (m *memory) outOfFiles() int { return 0 }

func (m *memory) open(rank int) (transport.Transport, error) {
	return counted{m.network.Member(protocol.Rank(rank)), m}, nil
}

func (m *memory) counts() (frames uint64, connections int) {
	return m.frames.Load(), int(m.connections.Load())
}

// counted counts the calls of a member's handler.
type counted struct {
	transport.Transport
	memory *memory
}

// Start implements [transport.Transport].
func (c counted) Start(h transport.Handler) error {
	return c.Transport.Start(&counter{Handler: h, memory: c.memory, up: make(map[protocol.Rank]bool)})
}

// counter is the handler of one member. The network calls it one call at a time.
type counter struct {
	transport.Handler
	memory *memory
	up     map[protocol.Rank]bool
}

// Receive implements [transport.Handler].
func (c *counter) Receive(from protocol.Rank, frame []byte) {
	c.memory.frames.Add(1)
	c.Handler.Receive(from, frame)
}

// Up implements [transport.Handler].
func (c *counter) Up(peer protocol.Rank, incarnation uint64) {
	if !c.up[peer] {
		c.up[peer] = true
		c.memory.connections.Add(1)
	}
	c.Handler.Up(peer, incarnation)
}

// Down implements [transport.Handler].
func (c *counter) Down(peer protocol.Rank, cause error) {
	if c.up[peer] {
		delete(c.up, peer)
		c.memory.connections.Add(-1)
	}
	c.Handler.Down(peer, cause)
}
