package group_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/pleach-go/pleach"
)

// A program may open connections itself, as through a proxy: requests to join, and the
// connections of a member.
func TestConnectionsAreDialedByTheProgram(t *testing.T) {
	address := founder(t, pleach.Config{})
	var dials atomic.Int64
	c := pleach.Config{Network: pleach.Network{Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
		dials.Add(1)
		if to == "proxied:1" {
			to = address
		}
		return new(net.Dialer).DialContext(ctx, network, to)
	}}}
	g := member(t)(pleach.Join(t.Context(), c, "proxied:1"))
	if g.Size() != 2 || dials.Load() == 0 {
		t.Errorf("%d members, %d dials", g.Size(), dials.Load())
	}
	none := errors.New("no way")
	c.Network.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, none }
	ctx, cancel := context.WithTimeout(t.Context(), soon/8)
	defer cancel()
	if _, err := pleach.Inspect(ctx, c, address); err == nil {
		t.Error("inspected without a connection")
	}
}
