package group_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
	"github.com/pleach-go/pleach/transport/fault"
	"github.com/pleach-go/pleach/transport/mem"
)

// joinMem makes a group of members in this process, over memory.
func joinMem(t *testing.T, size int) ([]*pleach.Group, *mem.Network) {
	t.Helper()
	network := mem.NewNetwork(size, mem.Config{})
	groups := make([]*pleach.Group, size)
	for r := range groups {
		groups[r] = start(t, pleach.Config{
			Network: pleach.Network{Transport: network.Member(protocol.Rank(r)), Size: size},
			Rank:    r,
		})
	}
	return groups, network
}

// joinTCP makes a group of members in this process, over loopback.
func joinTCP(t *testing.T, size int) []*pleach.Group {
	t.Helper()
	return joinTCPThrough(t, size, func(_ protocol.Rank, inner transport.Transport) transport.Transport { return inner })
}

// joinTCPThrough does so with every transport wrapped.
func joinTCPThrough(t *testing.T, size int,
	wrap func(protocol.Rank, transport.Transport) transport.Transport,
) []*pleach.Group {
	t.Helper()
	listeners := make([]net.Listener, size)
	addresses := make([]string, size)
	for r := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[r], addresses[r] = l, l.Addr().String()
	}
	groups := make([]*pleach.Group, size)
	for r := range groups {
		inner, err := tcp.New(tcp.Config{Group: "test", Rank: protocol.Rank(r), Addresses: addresses, Listener: listeners[r]})
		if err != nil {
			t.Fatal(err)
		}
		groups[r] = start(t, pleach.Config{
			Network: pleach.Network{Transport: wrap(protocol.Rank(r), inner), Size: size},
			Rank:    r,
		})
	}
	return groups
}

func start(t *testing.T, c pleach.Config) *pleach.Group {
	t.Helper()
	return member(t)(pleach.Start(t.Context(), c))
}

// member ends a membership with its test.
func member(t *testing.T) func(*pleach.Group, error) *pleach.Group {
	return func(g *pleach.Group, err error) *pleach.Group {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.Abort(); err != nil {
				t.Error(err)
			}
		})
		return g
	}
}

// message says whose and which it is.
func message(root, number, size int) []byte {
	b := make([]byte, max(size, 8))
	binary.BigEndian.PutUint32(b, uint32(root))
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	return b
}

// collect takes messages until as many as wanted of every root are there, and
// checks that each root's come in order.
func collect(ctx context.Context, g *pleach.Group, want map[int]int) error {
	got := map[int]int{}
	missing := 0
	for root, n := range want {
		if root != g.Rank() {
			missing += n
		}
	}
	if missing == 0 {
		return nil
	}
	for m, err := range g.Messages(ctx) {
		if err != nil {
			return fmt.Errorf("rank %d: %w after %v", g.Rank(), err, got)
		}
		root, number := int(binary.BigEndian.Uint32(m.Data)), int(binary.BigEndian.Uint32(m.Data[4:]))
		if root != m.From || number != got[root] {
			return fmt.Errorf("rank %d: message %d of root %d after %d", g.Rank(), number, root, got[root])
		}
		got[root]++
		if _, counts := want[root]; counts {
			missing--
		}
		if missing == 0 {
			return nil
		}
	}
	return fmt.Errorf("rank %d: got %v, want %v: %+v", g.Rank(), got, want, g.Stats())
}

