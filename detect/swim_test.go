//go:build unix

package detect

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/protocol"
)

// startSWIM starts processes that have met each other.
func startSWIM(t *testing.T, n int, config SWIMConfig) []*child {
	t.Helper()
	children, peers := make([]*child, n), make([]Peer, n)
	for r := range children {
		children[r] = startChild(t, "swim")
		config.Rank, config.Incarnation = protocol.Rank(r), uint64(100+r)
		config.Bind = "127.0.0.1:0"
		children[r].tell(config)
		peers[r] = Peer{Rank: config.Rank, Incarnation: config.Incarnation}
	}
	for r, c := range children {
		peers[r].SWIM, _ = c.wait("address")
	}
	for r, c := range children {
		c.tell(append(append([]Peer(nil), peers[:r]...), peers[r+1:]...))
	}
	for _, c := range children {
		c.wait("met")
	}
	return children
}

// others calls f for all but one.
func others(children []*child, but int, f func(r int, c *child)) {
	for r, c := range children {
		if r != but {
			f(r, c)
		}
	}
}

// A member that is stopped for less than its grace is not suspected, one that is
// stopped for longer is trusted again when it goes on, and neither suspects
// anybody then (flux-core#638). One that is killed is suspected by all.
func TestSWIMAmongProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	t.Parallel()
	const grace = 2 * time.Second
	children := startSWIM(t, 5, SWIMConfig{Group: "test", Key: []byte("0123456789abcdef"), Grace: grace})

	children[1].signal(syscall.SIGSTOP)
	time.Sleep(grace * 3 / 4)
	children[1].signal(syscall.SIGCONT)
	time.Sleep(2 * grace)
	for r, c := range children {
		c.mustNotSuspect(protocol.Rank(r))
	}

	start := time.Now()
	children[2].signal(syscall.SIGSTOP)
	others(children, 2, func(r int, c *child) {
		rest, at := c.wait("suspected 2 102")
		t.Logf("stopped: rank %d suspects it after %v: %s", r, at.Sub(start), rest)
	})
	start = time.Now()
	children[2].signal(syscall.SIGCONT)
	others(children, 2, func(r int, c *child) {
		_, at := c.wait("trusted 2 102")
		t.Logf("resumed: rank %d trusts it after %v", r, at.Sub(start))
	})
	time.Sleep(grace)

	start = time.Now()
	children[3].signal(syscall.SIGKILL)
	others(children, 3, func(r int, c *child) {
		rest, at := c.wait("suspected 3 103")
		t.Logf("killed: rank %d suspects it after %v: %s", r, at.Sub(start), rest)
		if !strings.Contains(rest, ErrSilent.Error()) {
			t.Errorf("cause is %q", rest)
		}
	})
	others(children, 2, func(r int, c *child) { c.mustNotSuspect(protocol.Rank(r), 2, 3) })
	children[2].mustNotSuspect(2, 3)
}

// A member is stopped while it doubts another, and goes on with a timer that is
// overdue. The other has been fine for long. Neither it nor those it tells may
// suspect the other.
func TestResumedMemberSuspectsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	t.Parallel()
	const grace = 2 * time.Second
	children := startSWIM(t, 4, SWIMConfig{Grace: grace})
	for range 2 {
		children[1].signal(syscall.SIGSTOP)
		time.Sleep(grace * 3 / 4) // Long enough for all to doubt rank 1.
		children[2].signal(syscall.SIGSTOP)
		children[1].signal(syscall.SIGCONT)
		time.Sleep(2 * grace) // Long enough to suspect rank 2, too.
		children[2].signal(syscall.SIGCONT)
		time.Sleep(grace)
	}
	others(children, 2, func(r int, c *child) { c.mustNotSuspect(protocol.Rank(r), 2) })
	children[2].mustNotSuspect(2)
}

// localSWIM starts a member in this process.
func localSWIM(t *testing.T, config SWIMConfig) (*SWIM, *journal) {
	t.Helper()
	config.Bind = "127.0.0.1:0"
	s := NewSWIM(config)
	return s, started(t, s)
}

// meets waits until a member has met so many alive.
func meets(t *testing.T, s *SWIM, n int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); s.alive() != n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("rank %d has met %d, want %d", s.config.Rank, s.alive(), n)
		}
	}
}

