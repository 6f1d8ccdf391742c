package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

var secret = []byte("a secret of many bytes")

func TestFramesArriveAsSentWithSecret(t *testing.T) {
	ca := testutil.NewCA(t)
	for name, cfg := range map[string]Config{
		"plain": {Secret: secret},
		"TLS":   {Secret: secret, TLS: ca.Config(t, ca)},
	} {
		t.Run(name, func(t *testing.T) { exchange(t, startGroup(t, 3, cfg)) })
	}
}

func TestSecretDialedByBoth(t *testing.T) {
	for range 20 {
		m := startGroup(t, 2, Config{Secret: secret})
		mustSend(t, m[0], 1, []byte("a"))
		mustSend(t, m[1], 0, []byte("b"))
		eventually(t, "both frames", func() bool { return len(m[0].received(1)) == 1 && len(m[1].received(0)) == 1 })
		for i := range m {
			_ = m[i].Close()
		}
	}
}

// Both sides learn at once that their secrets differ, and neither is up.
func TestWrongSecretIsRefused(t *testing.T) {
	for name, theirs := range map[string][]byte{"none": nil, "another": []byte("another secret")} {
		for _, dials := range []int{0, 1} {
			t.Run(name, func(t *testing.T) {
				checkGoroutines(t)
				listeners, addresses := listen(t, 2)
				m := []*member{
					start(t, Config{Addresses: addresses, Listener: listeners[0], Secret: secret}),
					start(t, Config{Addresses: addresses, Rank: 1, Listener: listeners[1], Secret: theirs}),
				}
				mustSend(t, m[dials], protocol.Rank(1-dials), []byte("a"))
				eventually(t, "refusal", func() bool { return errors.Is(m[dials].lastCause(protocol.Rank(1-dials)), ErrSecret) })
				eventually(t, "count", func() bool { return m[1-dials].Stats().Refused > 0 })
				for i, x := range m {
					if s := x.story(protocol.Rank(1 - i)); strings.Contains(s, "up") {
						t.Errorf("rank %d: %s", i, s)
					}
				}
			})
		}
	}
}

// A request needs the secret too, and the member's answer is checked.
func TestRequestNeedsSecret(t *testing.T) {
	listeners, _ := listen(t, 1)
	asked := make(chan []byte, 8)
	m := startWith(t, Config{Open: true, Listener: listeners[0], Secret: secret}, func(r *recorder) transport.Handler {
		return requestHandler{r, func(request []byte, answer func([]byte)) {
			asked <- request
			answer([]byte("yes"))
		}}
	})
	address := m.Addr().String()
	reply, err := Request(t.Context(), Config{Group: "test", Secret: secret}, address, []byte("please"))
	if err != nil || string(reply) != "yes" || string(<-asked) != "please" {
		t.Fatalf("%q, %v", reply, err)
	}
	for _, other := range [][]byte{nil, []byte("another secret")} {
		if _, err := Request(t.Context(), Config{Group: "test", Secret: other}, address, []byte("please")); !errors.Is(err,
			ErrSecret) {
			t.Errorf("secret %q: %v", other, err)
		}
	}
	if len(asked) > 0 {
		t.Error("the handler was asked without the secret")
	}
}

// What was recorded of one connection opens no other: not the dialing side's bytes sent
// again, and not an answer reflected.
func TestRecordedHandshakeOpensNothing(t *testing.T) {
	listeners, addresses := listen(t, 2)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	var recorded bytes.Buffer
	done := make(chan struct{})
	go func() { // records what rank 0 sends to rank 1
		defer close(done)
		in, err := proxy.Accept()
		if err != nil {
			return
		}
		defer in.Close()
		out, err := net.Dial("tcp", addresses[1])
		if err != nil {
			return
		}
		defer out.Close()
		go func() { _, _ = io.Copy(in, out) }()
		_, _ = io.Copy(out, io.TeeReader(in, &recorded))
	}()
	m1 := start(t, Config{Addresses: addresses, Rank: 1, Listener: listeners[1], Secret: secret})
	m0 := start(t, Config{
		Addresses: []string{addresses[0], proxy.Addr().String()}, Listener: listeners[0],
		Secret: secret,
	})
	mustSend(t, m0, 1, []byte("once"))
	eventually(t, "frame", func() bool { return len(m1.received(0)) == 1 })
	_ = m0.Close()
	<-done
	eventually(t, "down", func() bool { return m1.Stats().Connections == 0 })

	// A member that has forgotten everything, as after a restart.
	_ = m1.Close()
	l, err := net.Listen("tcp", addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	again := start(t, Config{Addresses: addresses, Rank: 1, Listener: l, Secret: secret})
	c := dialRaw(t, again, recorded.Bytes())
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.Copy(io.Discard, c)
	eventually(t, "refusal", func() bool { return again.Stats().Refused == 1 })
	if again.story(0) != "" || len(again.received(0)) > 0 {
		t.Errorf("a recorded handshake was accepted: %s", again.story(0))
	}
}

// FuzzCallerWithoutSecret lets a process that does not know the secret say anything.
// Nothing of it reaches the handler.
func FuzzCallerWithoutSecret(f *testing.F) {
	key := wire.NewKey([]byte("another"), "test")
	for _, from := range []protocol.Rank{protocol.NoRank, 1} {
		h := wire.Hello{Group: "test", From: from, To: protocol.NoRank, Incarnation: 1, Attempt: 1}
		if from == 1 {
			h.To = 0
		}
		h.Code = key.HelloCode(&h)
		b := wire.AppendFrame(nil, wire.AppendHello(nil, &h))
		code := key.ProofCode(&h, &wire.Hello{}, nil)
		f.Add(wire.AppendFrame(wire.AppendFrame(b, code[:]), []byte("please")))
	}
	listeners, _ := listen(f, 1)
	asked := 0
	m := startWith(f, Config{Open: true, Listener: listeners[0], Secret: secret}, func(r *recorder) transport.Handler {
		return requestHandler{r, func(_ []byte, answer func([]byte)) { asked++; answer(nil) }}
	})
	f.Fuzz(func(t *testing.T, said []byte) {
		c := newHandshakeConn(m.ctx, &m.cfg, speaker{Reader: bytes.NewReader(said)})
		m.Transport.receive(c, c.accept(m.ctx, &m.cfg))
		if asked > 0 || m.Stats().Connections > 0 {
			t.Errorf("%x was accepted", said)
		}
	})
}
