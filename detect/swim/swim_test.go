//go:build unix

package swim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// others calls f for all but one.
func others(children []*testutil.Process, but int, f func(r int, c *testutil.Process)) {
	for r, c := range children {
		if r != but {
			f(r, c)
		}
	}
}

// A member that is stopped for less than the timeout is not suspected, one that is
// stopped for longer is trusted again when it goes on, and neither suspects
// anybody then (flux-core#638). One that is killed is suspected by all.
func TestAmongProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	t.Parallel()
	const timeout = 2 * time.Second
	children := startProcesses(t, 5, childConfig{
		Member: detect.Member{Group: "test"}, Key: []byte("0123456789abcdef"),
		Timeout: timeout,
	})

	children[1].Signal(syscall.SIGSTOP)
	time.Sleep(timeout * 3 / 4)
	children[1].Signal(syscall.SIGCONT)
	time.Sleep(2 * timeout)
	for r := range children {
		mustNotSuspect(t, children, r)
	}

	start := time.Now()
	children[2].Signal(syscall.SIGSTOP)
	others(children, 2, func(r int, c *testutil.Process) {
		rest, at := c.Wait(t, "suspected 2 102")
		t.Logf("stopped: rank %d suspects it after %v: %s", r, at.Sub(start), rest)
	})
	start = time.Now()
	children[2].Signal(syscall.SIGCONT)
	others(children, 2, func(r int, c *testutil.Process) {
		_, at := c.Wait(t, "trusted 2 102")
		t.Logf("resumed: rank %d trusts it after %v", r, at.Sub(start))
	})
	time.Sleep(timeout)

	start = time.Now()
	children[3].Signal(syscall.SIGKILL)
	others(children, 3, func(r int, c *testutil.Process) {
		rest, at := c.Wait(t, "suspected 3 103")
		t.Logf("killed: rank %d suspects it after %v: %s", r, at.Sub(start), rest)
		if !strings.Contains(rest, detect.ErrSilent.Error()) {
			t.Errorf("cause is %q", rest)
		}
	})
	others(children, 2, func(r int, _ *testutil.Process) { mustNotSuspect(t, children, r, 2, 3) })
	mustNotSuspect(t, children, 2, 3)
}

// A member is stopped while it doubts another, and goes on with a timer that is
// overdue. The other has been fine for long. Neither it nor those it tells may
// suspect the other.
func TestResumedMemberSuspectsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	t.Parallel()
	const timeout = 2 * time.Second
	children := startProcesses(t, 4, childConfig{Timeout: timeout})
	for range 2 {
		children[1].Signal(syscall.SIGSTOP)
		time.Sleep(timeout * 3 / 4) // Long enough for all to doubt rank 1.
		children[2].Signal(syscall.SIGSTOP)
		children[1].Signal(syscall.SIGCONT)
		time.Sleep(2 * timeout) // Long enough to suspect rank 2, too.
		children[2].Signal(syscall.SIGCONT)
		time.Sleep(timeout)
	}
	others(children, 2, func(r int, _ *testutil.Process) { mustNotSuspect(t, children, r, 2) })
	mustNotSuspect(t, children, 2)
}

// startLocal starts a detector in this process. Its reports are the lines.
func startLocal(t *testing.T, self detect.Member, config Config) (*Detector, *testutil.Lines) {
	t.Helper()
	s, reports := New(local(config)), new(testutil.Lines)
	s.SetMember(self)
	if err := s.Start(func(r detect.Report) { reports.Add(line(r)) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, s) })
	return s, reports
}

// closed closes a detector, which must not take long.
func closed(t *testing.T, s *Detector) {
	t.Helper()
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	testutil.Took(t, "Close", time.Since(start), 3*time.Second)
}

// expect waits for the last of the reports that are to come, and compares all.
func expect(t *testing.T, reports *testutil.Lines, want ...string) {
	t.Helper()
	if len(want) > 0 {
		reports.Wait(t, want[len(want)-1])
	}
	got := reports.All()
	same := func(got, want string) bool { return strings.HasPrefix(got, want) }
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("reports %q, want %q", got, want)
	}
}

// meets waits until a member has met so many alive.
func meets(t *testing.T, s *Detector, n int) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("rank %d meets %d", s.member.Rank, n), func() bool { return s.alive() == n },
		func() any { return s.alive() })
}

// Through one seed, all are met whose address nobody knows. A process that takes
// another's place is not suspected for it, the former one is.
func TestFindsPeersAndTellsProcessesApart(t *testing.T) {
	const timeout = 500 * time.Millisecond
	view := func(incarnation uint64) []detect.Peer {
		return []detect.Peer{{Rank: 0, Incarnation: 1}, {Rank: 1, Incarnation: incarnation}, {Rank: 2}}
	}
	a, aj := startLocal(t, detect.Member{Rank: 0, Incarnation: 1}, Config{SuspicionTimeout: timeout})
	seeds := []string{a.Address()}
	b, _ := startLocal(t, detect.Member{Rank: 1, Incarnation: 5}, Config{SuspicionTimeout: timeout, Seeds: seeds})
	c, cj := startLocal(t, detect.Member{Rank: 2, Incarnation: 9}, Config{SuspicionTimeout: timeout, Seeds: seeds})
	a.Watch(detect.PeerList(view(5)[1:]))
	b.Watch(detect.PeerList([]detect.Peer{view(5)[0], view(5)[2]}))
	c.Watch(detect.PeerList(view(5)[:2]))
	for _, s := range []*Detector{a, b, c} {
		meets(t, s, 2)
	}

	closed(t, b)
	expect(t, aj, "suspected 1 5")
	expect(t, cj, "suspected 1 5")
	next, nj := startLocal(t, detect.Member{Rank: 1, Incarnation: 6}, Config{SuspicionTimeout: timeout, Seeds: seeds})
	next.Watch(detect.PeerList([]detect.Peer{view(6)[0], view(6)[2]}))
	meets(t, next, 2)
	meets(t, a, 2)
	a.Watch(detect.PeerList(view(6)[1:]))
	c.Watch(detect.PeerList(view(6)[:2]))
	closed(t, next)
	expect(t, aj, "suspected 1 5", "suspected 1 6")
	expect(t, cj, "suspected 1 5", "suspected 1 6")
	expect(t, nj)
}

