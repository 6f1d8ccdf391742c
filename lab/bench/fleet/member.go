package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
)

// member is a process of the fleet.
type member struct {
	*fleet.Fleet
	zone     string
	listen   string
	origin   origin
	receipts *receipts
	reading  sync.WaitGroup
	stop     context.CancelFunc
	greeter  bool
	before   fleet.Stats // when the zones had met
}

// site is a zone, and the members that live.
type site struct {
	name, host string
	members    []*member
	started    int        // processes so far
	starting   sync.Mutex // held while one is started later, and while the zone is dead
	addresses  []string
	used       map[string]bool // addresses that a process has
}

// zoneName keeps the order of names that of numbers.
func zoneName(i int) string { return fmt.Sprintf("zone-%03d", i) }

// join starts a process in a zone. The first one begins it.
func (r *run) join(ctx context.Context, s *site, began bool) (*member, error) {
	r.mu.Lock()
	s.started++
	id := fmt.Sprintf("%s.%d", s.name, s.started)
	listen := s.address()
	s.used[listen] = true
	seeds := make(map[string][]string)
	for _, other := range r.sites {
		if other != s {
			seeds[other.name] = other.addresses[:min(len(other.addresses), maxSeeds)]
		}
	}
	for _, m := range s.members[:min(len(s.members), maxSeeds)] { // as a service for discovery tells
		seeds[s.name] = append(seeds[s.name], m.listen)
	}
	r.mu.Unlock()
	limits := r.config.limits()
	f, err := fleet.Join(ctx, fleet.Config{
		Name: "bench", Zone: s.name, Seeds: seeds, KeepBytes: limits.KeepBytes,
		Group: pleach.Config{
			ID: id, Listen: listen, Detection: pleach.Detection{HeartbeatInterval: zoneHeartbeat},
			Limits: limits,
		},
		Backbone: pleach.Config{Detection: pleach.Detection{
			HeartbeatInterval: backboneHeartbeat,
			SuspicionTimeout:  5 * backboneHeartbeat,
		}, Network: pleach.Network{Dial: r.wan.dial(s.host)}},
	})
	if err != nil {
		return nil, err
	}
	m := &member{Fleet: f, listen: listen, zone: s.name, origin: origin{s.name, id}}
	m.receipts = newReceipts(m)
	if r.config.full() {
		m.receipts.sample = sampleAtFullRate
	}
	if !began {
		m.receipts.since = time.Now()
	}
	life, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.reading.Go(func() {
		r.receive(life, m)
		if errors.Is(m.Err(), pleach.ErrEvicted) {
			r.replace(s, m)
		}
	})
	m.reading.Go(func() { r.receiveWithin(life, m) })
	r.mu.Lock()
	s.members = append(s.members, m)
	r.mu.Unlock()
	r.ledger.mu.Lock()
	r.ledger.all = append(r.ledger.all, m.receipts)
	r.ledger.mu.Unlock()
	return m, nil
}

// Ports of members. Linux gives those from 32768 on to who asks for any, as the backbone
// does, and may take there what a process that is to be started again comes back to.
const (
	minPort = 10000
	ports   = 20000
)

// reserve chooses the addresses of a zone's members, of which the first ones are its seeds.
// A process that is started in place of another one gets its address, as it usually does.
func (s *site) reserve(members int) error {
	var listeners []net.Listener
	var err error
	first := rand.IntN(ports)
	for i := 0; len(listeners) < members; i++ {
		address := net.JoinHostPort(s.host, strconv.Itoa(minPort+(first+i)%ports))
		var l net.Listener
		switch l, err = net.Listen("tcp", address); {
		case errors.Is(err, syscall.EADDRINUSE) && i < ports:
			continue
		case err != nil:
			return err
		}
		listeners = append(listeners, l)
		s.addresses = append(s.addresses, address)
	}
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// Heartbeats. Hundreds of members in one process on few processors, as here, send fewer in
// their zones than members usually do. Those of the backbone are the usual ones. A process
// that is killed is found by its connections anyway.
const (
	zoneHeartbeat     = time.Second
	backboneHeartbeat = 300 * time.Millisecond
)

// maxSeeds is how many addresses of each zone a process gets.
const maxSeeds = 5

// address returns the first address that no process has, or "". The first process of a
// zone that was dead has a seed's.
func (s *site) address() string {
	if i := slices.IndexFunc(s.addresses, func(a string) bool { return !s.used[a] }); i >= 0 {
		return s.addresses[i]
	}
	return ""
}

// receive takes in what the fleet broadcasts.
func (r *run) receive(ctx context.Context, m *member) {
	for got, err := range m.Messages(ctx) {
		if lost, ok := errors.AsType[*fleet.LostError](err); ok {
			m.receipts.lost(lost)
			continue
		}
		m.receipts.received(&got, time.Since(r.sentAt(got.Data)))
	}
}

// receiveWithin takes in what its zone broadcasts.
func (r *run) receiveWithin(ctx context.Context, m *member) {
	for got, err := range m.Zone().Messages(ctx) {
		if err == nil && len(got.Data) >= minSize {
			late := time.Since(r.sentAt(got.Data))
			r.ledger.mu.Lock()
			r.ledger.within = append(r.ledger.within, late)
			r.ledger.mu.Unlock()
		}
	}
}

// payload is a message with the time in it.
func (r *run) payload() []byte {
	b := make([]byte, r.config.Size)
	binary.BigEndian.PutUint64(b, uint64(time.Since(r.ledger.began)))
	return b
}

func (r *run) sentAt(b []byte) time.Time {
	if len(b) < minSize {
		return time.Now()
	}
	return r.ledger.began.Add(time.Duration(binary.BigEndian.Uint64(b)))
}

// broadcast broadcasts to the fleet.
func (r *run) broadcast(ctx context.Context, m *member) {
	l := r.ledger
	if !l.note(m.origin) {
		return
	}
	l.mu.Lock()
	l.total++
	l.mu.Unlock()
	if err := m.Broadcast(ctx, r.payload()); err != nil && !errors.Is(err, pleach.ErrClosed) && ctx.Err() == nil {
		r.note(fmt.Errorf("bench: broadcast of %s: %w", m.origin.id, err))
	}
}

// kill ends processes as kill -9 would.
func (r *run) kill(s *site, victims ...*member) {
	r.mu.Lock()
	var left []*member
	for _, m := range s.members {
		if !slices.Contains(victims, m) {
			left = append(left, m)
		}
	}
	s.members = left
	r.mu.Unlock()
	for _, m := range victims {
		r.ledger.mu.Lock()
		r.ledger.gone[m.origin] = true
		r.ledger.mu.Unlock()
		r.count(m)
		r.ending.Go(func() {
			_ = m.Abort()
			m.stop()
			m.reading.Wait()
			r.mu.Lock()
			delete(s.used, m.listen)
			r.mu.Unlock()
		})
	}
}

// replace starts another process for one that its zone has evicted, as happens on a host
// that is too busy.
func (r *run) replace(s *site, m *member) {
	r.kill(s, m)
	r.mu.Lock()
	r.evicted++
	r.mu.Unlock()
	r.ending.Go(func() { r.restart(context.Background(), s) })
}

// count adds up what a process has sent to other zones since the zones have met.
func (r *run) count(m *member) {
	s := m.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.Messages += s.Messages - m.before.Messages
	r.sent.Acks += s.Acks - m.before.Acks
	r.sent.Syncs += s.Syncs - m.before.Syncs
}
