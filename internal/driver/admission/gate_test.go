package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// caller is a connection from an address.
type caller struct {
	net.Conn
	from   string
	closed bool
}

func (c *caller) RemoteAddr() net.Addr {
	a, err := net.ResolveTCPAddr("tcp", c.from)
	if err != nil {
		panic(err)
	}
	return a
}

func (c *caller) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7000} }

func (c *caller) Close() error {
	c.closed = true
	return nil
}

func from(host int) *caller { return &caller{from: fmt.Sprintf("10.0.%d.%d:99", host/250, host%250+1)} }

func TestGateIsFairAmongHosts(t *testing.T) {
	g := Gate{Visits: 4, Waiting: 4}
	honest := from(1)
	kept := g.Enter(honest)
	flood := make([]*caller, 10)
	for i := range flood {
		flood[i] = from(2)
		g.Enter(flood[i])
	}
	if honest.closed {
		t.Error("the host with one visit pays for the one with many")
	}
	if !flood[0].closed || flood[9].closed || g.Stats().Visits != 4 || g.Stats().Evicted != 7 {
		t.Errorf("first closed %v, last %v, %+v", flood[0].closed, flood[9].closed, g.Stats())
	}
	kept.Leave(true)
}

func TestVisitsInVainAreCounted(t *testing.T) {
	now := time.Unix(1, 0)
	g := Gate{Visits: 1000, Waiting: 1000, now: func() time.Time { return now }}
	for range 10 * credit {
		g.Enter(from(1)).Leave(true)
	}
	if len(g.hosts) != 0 {
		t.Errorf("%d accounts are kept for nothing", len(g.hosts))
	}
	for i := range credit {
		v := g.Enter(from(1))
		if v == nil {
			t.Fatalf("turned away after %d visits in vain", i)
		}
		v.Leave(false)
	}
	if g.Enter(from(1)) != nil {
		t.Error("a host comes as often as it likes")
	}
	if v := g.Enter(from(2)); v == nil {
		t.Error("another host is turned away")
	} else {
		v.Leave(true)
		v.Leave(true)
	}
	now = now.Add(time.Second)
	back := 0
	for g.Enter(from(1)) != nil {
		back++
	}
	// Visits that are not over do not count as in vain.
	if back < refill {
		t.Errorf("%d visits after a second, want %d", back, refill)
	}
}

func TestAccountsAreBounded(t *testing.T) {
	now := time.Unix(1, 0)
	g := Gate{Visits: 10, Waiting: 10, now: func() time.Time { return now }}
	for i := range 5 * maxHosts {
		if v := g.Enter(from(i)); v != nil {
			v.Leave(false)
		}
	}
	if len(g.hosts) > maxHosts+g.Visits+g.Waiting {
		t.Errorf("%d accounts", len(g.hosts))
	}
	now = now.Add(time.Hour)
	g.Enter(from(9 * maxHosts)).Leave(true)
	if len(g.hosts) > 1 || g.proved.order.Len() > 1 {
		t.Errorf("%d accounts an hour later", len(g.hosts))
	}
}

func TestRequestsThatWait(t *testing.T) {
	g := Gate{Visits: 10, Waiting: 4}
	var waiting []*Visit
	for range 2 {
		v := g.Enter(from(1))
		if v.Busy() || !v.Wait() {
			t.Fatal("turned away")
		}
		waiting = append(waiting, v)
	}
	if v := g.Enter(from(1)); !v.Busy() || v.Wait() {
		t.Error("one host has more than half")
	}
	if v := g.Enter(from(2)); v.Busy() || !v.Wait() {
		t.Error("another host has to wait for it")
	}
	waiting[0].Leave(true)
	if v := g.Enter(from(1)); !v.Wait() {
		t.Error("a place that was left is not free")
	}
}

func TestHostsOfNetworks(t *testing.T) {
	for address, want := range map[string]string{
		"10.1.2.3:5": "10.1.2.3", "[::ffff:10.1.2.3]:5": "10.1.2.3",
		"[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64",
	} {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostOf(a); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
}

// Work waits for a slot as long as its client does, and one host never has them all.
func TestSlots(t *testing.T) {
	s := NewSlots(4)
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		if _, err := s.Enter(ctx, "10.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
	}
	gone := make(chan error, 1)
	go func() {
		_, err := s.Enter(ctx, "10.0.0.1:2")
		gone <- err
	}()
	leave, err := s.Enter(t.Context(), "10.0.0.2:1")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("a third one: %v", err)
	}
	leave()
	if len(s.hosts) != 1 {
		t.Errorf("%d hosts are known", len(s.hosts))
	}
}

// More addresses than there are accounts hold handshakes and come in vain: case 99. Hosts of
// members and hosts that have proved something are let in, and their handshakes are not closed
// for strangers. So is a stranger whose handshake is short.
func TestKnownHostsHavePriority(t *testing.T) {
	now := time.Unix(1, 0)
	g := Gate{
		Visits: 256, Waiting: 256, now: func() time.Time { return now },
		Member: func(host string) bool { return host == "10.9.0.1" },
	}
	member, proved := &caller{from: "10.9.0.1:1"}, &caller{from: "10.9.0.2:1"}
	g.Enter(proved).Leave(true)
	number := 0
	step := time.Second / 600
	flood := func(visits int) {
		for range visits {
			number++
			now = now.Add(step)
			if v := g.Enter(from(number)); v != nil && number%2 == 0 {
				v.Leave(false)
			}
		}
	}
	for range 20 {
		flood(600)
		for i, c := range []*caller{member, proved, {from: fmt.Sprintf("10.9.1.%d:1", number%250)}} {
			v := g.Enter(c)
			if v == nil {
				t.Fatalf("caller %d is turned away: %+v", i, g.Stats())
			}
			flood(100)
			if c.closed {
				t.Fatalf("the handshake of caller %d was closed for others", i)
			}
			v.Leave(i == 1)
		}
	}
	// At any rate, strangers cost a bounded number of handshakes, and known hosts get in.
	step = time.Microsecond
	turned := g.Stats().TurnedAway
	flood(3 * strangersCredit)
	if g.Stats().TurnedAway-turned < strangersCredit || len(g.hosts) > maxHosts+g.Visits+g.Waiting {
		t.Errorf("%d strangers were turned away, and there are %d accounts", g.Stats().TurnedAway-turned, len(g.hosts))
	}
	for i, c := range []*caller{member, proved} {
		if v := g.Enter(c); v == nil {
			t.Errorf("known host %d is turned away", i)
		} else {
			flood(strangersRefill)
		}
		if c.closed {
			t.Errorf("the handshake of known host %d was closed for strangers", i)
		}
	}
}

// Strangers leave a quarter of the requests that may wait to known hosts.
func TestWaitingStrangersLeaveRoom(t *testing.T) {
	g := Gate{Visits: 16, Waiting: 16}
	g.Enter(&caller{from: "10.9.0.2:1"}).Leave(true)
	for i := range 12 {
		if !g.Enter(from(i)).Wait() {
			t.Fatalf("stranger %d does not wait", i)
		}
	}
	if g.Enter(from(12)).Wait() {
		t.Error("strangers may take all places")
	}
	if !g.Enter(&caller{from: "10.9.0.2:1"}).Wait() {
		t.Error("a known host has no place")
	}
}