// everybody lets all groups broadcast and receive, except the dead.
func everybody(t *testing.T, groups []*pleach.Group, dead map[int]bool, messages int, size func(i int) int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	want := map[int]int{}
	for r := range groups {
		if !dead[r] {
			want[r] = messages
		}
	}
	var wg sync.WaitGroup
	for r, g := range groups {
		if dead[r] {
			continue
		}
		wg.Go(func() {
			for i := range messages {
				if err := g.Broadcast(ctx, message(r, i, size(i))); err != nil {
					t.Errorf("rank %d: %v", r, err)
					return
				}
			}
		})
		wg.Go(func() {
			if err := collect(ctx, g, want); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestGroupInMemory(t *testing.T) {
	groups, _ := joinMem(t, 9)
	everybody(t, groups, nil, 40, func(i int) int { return i * i * 37 })
}

func TestGroupOverTCP(t *testing.T) {
	everybody(t, joinTCP(t, 9), nil, 40, func(i int) int { return i * i * 137 })
}

// Members that died before anybody knew cost the others nothing.
func TestGroupWithUnknownDead(t *testing.T) {
	groups := joinTCP(t, 12)
	dead := map[int]bool{1: true, 2: true, 7: true}
	for r := range dead {
		if err := groups[r].Abort(); err != nil {
			t.Fatal(err)
		}
	}
	everybody(t, groups, dead, 20, func(i int) int { return i * 3000 })
}

// A network that loses, duplicates and reorders frames, breaks connections, and
// cuts members off for a while.
func TestGroupOnABadNetwork(t *testing.T) {
	bad := fault.New(1, fault.Config{})
	groups := joinTCPThrough(t, 10, bad.Wrap)
	script, err := fault.Parse(`
		drop 5%
		duplicate 5%
		reorder 5% within 3ms
		at 50ms  reset 2
		at 80ms  freeze 5
		at 100ms partition 0-6 | 7-9
		at 400ms heal
		at 450ms thaw 5
		at 500ms reset 7`)
	if err != nil {
		t.Fatal(err)
	}
	var ran sync.WaitGroup
	ran.Go(func() {
		if err := bad.Run(t.Context(), script); err != nil {
			t.Error(err)
		}
	})
	everybody(t, groups, nil, 60, func(i int) int { return i * 500 })
	ran.Wait()
}

// A message of many segments.
func TestGroupLargeMessage(t *testing.T) {
	groups := joinTCP(t, 5)
	everybody(t, groups, nil, 2, func(int) int { return 3 << 20 })
}

func TestBroadcastObeysItsContext(t *testing.T) {
	groups, _ := joinMem(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// A free outbox takes a message whatever the context says; one that must
	// wait does not.
	var err error
	for range 100000 {
		if err = groups[0].Broadcast(ctx, make([]byte, 1<<20)); err != nil {
			break
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestClosedGroup(t *testing.T) {
	groups, _ := joinMem(t, 2)
	if err := groups[0].Abort(); err != nil {
		t.Fatal(err)
	}
	if err := groups[0].Broadcast(t.Context(), []byte("x")); !errors.Is(err, pleach.ErrClosed) {
		t.Errorf("broadcast: %v", err)
	}
	for range groups[0].Messages(t.Context()) {
		t.Error("a closed group has messages")
	}
	if err := groups[0].Abort(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// Close returns within a second although nobody takes anything.
func TestCloseIsQuick(t *testing.T) {
	groups := joinTCP(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for range 1000 {
		if groups[0].Broadcast(ctx, make([]byte, 256<<10)) != nil {
			break
		}
	}
	start := time.Now()
	if err := groups[0].Abort(); err != nil {
		t.Error(err)
	}
	testutil.Took(t, "Abort", time.Since(start), time.Second)
}

// A setting that contradicts another or has no effect is refused, in words that
// say what to do.
func TestSettingsWithoutEffectAreRefused(t *testing.T) {
	static := func(c pleach.Config) (*pleach.Group, error) { return pleach.Start(t.Context(), c) }
	create := func(c pleach.Config) (*pleach.Group, error) { return pleach.Create(t.Context(), c) }
	join := func(c pleach.Config) (*pleach.Group, error) { return pleach.Join(t.Context(), c, "127.0.0.1:1") }
	inspect := func(c pleach.Config) (*pleach.Group, error) {
		_, err := pleach.Inspect(t.Context(), c, "127.0.0.1:1")
		return nil, err
	}
	world := func(c pleach.Config) (*pleach.Group, error) {
		w, err := pleach.NewWorld(t.Context(), c)
		if err == nil {
			_ = w.Abort()
		}
		return nil, err
	}
	addresses := []string{"127.0.0.1:1"}
	for _, test := range []struct {
		field  string
		call   func(pleach.Config) (*pleach.Group, error)
		config pleach.Config
	}{
		{"Addresses", create, pleach.Config{Addresses: addresses}},
		{"Addresses", join, pleach.Config{Addresses: addresses}},
		{"Rank", create, pleach.Config{Rank: 1}},
		{"Network.Size", static, pleach.Config{Addresses: addresses, Network: pleach.Network{Size: 3}}},
		{"Listen", static, pleach.Config{Addresses: addresses, Listen: "127.0.0.1:0"}},
		{"Advertise", world, pleach.Config{Addresses: addresses, Advertise: "127.0.0.1:1"}},
		{"ID", static, pleach.Config{Addresses: addresses, ID: "a"}},
		{"Static", create, pleach.Config{Static: true}},
		{"Static", world, pleach.Config{Static: true}},
		{"AllowMinority", static, pleach.Config{Addresses: addresses, Static: true, AllowMinority: true}},
		{"Job", static, pleach.Config{Addresses: addresses, Job: pleach.Job{QuorumTimeout: time.Second}}},
		{"Job", create, pleach.Config{Job: pleach.Job{Network: collective.Network{Inside: collective.Link{Latency: 1}}}}},
		{"Job.Network", world, pleach.Config{
			Addresses: addresses,
			Job:       pleach.Job{Network: collective.Network{Inside: collective.Link{Overhead: -1}}},
		}},
		{"Job.Network", world, pleach.Config{
			Addresses: addresses,
			Job:       pleach.Job{Network: collective.Network{Between: collective.Link{Bandwidth: -1}}},
		}},
		{"Detection.StartTimeout", join, pleach.Config{Detection: pleach.Detection{StartTimeout: time.Second}}},
		{"Detection", static, pleach.Config{
			Addresses: addresses, Static: true,
			Detection: pleach.Detection{Detectors: []detect.Detector{detect.NewFeed()}},
		}},
		{"Detection", static, pleach.Config{
			Addresses: addresses, Static: true,
			Detection: pleach.Detection{HeartbeatInterval: time.Second},
		}},
		{"Detection.HeartbeatInterval", create, pleach.Config{Detection: pleach.Detection{HeartbeatInterval: -1}}},
		{"Detection", static, pleach.Config{
			Addresses: addresses, Static: true,
			Detection: pleach.Detection{SuspicionTimeout: time.Second},
		}},
		{
			"Detection.SuspicionTimeout", create,
			pleach.Config{Detection: pleach.Detection{HeartbeatInterval: time.Second, SuspicionTimeout: time.Second}},
		},
		{
			"Network.Transport", world,
			pleach.Config{Network: pleach.Network{Transport: mem.NewNetwork(1, mem.Config{}).Member(0)}},
		},
		{"Security.TLS", static, pleach.Config{Network: pleach.Network{
			Transport: mem.NewNetwork(1, mem.Config{}).Member(0),
			Size:      1,
		}, Security: pleach.Security{TLS: &tls.Config{}}}},
		{"Rank", static, pleach.Config{
			Network: pleach.Network{Transport: mem.NewNetwork(1, mem.Config{}).Member(0), Size: 1},
			Rank:    1,
		}},
		{"OnMessage", inspect, pleach.Config{OnMessage: func(pleach.Message, error) {}}},
		{"Listen", create, pleach.Config{Listen: "0.0.0.0:0"}},
		{"Advertise", create, pleach.Config{Listen: "0.0.0.0:0", Advertise: "0.0.0.0:7000"}},
		{"Advertise", create, pleach.Config{Advertise: "127.0.0.1:0"}},
	} {
		g, err := test.call(test.config)
		var refused *pleach.ConfigError
		if !errors.As(err, &refused) || refused.Field != test.field {
			t.Errorf("%+v: error %v, want one about %s", test.config, err, test.field)
		}
		if g != nil {
			_ = g.Abort()
		}
	}
}
