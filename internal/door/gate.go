package door

import (
	"container/list"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Gate bounds what processes that have proved nothing yet can use up: connections, and
// by them descriptors, goroutines and memory. A host that comes too often with nothing to
// show is turned away before anything is read, so that a flood costs an accept each time.
// Among hosts the gate is fair: when it is full, the host with the most visits pays. So it is
// among the users of its own host, on Linux, where all come from one address.
type Gate struct {
	// Visits bounds the connections in their handshake, and Waiting the requests that
	// wait for their answers, of which a host may have half.
	Visits, Waiting int

	mu      sync.Mutex
	hosts   map[string]*host
	visits  int
	waiting int
	evicted uint64
	turned  uint64
	now     func() time.Time // nil: time.Now
}

const (
	// credit is how many visits in vain a host has at once, and refill how many it gets
	// back in a second.
	credit = 256
	refill = 128
	// maxHosts bounds the hosts that are told apart. Those beyond share one account.
	maxHosts = 1024
)

// host is the account of one host.
type host struct {
	name    string
	visits  list.List // *Visit in their handshake, oldest first
	waiting int
	spent   float64 // visits that were in vain, or are not over
	at      time.Time
}

// Visit is one connection on its way through the gate.
type Visit struct {
	gate    *Gate
	host    *host
	conn    net.Conn
	element *list.Element // nil: its handshake is over
	waits   bool
	left    bool
}

// Enter lets a connection in, or returns nil: its host has had too many visits in vain,
// and the caller closes it. If the gate is full, the oldest handshake of the host with the
// most visits is closed: a member sends its Hello at once, so that a process that takes its
// time cannot keep members out.
func (g *Gate) Enter(c net.Conn) *Visit {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.host(hostOf(c.RemoteAddr()))
	if h.overdrawn() {
		if user, ok := userOf(c); ok { // the users of this host do not pay for each other
			h = g.host(fmt.Sprintf("%s of user %d", h.name, user))
		}
	}
	if h.overdrawn() {
		g.turned++
		return nil
	}
	if g.visits >= g.Visits {
		g.evict()
	}
	v := &Visit{gate: g, host: h, conn: c}
	v.element = h.visits.PushBack(v)
	g.visits++
	h.spent++
	return v
}

// Busy reports whether too many requests wait for another one to be taken.
func (v *Visit) Busy() bool {
	if v == nil {
		return false
	}
	v.gate.mu.Lock()
	defer v.gate.mu.Unlock()
	return v.busy()
}

func (v *Visit) busy() bool {
	return v.gate.waiting >= v.gate.Waiting || v.host.waiting >= max(1, v.gate.Waiting/2)
}

// Wait says that the handshake is over and a request waits for its answer: the connection
// is not closed for others any more. It reports false if too many requests wait.
func (v *Visit) Wait() bool {
	if v == nil {
		return true
	}
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.busy() {
		return false
	}
	v.endHandshake()
	v.waits = true
	g.waiting++
	v.host.waiting++
	return true
}

// Leave ends a visit, if it is not over. A visit that has proved its worth costs its host
// nothing. A nil visit, of a connection that this side has opened, has nothing to end.
func (v *Visit) Leave(proved bool) {
	if v == nil {
		return
	}
	g := v.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.left {
		return
	}
	v.left = true
	v.endHandshake()
	if v.waits {
		g.waiting--
		v.host.waiting--
	}
	if proved {
		v.host.spent = max(0, v.host.spent-1)
	}
	g.forget(v.host)
}

// GateStats counts connections.
type GateStats struct {
	Visits, Waiting int    // present ones
	Evicted         uint64 // closed for others in their handshake
	TurnedAway      uint64 // of hosts that came too often
}

// Stats returns the present counts.
func (g *Gate) Stats() GateStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return GateStats{g.visits, g.waiting, g.evicted, g.turned}
}

// endHandshake takes a visit out of its host's handshakes, if it is among them.
func (v *Visit) endHandshake() {
	if v.element == nil {
		return
	}
	v.host.visits.Remove(v.element)
	v.element = nil
	v.gate.visits--
}

// evict closes the oldest handshake of the host with the most.
func (g *Gate) evict() {
	var most *host
	for _, h := range g.hosts {
		if h.visits.Len() > 0 && (most == nil || h.visits.Len() > most.visits.Len()) {
			most = h
		}
	}
	if most == nil {
		return
	}
	g.evicted++
	v := most.visits.Front().Value.(*Visit)
	v.endHandshake()
	_ = v.conn.Close()
}

// host returns the account of a host as it is now.
func (g *Gate) host(name string) *host {
	now := time.Now()
	if g.now != nil {
		now = g.now()
	}
	if g.hosts == nil {
		g.hosts = make(map[string]*host)
	}
	h := g.hosts[name]
	if h == nil && len(g.hosts) >= maxHosts {
		for _, idle := range g.hosts {
			idle.pay(now)
			g.forget(idle)
		}
		if len(g.hosts) >= maxHosts {
			name = ""
			h = g.hosts[name]
		}
	}
	if h == nil {
		h = &host{name: name, at: now}
		g.hosts[name] = h
	}
	h.pay(now)
	return h
}

// overdrawn reports whether a host has had too many visits in vain for another one.
func (h *host) overdrawn() bool { return h.spent+1 > credit+float64(h.visits.Len()+h.waiting) }

// pay gives a host back what it has waited for.
func (h *host) pay(now time.Time) {
	h.spent = max(float64(h.visits.Len()+h.waiting), h.spent-refill*now.Sub(h.at).Seconds())
	h.at = now
}

// forget drops an account that says nothing.
func (g *Gate) forget(h *host) {
	if h.visits.Len() == 0 && h.waiting == 0 && h.spent == 0 {
		delete(g.hosts, h.name)
	}
}

// hostOf returns the account of an address: its IP address, or its network in IPv6, where
// a host has as many addresses as it wants.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.Network()
	}
	ip := p.Addr().Unmap().WithZone("")
	if network, err := ip.Prefix(64); ip.Is6() && err == nil {
		return network.String()
	}
	return ip.String()
}
