package group_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
	"github.com/pleach-go/pleach/transport/fault"
)

// startTraced starts members over a network with faults, that take no silence amiss.
func startTraced(t *testing.T, size int) ([]*pleach.Group, *fault.Network) {
	t.Helper()
	bad, addresses := fault.New(1, fault.Config{}), testutil.FreeAddresses(t, size)
	groups := make([]*pleach.Group, size)
	for r := range groups {
		inner, err := tcp.New(tcp.Config{Rank: protocol.Rank(r), Addresses: addresses, Open: true})
		if err != nil {
			t.Fatal(err)
		}
		groups[r] = start(t, pleach.Config{
			Addresses: addresses, Rank: r,
			Network:   pleach.Network{Transport: bad.Wrap(protocol.Rank(r), inner)},
			Detection: pleach.Detection{SuspicionTimeout: -1},
		})
	}
	meet(t, groups)
	return groups, bad
}

// arrivals returns the arrivals of a trace by rank. There is one of each other member.
func arrivals(t *testing.T, trace *pleach.Trace, size int) map[int]pleach.Arrival {
	t.Helper()
	byRank := make(map[int]pleach.Arrival)
	for i, a := range trace.Arrivals {
		byRank[a.Rank] = a
		if i > 0 && a.After < trace.Arrivals[i-1].After || a.After < 0 {
			t.Errorf("rank %d after %v", a.Rank, a.After)
		}
	}
	if len(byRank) != size-1 || len(trace.Arrivals) != size-1 || len(trace.Missing) != 0 {
		t.Errorf("%+v", trace)
	}
	return byRank
}

// A traced broadcast goes along the tree. A member that its parent does not reach gets it
// from another one, and says so.
func TestTrace(t *testing.T) {
	const size, root = 9, 2
	groups, bad := startTraced(t, size)
	tree, err := topology.New(topology.Binomial(), topology.Interleaved, size, root)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := groups[root].BroadcastTraced(t.Context(), "", []byte("marked"))
	if err != nil || trace.Root != root || trace.View != 1 || time.Since(trace.Sent) > time.Hour {
		t.Fatalf("%+v: %v", trace, err)
	}
	byTree := 0
	for rank, a := range arrivals(t, trace, size) {
		if parent, _ := tree.Parent(protocol.Rank(rank)); a.Path == pleach.PathTree && a.From == int(parent) {
			byTree++
		}
	}
	if byTree == 0 {
		t.Errorf("none came along the tree: %+v", trace)
	}
	for r, g := range groups {
		if r != root {
			for m := range g.Messages(t.Context()) {
				if !bytes.Equal(m.Data, []byte("marked")) {
					t.Errorf("rank %d got %q", r, m.Data)
				}
				break
			}
		}
	}

	child, _ := tree.Child(root, 0)
	script, err := fault.Parse(fmt.Sprintf("cut %d->%d", root, child))
	if err == nil {
		err = bad.Run(t.Context(), script)
	}
	if err != nil {
		t.Fatal(err)
	}
	trace, err = groups[root].BroadcastTraced(t.Context(), "unread", []byte("cut"))
	if err != nil {
		t.Fatalf("%+v: %v", trace, err)
	}
	if a := arrivals(t, trace, size)[int(child)]; a.From == root {
		t.Errorf("%+v", a)
	}
}

// A trace that does not become complete has what was reported.
func TestTraceWithoutAnswer(t *testing.T) {
	const size = 4
	groups, bad := startTraced(t, size)
	script, err := fault.Parse("partition 0 1 2 | 3")
	if err == nil {
		err = bad.Run(t.Context(), script)
	}
	if err != nil {
		t.Fatal(err)
	}
	var trace *pleach.Trace
	for timeout := 200 * time.Millisecond; timeout < time.Minute; timeout *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		trace, err = groups[0].BroadcastTraced(ctx, "", []byte("to all"))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && trace != nil && fmt.Sprint(trace.Missing) == "[3]" &&
			len(trace.Arrivals) == 2 {
			return
		}
	}
	t.Errorf("%+v: %v", trace, err)
}
