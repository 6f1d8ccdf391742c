//go:build unix

package swim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// childRole makes the test binary a process with a detector, to be killed and
// stopped.
const childRole = "PLEACH_SWIM_CHILD"

// childConfig is what a child process reads from its input first.
type childConfig struct {
	Member  detect.Member
	Key     []byte
	Timeout time.Duration
}

// TestMain is also what child processes run. It checks that closed detectors leave
// no goroutine; memberlist's own may take a few seconds to end.
func TestMain(m *testing.M) {
	if os.Getenv(childRole) != "" {
		if err := runChild(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if code == 0 {
		if err := leaked(); err != nil {
			fmt.Fprintln(os.Stderr, "after all tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked waits for goroutines to end, and returns an error if some do not.
func leaked() (err error) {
	for range 10 {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}

// runChild prints its address, reads its peers, prints when it has met all of
// them, and then every report.
func runChild() error {
	in := json.NewDecoder(os.Stdin)
	var config childConfig
	if err := in.Decode(&config); err != nil {
		return err
	}
	s := New(local(Config{SuspicionTimeout: config.Timeout, Key: config.Key}))
	s.SetMember(config.Member)
	if err := s.Start(func(r detect.Report) { fmt.Println(line(r)) }); err != nil {
		return err
	}
	fmt.Println("address", s.Address())
	var peers []detect.Peer
	if err := in.Decode(&peers); err != nil {
		return err
	}
	s.Watch(detect.PeerList(peers))
	testutil.Within(time.Hour, func() bool { return s.alive() == len(peers) }) // the test waits for less
	fmt.Println("met", len(peers))
	_, _ = io.Copy(io.Discard, os.Stdin) // It ends with its parent.
	return nil
}

// local completes the config of a detector on loopback, on any port: a peer's
// address is that of its detector.
func local(c Config) Config {
	if c.Bind == "" {
		c.Bind = "127.0.0.1:0"
	}
	c.PeerAddress = func(p detect.Peer) string { return p.Address }
	return c
}

// line is a report as text.
func line(r detect.Report) string {
	word := "suspected"
	if r.Alive {
		word = "trusted"
	}
	return fmt.Sprint(word, " ", r.Rank, " ", r.Incarnation, " ", r.Cause)
}

// alive counts the peers that were met and are alive.
func (s *Detector) alive() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.peers.Since(nil) {
		if s.nodes[p.Rank].alive {
			n++
		}
	}
	return n
}

// startProcesses starts processes that have met each other.
func startProcesses(t *testing.T, n int, config childConfig) []*testutil.Process {
	t.Helper()
	children, peers := make([]*testutil.Process, n), make([]detect.Peer, n)
	for r := range children {
		children[r] = testutil.StartProcess(t, childRole, "member")
		config.Member.Rank, config.Member.Incarnation = protocol.Rank(r), uint64(100+r)
		children[r].Write(config)
		peers[r] = detect.Peer{Rank: config.Member.Rank, Incarnation: config.Member.Incarnation}
	}
	for r, c := range children {
		peers[r].Address, _ = c.Wait(t, "address")
	}
	for r, c := range children {
		c.Write(append(append([]detect.Peer(nil), peers[:r]...), peers[r+1:]...))
	}
	for _, c := range children {
		c.Wait(t, "met")
	}
	return children
}

// mustNotSuspect fails if a process has suspected a rank other than those allowed.
func mustNotSuspect(t *testing.T, children []*testutil.Process, by int, allowed ...protocol.Rank) {
	t.Helper()
	for _, l := range children[by].All() {
		var rank protocol.Rank
		if n, _ := fmt.Sscanf(l, "suspected %d", &rank); n == 1 && !slices.Contains(allowed, rank) {
			t.Errorf("rank %d wrongly: %s", by, l)
		}
	}
}