// Through one seed, all are met whose address nobody knows. A process that takes
// another's place is not suspected for it, the former one is.
func TestSWIMFindsPeersAndTellsProcessesApart(t *testing.T) {
	const grace = 500 * time.Millisecond
	view := func(incarnation uint64) []Peer {
		return []Peer{{Rank: 0, Incarnation: 1}, {Rank: 1, Incarnation: incarnation}, {Rank: 2}}
	}
	a, aj := localSWIM(t, SWIMConfig{Rank: 0, Incarnation: 1, Grace: grace})
	seeds := []string{a.Address()}
	b, _ := localSWIM(t, SWIMConfig{Rank: 1, Incarnation: 5, Grace: grace, Seeds: seeds})
	c, cj := localSWIM(t, SWIMConfig{Rank: 2, Incarnation: 9, Grace: grace, Seeds: seeds})
	a.Watch(view(5)[1:])
	b.Watch([]Peer{view(5)[0], view(5)[2]})
	c.Watch(view(5)[:2])
	for _, s := range []*SWIM{a, b, c} {
		meets(t, s, 2)
	}

	closed(t, b)
	aj.want(t, suspected(1, 5))
	cj.want(t, suspected(1, 5))
	next, nj := localSWIM(t, SWIMConfig{Rank: 1, Incarnation: 6, Grace: grace, Seeds: seeds})
	next.Watch([]Peer{view(6)[0], view(6)[2]})
	meets(t, next, 2)
	meets(t, a, 2)
	a.Watch(view(6)[1:])
	c.Watch(view(6)[:2])
	closed(t, next)
	aj.want(t, suspected(1, 5), suspected(1, 6))
	cj.want(t, suspected(1, 5), suspected(1, 6))
	nj.want(t)
}

// The end of a former process may be heard of after its successor.
func TestSWIMKeepsTheLatestProcess(t *testing.T) {
	s := NewSWIM(SWIMConfig{})
	defer closed(t, s)
	s.Watch([]Peer{{Rank: 1, Incarnation: 5}})
	s.note(&memberlist.Node{Name: "1@6"}, true)
	s.note(&memberlist.Node{Name: "1@5"}, false)
	if s.alive() != 1 {
		t.Errorf("contact is %+v", s.nodes[1])
	}
	s.check()
	if why := s.tracker.suspicion(s.peers[0]); why == nil || why.Why != ErrReplaced {
		t.Errorf("suspicion is %v, want %v", why, ErrReplaced)
	}
}

// Members of other groups, or without the key, are nobody.
func TestSWIMKeepsToItsGroup(t *testing.T) {
	key := []byte("0123456789abcdef")
	a, _ := localSWIM(t, SWIMConfig{Rank: 0, Incarnation: 1, Group: "a", Key: key})
	for i, config := range []SWIMConfig{
		{Group: "b", Key: key},
		{Group: "a", Key: []byte("fedcba9876543210")},
		{Group: "a"},
	} {
		config.Rank, config.Incarnation = protocol.Rank(i+1), 1
		s, _ := localSWIM(t, config)
		s.Watch([]Peer{{Rank: 0, SWIM: a.Address()}})
		a.Watch([]Peer{{Rank: config.Rank, SWIM: s.Address()}})
		time.Sleep(300 * time.Millisecond)
		if n, m := s.alive(), a.alive(); n+m != 0 {
			t.Errorf("met although group and key are %q and %q", config.Group, config.Key)
		}
	}
}

func TestSWIMRefusesBadConfigs(t *testing.T) {
	taken, _ := localSWIM(t, SWIMConfig{Incarnation: 1})
	for _, config := range []SWIMConfig{
		{Rank: -1, Incarnation: 1},
		{Rank: 1},
		{Incarnation: 1, Grace: time.Millisecond},
		{Incarnation: 1, Bind: "127.0.0.1"},
		{Incarnation: 1, Bind: taken.Address()},
		{Incarnation: 1, Advertise: "127.0.0.1"},
		{Incarnation: 1, Key: []byte("short")},
		{Incarnation: 1, Group: strings.Repeat("x", 256)},
	} {
		s := NewSWIM(config)
		if err := s.Start(func(Report) {}); err == nil || errors.Is(err, ErrClosed) {
			t.Errorf("%+v: got %v", config, err)
		}
		closed(t, s)
	}
}

func FuzzParseName(f *testing.F) {
	for _, name := range []string{"", "@", "1@2", "-1@2", "01@2", "1@+2", "1@0", "0@18446744073709551615", "x"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		rank, incarnation, err := parseName(name)
		if err == nil && (rank < 0 || incarnation == 0 || fmt.Sprintf("%d@%d", rank, incarnation) != name) {
			t.Errorf("%q is taken for %d@%d", name, rank, incarnation)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	})
}
