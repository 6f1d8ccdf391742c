package node_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/internal/node"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/mem"
)

// throttling is a protocol that may be congested.
type throttling struct {
	echo
	until protocol.Time
}

func (r *throttling) ThrottledUntil(protocol.Rank) protocol.Time { return r.until }

// startThrottling makes a node that sends, and one that is congested until a time.
func startThrottling(t *testing.T, until time.Duration) (*throttling, [2]*node.Node, func(string)) {
	t.Helper()
	network := mem.NewNetwork(2, mem.Config{})
	sender, r := &echo{due: protocol.Never}, &throttling{echo{due: protocol.Never}, protocol.Time(until)}
	nodes := [2]*node.Node{
		node.New(node.Config{Transport: network.Member(0), Protocol: sender}),
		node.New(node.Config{Transport: network.Member(1), Protocol: r}),
	}
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return r, nodes, func(frame string) { send(t, nodes[0], sender, frame) }
}

// A congested protocol gets nothing more from a peer, until its time is over or
// something has happened that ends it.
func TestThrottledReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, nodes, sends := startThrottling(t, time.Second)
		sends("a")
		sends("b")
		synctest.Wait()
		if got := r.logged(); slices.Contains(got, `"b" from 0`) || !slices.Contains(got, `"a" from 0`) {
			t.Errorf("while congested: %q", got)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if got := r.logged(); !slices.Contains(got, `"b" from 0`) {
			t.Errorf("after its time: %q", got)
		}
		set := func(until protocol.Time) {
			if err := nodes[1].Do(func(protocol.Time) { r.until = until }); err != nil {
				t.Fatal(err)
			}
		}
		set(protocol.Time(time.Hour))
		sends("c")
		sends("d")
		synctest.Wait()
		if got := r.logged(); slices.Contains(got, `"d" from 0`) {
			t.Errorf("congested again: %q", got)
		}
		set(0)
		synctest.Wait()
		if got := r.logged(); !slices.Contains(got, `"d" from 0`) {
			t.Errorf("no longer congested: %q", got)
		}
		closeAll(t, nodes)
	})
}

// Close does not wait for a congested protocol.
func TestCloseWhileThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes, sends := startThrottling(t, time.Hour)
		sends("a")
		synctest.Wait()
		began := time.Now()
		closeAll(t, nodes)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}
