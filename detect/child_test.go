//go:build unix

package detect

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/protocol"
)

// Real processes, to be killed and stopped: the test binary again, with a role
// in its environment and the member's config on its input.
const childRole = "PLEACH_DETECT_CHILD"

func runChild(role string) {
	in := json.NewDecoder(os.Stdin)
	switch role {
	case "listen":
		runListener()
	case "swim":
		if err := runSWIM(in); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // The parent's end is this one's too.
}

// runListener takes connections and says nothing, like a busy member.
func runListener() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("address", ln.Addr())
	go func() {
		var open []net.Conn
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			open = append(open, conn)
			fmt.Println("connections", len(open))
		}
	}()
}

// runSWIM says its address, reads whom to watch, says when it has met all of
// them, and then every report.
func runSWIM(in *json.Decoder) error {
	var config SWIMConfig
	if err := in.Decode(&config); err != nil {
		return err
	}
	s := NewSWIM(config)
	err := s.Start(func(r Report) {
		word := "suspected"
		if r.Alive {
			word = "trusted"
		}
		fmt.Println(word, r.Rank, r.Incarnation, r.Cause)
	})
	if err != nil {
		return err
	}
	fmt.Println("address", s.Address())
	var peers []Peer
	if err := in.Decode(&peers); err != nil {
		return err
	}
	s.Watch(peers)
	for s.alive() < len(peers) {
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("met", len(peers))
	return nil
}

// alive counts the peers met that are alive.
func (s *SWIM) alive() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.peers {
		if s.nodes[p.Rank].alive {
			n++
		}
	}
	return n
}

// child is such a process as its parent sees it.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  *json.Encoder

	mu    sync.Mutex
	lines []string
	at    []time.Time
}

func startChild(t *testing.T, role string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childRole+"="+role)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.in = json.NewEncoder(in)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.mu.Lock()
			c.lines, c.at = append(c.lines, lines.Text()), append(c.at, time.Now())
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		c.signal(syscall.SIGKILL)
		<-read
		_ = c.cmd.Wait()
		_ = in.Close()
	})
	return c
}

func (c *child) signal(s syscall.Signal) { _ = c.cmd.Process.Signal(s) }

func (c *child) tell(v any) {
	c.t.Helper()
	if err := c.in.Encode(v); err != nil {
		c.t.Fatal(err)
	}
}

// wait waits for a line with this beginning, and returns the rest of it and when
// it came.
func (c *child) wait(beginning string) (string, time.Time) {
	c.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		i := slices.IndexFunc(c.lines, func(l string) bool { return strings.HasPrefix(l, beginning) })
		if i >= 0 {
			defer c.mu.Unlock()
			return strings.TrimSpace(c.lines[i][len(beginning):]), c.at[i]
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.Fatalf("no %q in %q", beginning, c.lines)
	return "", time.Time{}
}

// mustNotSuspect fails if the process has suspected somebody but those allowed.
func (c *child) mustNotSuspect(who protocol.Rank, allowed ...protocol.Rank) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		var rank protocol.Rank
		if n, _ := fmt.Sscanf(l, "suspected %d", &rank); n == 1 && !slices.Contains(allowed, rank) {
			c.t.Errorf("rank %d wrongly: %s", who, l)
		}
	}
}
