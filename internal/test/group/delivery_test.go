package group_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Delivery among real processes: every member broadcasts while some are killed
// and some are stopped and go on, on networks good and bad. Every message whose
// root survives must be delivered by every survivor exactly once, in the root's
// order.

// deliverySize is how many members there are, how many of them die or are stopped,
// and how many messages each broadcasts.
type deliverySize struct{ members, kills, stops, messages int }

func sizeOfDelivery() deliverySize {
	if testutil.RaceEnabled {
		return deliverySize{12, 4, 2, 8} // the members run with the race detector too
	}
	return deliverySize{32, 10, 3, 20}
}

// calm is the time before anything goes wrong.
const calm = 300 * time.Millisecond

// injectFaults kills and stops members, and lets the stopped ones go on in the end.
// Rank 0 is spared.
func (s *deliverySize) injectFaults(c *cluster, rng *rand.Rand) {
	c.t.Helper()
	victims := rng.Perm(len(c.members) - 1)
	dead, stopped := victims[:s.kills], victims[s.kills:s.kills+s.stops]
	time.Sleep(calm)
	for i, victim := range dead {
		c.signal(victim+1, syscall.SIGKILL)
		if i < len(stopped) {
			c.signal(stopped[i]+1, syscall.SIGSTOP)
		}
		time.Sleep(time.Duration(rng.IntN(250)) * time.Millisecond)
	}
	for _, victim := range stopped {
		c.signal(victim+1, syscall.SIGCONT)
	}
}

// finish waits for the survivors, and ends them.
func finish(c *cluster) testutil.SoakReport {
	c.t.Helper()
	catchUp := c.settle(60 * time.Second)
	r := c.end()
	r.CatchUp = catchUp
	return r
}

func TestDeliveryUnderKilling(t *testing.T) {
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		size := sizeOfDelivery()
		c := startCluster(t, onLoopback(t, size.members), func(int) memberConfig {
			return memberConfig{Seed: seed, Messages: size.messages}
		})
		size.injectFaults(c, rand.New(rand.NewPCG(seed, 0)))
		return finish(c)
	})
}

// The same, while frames are dropped, duplicated and reordered, and connections
// are reset.
func TestDeliveryOnBadNetwork(t *testing.T) {
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		size := sizeOfDelivery()
		c := startCluster(t, onLoopback(t, size.members), func(int) memberConfig {
			return memberConfig{
				Seed: seed, Messages: size.messages, Resets: 300 * time.Millisecond,
				Faults: "drop 5%\n duplicate 5%\n reorder 5% within 3ms",
			}
		})
		size.injectFaults(c, rand.New(rand.NewPCG(seed, 0)))
		return finish(c)
	})
}

// The same between hosts that fall silent, for a while or for good, with two
// members on each.
func TestDeliveryBetweenHosts(t *testing.T) {
	testutil.Soak(t, func(t *testing.T, seed uint64) testutil.SoakReport {
		size := sizeOfDelivery()
		hosts := size.members / 2
		network := netns.New(t, hosts)
		c := startCluster(t, onHosts(network, hosts, size.members), func(int) memberConfig {
			return memberConfig{Seed: seed, Messages: size.messages + size.messages/2, Static: true}
		})
		injectHostFaults(c, network, hosts, rand.New(rand.NewPCG(seed, 0)))
		return finish(c)
	})
}

// injectHostFaults lets one host crash, cuts off some, parts the others in two, and
// kills a few members meanwhile. All but the crashed host come back. Host 0 is not
// struck alone.
func injectHostFaults(c *cluster, network *netns.Net, hosts int, rng *rand.Rand) {
	c.t.Helper()
	order := rng.Perm(hosts - 1)
	for i := range order {
		order[i]++
	}
	crashed, cut, rest := order[0], order[1:1+hosts/5], order[1+hosts/5:]
	while := func(most time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(most)))) }
	time.Sleep(calm)
	network.Cut(crashed) // first, so that nobody is told of the deaths
	c.signal(crashed, syscall.SIGKILL)
	c.signal(crashed+hosts, syscall.SIGKILL)
	for i, host := range cut {
		network.Cut(host)
		c.signal(rest[i]+hosts*rng.IntN(2), syscall.SIGKILL)
		while(300 * time.Millisecond)
	}
	while(500 * time.Millisecond)
	for _, host := range cut {
		network.Heal(host)
	}
	part := order[1 : 1+hosts/2]
	network.Partition(part...)
	while(time.Second)
	c.signal(cut[0], syscall.SIGKILL)
	while(time.Second)
	for _, host := range part {
		network.Heal(host)
	}
}

// A host that is cut off for so long that its connections are given up, or before
// it had any, still gets what was broadcast meanwhile, although nobody says
// anything more.
func TestDeliveryAfterLongCut(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("takes half a minute, which the race detector does not make more useful")
	}
	const hosts, lonely = 4, 3
	for name, tt := range map[string]struct{ connected, cut time.Duration }{
		"before it was connected": {0, 8 * time.Second},
		"until it was given up":   {time.Second, 13 * time.Second}, // tcp.Config.UserTimeout is 10 s
	} {
		t.Run(name, func(t *testing.T) {
			network := netns.New(t, hosts)
			if tt.connected == 0 {
				network.Cut(lonely)
			}
			c := startCluster(t, onHosts(network, hosts, hosts), func(rank int) memberConfig {
				if rank != 0 {
					return memberConfig{Static: true}
				}
				return memberConfig{Static: true, Messages: 20, Pace: 100 * time.Millisecond}
			})
			time.Sleep(tt.connected)
			network.Cut(lonely)
			time.Sleep(tt.cut)
			network.Heal(lonely)
			r := finish(c)
			r.Check(t)
		})
	}
}
