package tcp

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// A candidate answers requests before it has a rank, and what members have sent to it
// meanwhile arrives when it has one.
func TestCandidateBecomesMember(t *testing.T) {
	for _, secret := range [][]byte{nil, secret} {
		checkGoroutines(t)
		listeners, addresses := listen(t, 2)
		c, err := NewCandidate(Config{Group: "test", Listener: listeners[1], Secret: secret},
			func(_ transport.Client, b []byte) []byte { return append([]byte("re: "), b...) })
		if err != nil {
			t.Fatal(err)
		}
		reply, err := Request(t.Context(), Config{Group: "test", Secret: secret}, addresses[1], []byte("you?"))
		if err != nil || string(reply) != "re: you?" {
			t.Fatalf("%q, %v", reply, err)
		}
		if _, err := Request(t.Context(), Config{Group: "other", Secret: secret}, addresses[1], nil); !errors.Is(err,
			ErrHello) {
			t.Errorf("another group: %v", err)
		}
		eventually(t, "no visit", func() bool { return c.gate.Stats().Visits == 0 })
		m0 := start(t, Config{Open: true, Addresses: addresses, Listener: listeners[0], Secret: secret})
		mustSend(t, m0, 1, []byte("early"))
		eventually(t, "connection that waits", func() bool { return c.held.Load() == 1 })
		m1 := start(t, Config{Open: true, Addresses: addresses, Rank: 1, Candidate: c, Secret: secret})
		eventually(t, "early frame", func() bool { return len(m1.received(0)) == 1 })
		mustSend(t, m1, 0, []byte("late"))
		eventually(t, "late frame", func() bool { return len(m0.received(1)) == 1 })
		if _, err := Request(t.Context(), Config{Group: "test", Secret: secret}, addresses[1], nil); !errors.Is(err,
			ErrUnsupported) {
			t.Errorf("the candidate still answers: %v", err)
		}
		_ = m0.Close()
		_ = m1.Close()
	}
}

// A candidate asks its program, too, who may speak to it.
func TestCandidateVerifiesCallers(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 1)
	refuses := func(Claim) error { return errors.New("not this one") }
	c, err := NewCandidate(Config{Group: "test", Listener: listeners[0], Verify: refuses},
		func(_ transport.Client, b []byte) []byte { return b })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if reply, err := Request(t.Context(), Config{Group: "test"}, addresses[0], nil); !errors.Is(err, ErrCertificate) {
		t.Errorf("%q, %v", reply, err)
	}
}

func TestCandidateCloses(t *testing.T) {
	checkGoroutines(t)
	listeners, addresses := listen(t, 2)
	c, err := NewCandidate(Config{Group: "test", Listener: listeners[1]},
		func(_ transport.Client, b []byte) []byte { return b })
	if err != nil {
		t.Fatal(err)
	}
	m0 := start(t, Config{Open: true, Addresses: addresses, Listener: listeners[0]})
	mustSend(t, m0, 1, []byte("early"))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "down", func() bool { return m0.lastCause(1) != nil })
}

// Connections as ranks that have no member are bounded, and the newest are kept.
func TestNewcomersAreBounded(t *testing.T) {
	listeners, _ := listen(t, 1)
	m := start(t, Config{Open: true, Listener: listeners[0]})
	for r := range protocol.Rank(3 * maxNewcomers) {
		c := dialRaw(t, m, unknownHelloOf(r+1))
		defer c.Close()
		eventually(t, "connection", func() bool { return m.Stats().Accepted == uint64(r+1) }) // in this order
	}
	eventually(t, "the newest", func() bool { return m.Stats().Connections <= maxNewcomers })

	// A rank that gets an address is no newcomer any more.
	m.SetPeer(3*maxNewcomers, "127.0.0.1:1")
	for r := range protocol.Rank(2 * maxNewcomers) {
		c := dialRaw(t, m, unknownHelloOf(1000+r))
		defer c.Close()
	}
	eventually(t, "all", func() bool { return m.Stats().Accepted == 5*maxNewcomers })
	eventually(t, "the newest", func() bool { return m.Stats().Connections <= maxNewcomers+1 })
	if m.lastCause(3*maxNewcomers) != nil {
		t.Error("a member's connection was closed for newcomers")
	}
}

// A newcomer whose connection has ended takes the place of no other.
func TestNewcomersThatLeaveAreForgotten(t *testing.T) {
	listeners, _ := listen(t, 1)
	m := start(t, Config{Open: true, Listener: listeners[0]})
	stays := dialRaw(t, m, unknownHelloOf(1))
	defer stays.Close()
	eventually(t, "it is up", func() bool { return m.story(1) != "" })
	for r := range protocol.Rank(maxNewcomers) {
		c := dialRaw(t, m, unknownHelloOf(r+2))
		eventually(t, "another one", func() bool { return m.story(r+2) != "" })
		_ = c.Close()
		eventually(t, "its end", func() bool { return m.lastCause(r+2) != nil })
	}
	if err := m.lastCause(1); err != nil {
		t.Errorf("the one that stays: %v", err)
	}
}

// A connection that came before its rank was known is verified when it is.
func TestNewcomerIsVerifiedAgain(t *testing.T) {
	listeners, _ := listen(t, 1)
	var known atomic.Int64 // of these ranks the members are others
	m := start(t, Config{Open: true, Listener: listeners[0], Verify: func(c Claim) error {
		if int64(c.Rank) <= known.Load() {
			return errors.New("another process")
		}
		return nil
	}})
	for r := range protocol.Rank(2) {
		c := dialRaw(t, m, unknownHelloOf(r+1))
		defer c.Close()
	}
	eventually(t, "both", func() bool { return m.Stats().Connections == 2 })
	known.Store(1)
	for r := range protocol.Rank(2) {
		m.SetPeer(r+1, fmt.Sprintf("127.0.0.1:%d", r+1))
	}
	eventually(t, "down", func() bool { return errors.Is(m.lastCause(1), ErrCertificate) })
	if m.Stats().Connections != 1 || m.lastCause(2) != nil {
		t.Errorf("%d connections, rank 2 is down: %v", m.Stats().Connections, m.lastCause(2))
	}

	// A process that connects as a rank whose member has left stays no longer than that
	// rank is free, also if the next member has the same address.
	known.Store(2)
	m.SetPeer(2, "127.0.0.1:2")
	eventually(t, "down", func() bool { return errors.Is(m.lastCause(2), ErrCertificate) })
}

// A candidate whose settings are wrong says which.
func TestCandidateIsRefused(t *testing.T) {
	for _, c := range []struct {
		config Config
		says   string
	}{
		{Config{Group: "test", MaxFrame: -1}, "MaxFrame"},
		{Config{Group: "test", Listener: struct{ net.Listener }{}}, "SetDeadline"},
	} {
		if _, err := NewCandidate(c.config, nil); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v does not say %s", err, c.says)
		}
	}
}
