package tcp

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// speakOnly answers clients as a build that speaks one protocol version does.
func speakOnly(ctx context.Context, l net.Listener, version uint16, secret []byte) {
	cfg, _ := Config{Group: "test", Secret: secret}.complete()
	for {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		s := newHandshakeConn(ctx, &cfg, raw)
		err = s.accept(ctx, &cfg)
		spoken := s.dialed.Version == version
		s.dialed.Version = version
		h := wire.Hello{Group: "test", To: protocol.NoRank, Status: wire.Refused}
		if spoken && err == nil {
			h.Status = wire.Accepted
		}
		answer := s.answerHello(h)
		answer[wire.HeaderSize+5] = byte(version) // also if it is none of this build
		_, _ = s.stream.Write(answer)
		if request, err := s.request(); err == nil {
			_, _ = s.stream.Write(wire.AppendFrame(nil, request))
		}
		s.close()
	}
}

// A client tries again in the version of the member, if it speaks that.
func TestRequestInAnotherVersion(t *testing.T) {
	for _, secret := range [][]byte{nil, secret} {
		for version := uint16(wire.MinVersion - 1); version <= wire.Version+1; version++ {
			listeners, addresses := listen(t, 1)
			go speakOnly(t.Context(), listeners[0], version, secret)
			reply, err := Request(t.Context(), Config{Group: "test", Secret: secret}, addresses[0], []byte("you?"))
			var other *wire.VersionError
			switch {
			case wire.Speaks(version) && (err != nil || string(reply) != "you?"):
				t.Errorf("version %d: %q, %v", version, reply, err)
			case !wire.Speaks(version) && (!errors.As(err, &other) || other.Theirs != version || !errors.Is(err, ErrVersion)):
				t.Errorf("version %d: %v", version, err)
			}
			_ = listeners[0].Close()
		}
	}
}

// A member dials in the version of its view.
func TestDialInTheVersionOfTheView(t *testing.T) {
	for _, version := range []uint16{0, wire.MinVersion, wire.Version} {
		checkGoroutines(t)
		listeners, addresses := listen(t, 2)
		m := startWith(t, Config{Open: true, Addresses: addresses, Listener: listeners[0]},
			func(r *recorder) transport.Handler { return r })
		m.SetView(transport.View{Number: 1, Version: version, Member: func(r protocol.Rank) (transport.Member, bool) {
			return transport.Member{Rank: r, Address: addresses[r], Incarnation: 1, Nonce: 1}, true
		}})
		mustSend(t, m, 1, []byte("hello"))
		raw, err := listeners[1].Accept()
		if err != nil {
			t.Fatal(err)
		}
		cfg, _ := Config{Group: "test"}.complete()
		s := newHandshakeConn(t.Context(), &cfg, raw)
		want := version
		if version == 0 {
			want = wire.Newest()
		}
		if err := s.accept(t.Context(), &cfg); err != nil || s.dialed.Version != want {
			t.Errorf("dialed in version %d, %v, want %d", s.dialed.Version, err, want)
		}
		s.close()
		_ = listeners[1].Close()
		_ = m.Close()
	}
}
