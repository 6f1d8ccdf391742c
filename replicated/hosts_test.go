//go:build linux

package replicated_test

import (
	"os"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A replica on each of five hosts. The leader and another one are cut off from the others, and
// come back when the network has healed: on both sides programs read and write all the time.
func TestHostsAreLinearizableUnderPartitions(t *testing.T) {
	network := netns.New(t, 5)
	var children []*child
	var seeds []string
	for host := range 5 {
		children = append(children, startCommand(t, network.Command(host, os.Args[0]), network.Address(host)+":7000",
			seeds...))
		seeds = append(seeds, network.Address(host)+":7000")
	}
	l := newLoad(t)
	for i, c := range children {
		l.add(c, 2*i)
		l.add(c, 2*i+1)
	}
	for round := range testutil.Rounds.Or(2) {
		l.more(t, 50)
		network.Partition(2*round%5, (2*round+1)%5)
		time.Sleep(2500 * time.Millisecond)
		network.HealAll()
	}
	l.finish(t, children)
}
