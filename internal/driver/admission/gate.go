package admission

import (
	"cmp"
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
//
// A flood can come from more addresses than the gate can tell apart. So known hosts, those of
// members and those from which a process has proved that it is of the group, have priority
// over strangers.
type Gate struct {
	// Visits bounds the connections in their handshake, and Waiting the requests that
	// wait for their answers, of which a host may have half, and strangers three quarters.
	Visits, Waiting int
	// Member reports whether an account, as AccountOf returns it, is that of a member. It is
	// called only while the gate is busy. If nil, none is.
	Member func(account string) bool

	mu        sync.Mutex
	hosts     map[string]*host
	proved    recent
	strangers budget // visits in vain of all hosts that are not known
	swept     time.Time
	visits    int
	waiting   int
	evicted   uint64
	turned    uint64
	now       func() time.Time // nil: time.Now
}

const (
	// credit is how many visits in vain a host has at once, and refill how many it gets
	// back in a second.
	credit = 256
	refill = 128
	// strangersCredit and strangersRefill are the same for all strangers together.
	strangersCredit = 4096
	strangersRefill = 2048
	// maxHosts bounds the accounts of hosts that have no connection, and the hosts that are
	// remembered because they have proved something.
	maxHosts = 1024
	// sample is how many idle accounts are compared before one is dropped for another host.
	sample = 8
)

// host is the account of one host.
type host struct {
	name    string
	known   bool
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
	from    string
	at      time.Time
	element *list.Element // nil: its handshake is over
	counted bool          // in the budget of strangers
	waits   bool
	left    bool
}

// Enter lets a connection in, or returns nil: its host, or strangers in all, have had too
// many visits in vain, and the caller closes it. If the gate is full, the oldest handshake of
// the host with the most visits is closed: a member sends its Hello at once, so that a process
// that takes its time cannot keep members out.
func (g *Gate) Enter(c net.Conn) *Visit {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.time()
	from := hostOf(c.RemoteAddr())
	h := g.host(from, now)
	if h.overdrawn() {
		if user, ok := userOf(c); ok { // the users of this host do not pay for each other
			h = g.host(fmt.Sprintf("%s of user %d", from, user), now)
		}
	}
	g.strangers.pay(now)
	h.known = g.proved.has(from) || g.busy() && g.Member != nil && g.Member(from)
	if h.overdrawn() || !h.known && g.strangers.empty() {
		g.forget(h)
		g.turned++
		return nil
	}
	if g.visits >= g.Visits {
		g.evict()
	}
	v := &Visit{gate: g, host: h, conn: c, from: from, at: now, counted: !h.known}
	v.element = h.visits.PushBack(v)
	g.visits++
	h.spent++
	if v.counted {
		g.strangers.spent++
	}
	return v
}

// busy reports whether it matters which hosts are those of members.
func (g *Gate) busy() bool {
	return g.visits >= g.Visits/2 || g.waiting >= g.Waiting/2 || g.strangers.spent >= strangersCredit/2
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
	limit := v.gate.Waiting
	if !v.host.known {
		limit -= limit / 4
	}
	return v.gate.waiting >= limit || v.host.waiting >= max(1, v.gate.Waiting/2)
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
		if v.counted {
			g.strangers.spent = max(0, g.strangers.spent-1)
		}
		g.proved.add(v.from)
	}
	g.forget(v.host)
}

// Prove says that a process of the group is at an address: this side has dialed it.
func (g *Gate) Prove(address net.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proved.add(hostOf(address))
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

// evict closes the oldest handshake of the host with the most: of a stranger, if there is one.
func (g *Gate) evict() {
	var most *host
	for _, h := range g.hosts {
		if h.visits.Len() > 0 && (most == nil || h.before(most)) {
			most = h
		}
	}
	if most == nil {
		return
	}
	g.evicted++
	v := most.oldest()
	v.endHandshake()
	_ = v.conn.Close()
}

// before reports whether a handshake of this host is closed before one of another host.
func (h *host) before(other *host) bool {
	switch a, b := h.visits.Len(), other.visits.Len(); {
	case h.known != other.known:
		return other.known
	case a != b:
		return a > b
	}
	return h.oldest().at.Before(other.oldest().at)
}

func (h *host) oldest() *Visit { return h.visits.Front().Value.(*Visit) }

func (g *Gate) time() time.Time {
	if g.now != nil {
		return g.now()
	}
	return time.Now()
}

// host returns the account of a host as it is now.
func (g *Gate) host(name string, now time.Time) *host {
	if g.hosts == nil {
		g.hosts = make(map[string]*host)
	}
	h := g.hosts[name]
	if h == nil {
		if len(g.hosts) >= maxHosts {
			g.shrink(now)
		}
		h = &host{name: name, at: now}
		g.hosts[name] = h
	}
	h.pay(now)
	return h
}

// shrink drops all accounts that say nothing any more, once a second. If there are still too
// many, it drops the one of some idle ones that has cost the least.
func (g *Gate) shrink(now time.Time) {
	if now.Sub(g.swept) >= time.Second {
		g.swept = now
		for _, h := range g.hosts {
			h.pay(now)
			g.forget(h)
		}
	}
	if len(g.hosts) < maxHosts+g.Visits+g.Waiting {
		return
	}
	var least *host
	seen := 0
	for _, h := range g.hosts {
		if h.visits.Len() > 0 || h.waiting > 0 {
			continue
		}
		h.pay(now)
		if least == nil || h.spent < least.spent {
			least = h
		}
		seen++
		if seen == sample {
			break
		}
	}
	if least != nil {
		delete(g.hosts, least.name)
	}
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

// budget counts visits in vain of many hosts.
type budget struct {
	spent float64
	at    time.Time
}

func (b *budget) pay(now time.Time) {
	b.spent = max(0, b.spent-strangersRefill*now.Sub(b.at).Seconds())
	b.at = now
}

func (b *budget) empty() bool { return b.spent+1 > strangersCredit }

// recent is a set of the hosts that were added last.
type recent struct {
	elements map[string]*list.Element
	order    list.List // oldest first
}

func (r *recent) has(name string) bool { return r.elements[name] != nil }

func (r *recent) add(name string) {
	if e := r.elements[name]; e != nil {
		r.order.MoveToBack(e)
		return
	}
	if r.elements == nil {
		r.elements = make(map[string]*list.Element)
	}
	if r.order.Len() >= maxHosts {
		delete(r.elements, r.order.Remove(r.order.Front()).(string))
	}
	r.elements[name] = r.order.PushBack(name)
}

// hostOf returns the account of an address.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	return cmp.Or(AccountOf(a.String()), a.Network())
}

// AccountOf returns the account of a host:port: its IP address, or its network in IPv6, where
// a host has as many addresses as it wants. It is empty if the host is a name.
func AccountOf(address string) string {
	p, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	ip := p.Addr().Unmap().WithZone("")
	if network, err := ip.Prefix(64); ip.Is6() && err == nil {
		return network.String()
	}
	return ip.String()
}