// The end of a former process may be heard of after its successor.
func TestKeepsTheLatestProcess(t *testing.T) {
	s := New(Config{})
	defer closed(t, s)
	s.Watch(detect.PeerList([]detect.Peer{{Rank: 1, Incarnation: 5}}))
	s.note(&memberlist.Node{Name: "1@6"}, true)
	s.note(&memberlist.Node{Name: "1@5"}, false)
	if s.alive() != 1 {
		t.Errorf("node is %+v", s.nodes[1])
	}
	s.check()
	p, _ := s.peers.Find(1)
	if why := s.tracker.Suspicion(p); why == nil || why.Why != detect.ErrReplaced {
		t.Errorf("suspicion is %v, want %v", why, detect.ErrReplaced)
	}
}

// Members of other groups, or without the key, are nobody.
func TestKeepsToItsGroup(t *testing.T) {
	key := []byte("0123456789abcdef")
	a, _ := startLocal(t, detect.Member{Rank: 0, Incarnation: 1, Group: "a"}, Config{Key: key})
	for i, other := range []struct {
		group string
		key   []byte
	}{
		{"b", key},
		{"a", []byte("fedcba9876543210")},
		{"a", nil},
	} {
		self := detect.Member{Rank: protocol.Rank(i + 1), Incarnation: 1, Group: other.group}
		s, _ := startLocal(t, self, Config{Key: other.key})
		s.Watch(detect.PeerList([]detect.Peer{{Rank: 0, Address: a.Address()}}))
		a.Watch(detect.PeerList([]detect.Peer{{Rank: self.Rank, Address: s.Address()}}))
		time.Sleep(300 * time.Millisecond)
		if n, m := s.alive(), a.alive(); n+m != 0 {
			t.Errorf("met although group and key are %q and %q", other.group, other.key)
		}
	}
}

// Without a key of its own, a detector takes that of the group.
func TestKeyOfTheGroup(t *testing.T) {
	own, group := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	for _, c := range []struct{ own, group, want []byte }{{own, group, own}, {nil, group, group}, {nil, nil, nil}} {
		m, err := (&Config{Key: c.own}).memberlist(&detect.Member{Incarnation: 1, Key: c.group})
		if err != nil || !bytes.Equal(m.SecretKey, c.want) {
			t.Errorf("%q and %q: %q, %v", c.own, c.group, m.SecretKey, err)
		}
	}
}

func TestRefusesBadConfigs(t *testing.T) {
	member := detect.Member{Incarnation: 1}
	taken, _ := startLocal(t, member, Config{})
	for _, bad := range []struct {
		self   detect.Member
		config Config
	}{
		{detect.Member{Rank: -1, Incarnation: 1}, Config{}},
		{detect.Member{Rank: 1}, Config{}},
		{detect.Member{Incarnation: 1, Group: strings.Repeat("x", 256)}, Config{}},
		{member, Config{SuspicionTimeout: time.Millisecond}},
		{member, Config{Port: 70_000}},
		{member, Config{Bind: "127.0.0.1"}},
		{member, Config{Bind: taken.Address()}},
		{member, Config{Advertise: "127.0.0.1"}},
		{member, Config{Key: []byte("short")}},
	} {
		s := New(local(bad.config))
		s.SetMember(bad.self)
		if err := s.Start(func(detect.Report) {}); err == nil || errors.Is(err, detect.ErrClosed) {
			t.Errorf("%+v: got %v", bad, err)
		}
		closed(t, s)
	}
}

func TestStartAndCloseOnce(t *testing.T) {
	s, _ := startLocal(t, detect.Member{Rank: 1, Incarnation: 1}, Config{})
	ignore := func(detect.Report) {}
	if err := s.Start(ignore); !errors.Is(err, detect.ErrStarted) {
		t.Errorf("started twice: %v", err)
	}
	closed(t, s)
	s.Watch(detect.PeerList([]detect.Peer{{Rank: 3}}))
	if err := s.Start(ignore); !errors.Is(err, detect.ErrClosed) {
		t.Errorf("started after Close: %v", err)
	}
	closed(t, New(Config{}))
}

// With a port, the detector and those of its peers are on the hosts of the members.
func TestAddressesFollowFromThePort(t *testing.T) {
	c := Config{Port: 7946}
	m, err := c.memberlist(&detect.Member{Incarnation: 1, Address: "127.0.0.3:27600"})
	if err != nil || m.BindAddr != "127.0.0.3" || m.BindPort != 7946 {
		t.Errorf("bound to %s:%d, %v", m.BindAddr, m.BindPort, err)
	}
	if a := c.peerAddress(detect.Peer{Address: "10.0.0.1:5"}); a != "10.0.0.1:7946" {
		t.Errorf("a peer's detector is at %q", a)
	}
	if a := c.peerAddress(detect.Peer{}); a != "" {
		t.Errorf("the detector of a peer of unknown address is at %q", a)
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
