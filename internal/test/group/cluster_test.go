package group_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/netns"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// cluster is a group whose members are processes, see runMember.
type cluster struct {
	t       *testing.T
	config  func(rank int) memberConfig
	members []*process
	dead    []int
}

// process is one member as the test sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when its output has ended

	mu   sync.Mutex
	sent int
	have []int         // of each root
	late time.Duration // the longest a message took
	over *result       // nil until it is
	err  string        // not empty: what went wrong
}

// result is what a member says in the end.
type result struct{ lost, duplicated, peakKiB int }

// places is where members run: their addresses, and how a process starts there.
type places struct {
	addresses []string
	command   func(rank int) *exec.Cmd
}

// onLoopback gives every member a socket that listens already, so that none is
// refused because another starts late.
func onLoopback(t *testing.T, size int) places {
	t.Helper()
	p := places{addresses: make([]string, size)}
	files := make([]*os.File, size)
	for r := range files {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p.addresses[r] = l.Addr().String()
		files[r], err = l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
	}
	p.command = func(rank int) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.ExtraFiles = []*os.File{files[rank]}
		cmd.Env = append(os.Environ(), "PLEACH_LISTEN_FD=3")
		return cmd
	}
	return p
}

// onHosts deals members to hosts, so that neighbors on the ring are on different
// ones.
func onHosts(hosts *netns.Net, number, size int) places {
	p := places{addresses: make([]string, size)}
	for r := range p.addresses {
		p.addresses[r] = fmt.Sprintf("%s:%d", hosts.Address(r%number), 7000+r)
	}
	p.command = func(rank int) *exec.Cmd {
		cmd := hosts.Command(rank%number, os.Args[0])
		cmd.Env = os.Environ()
		return cmd
	}
	return p
}

// startCluster starts the members.
func startCluster(t *testing.T, at places, config func(rank int) memberConfig) *cluster {
	t.Helper()
	c := &cluster{t: t, config: config}
	for rank := range at.addresses {
		c.members = append(c.members, c.start(rank, at))
	}
	return c
}

func (c *cluster) start(rank int, at places) *process {
	c.t.Helper()
	config, err := json.Marshal(c.config(rank))
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := at.command(rank)
	cmd.Env = append(cmd.Env, memberProgram+"="+string(config), "PLEACH_GROUP=cluster",
		"PLEACH_RANK="+strconv.Itoa(rank), "PLEACH_SIZE="+strconv.Itoa(len(at.addresses)),
		"PLEACH_ADDRESSES="+strings.Join(at.addresses, ","))
	cmd.Stderr = os.Stderr
	p := &process{cmd: cmd, ended: make(chan struct{}), have: make([]int, len(at.addresses))}
	p.stdin, err = cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // or its socket would take connections when it is dead
	}
	go p.read(stdout)
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
		_ = cmd.Wait()
	})
	return p
}

// read follows what a member tells.
func (p *process) read(stdout io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		p.observe(lines.Text())
	}
	if p.over == nil && p.err == "" {
		p.observe("ended early")
	}
}

func (p *process) observe(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var root, number, micros int
	var r result
	if n, _ := fmt.Sscanf(line, "have %d %d %d", &root, &number, &micros); n == 3 {
		p.have[root] = number
		p.late = max(p.late, time.Duration(micros)*time.Microsecond)
	} else if n, _ := fmt.Sscanf(line, "sent %d", &number); n == 1 {
		p.sent = number
	} else if n, _ := fmt.Sscanf(line, "over %d %d %d", &r.lost, &r.duplicated, &r.peakKiB); n == 3 {
		p.over = &r
	} else {
		p.err = line
	}
}

// has is how many messages of a root a member has.
func (p *process) has(root int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have[root]
}

// signal sends a signal to a member. A killed one counts as dead from then on.
func (c *cluster) signal(rank int, s syscall.Signal) {
	c.t.Helper()
	if s == syscall.SIGKILL {
		c.dead = append(c.dead, rank)
	}
	if err := c.members[rank].cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// survivors are the ranks that were not killed.
func (c *cluster) survivors() (ranks []int) {
	for rank := range c.members {
		if !slices.Contains(c.dead, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// missing says what a survivor still lacks of the survivors' messages.
func (c *cluster) missing(rank int) (what string, failed bool) {
	p := c.members[rank]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != "" {
		return p.err, true
	}
	for _, root := range c.survivors() {
		if want := c.config(root).Messages; root != rank && p.have[root] < want {
			return fmt.Sprintf("%d of %d messages of root %d", p.have[root], want, root), false
		}
	}
	return "", false
}

// flushStep waits until all survivors have broadcast what they have to, and until all
// have got it, and returns how long the latter took after the former.
func (c *cluster) settle(patience time.Duration) time.Duration {
	c.t.Helper()
	var sent, now time.Time
	lacking, broadcasting := "", false
	complete := testutil.Within(patience, func() bool {
		now = time.Now()
		lacking, broadcasting = "", false
		for _, rank := range c.survivors() {
			what, failed := c.missing(rank)
			if what != "" {
				lacking = fmt.Sprintf("rank %d, dead %v: %s", rank, c.dead, what)
			}
			if failed {
				c.t.Fatal(lacking)
			}
			broadcasting = broadcasting || c.members[rank].broadcasting(c.config(rank).Messages)
		}
		if !broadcasting && sent.IsZero() {
			sent = now
		}
		return !broadcasting && lacking == ""
	})
	if !complete {
		c.t.Fatalf("after %v: broadcasting %v, %s", patience, broadcasting, lacking)
	}
	return now.Sub(sent)
}

func (p *process) broadcasting(messages int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent < messages
}

// end ends the survivors, and adds up what they say.
func (c *cluster) end() (all testutil.SoakReport) {
	c.t.Helper()
	for _, rank := range c.survivors() {
		_ = c.members[rank].stdin.Close()
	}
	for _, rank := range c.survivors() {
		p := c.members[rank]
		select {
		case <-p.ended:
		case <-time.After(10 * time.Second):
			c.t.Fatalf("rank %d does not end", rank)
		}
		if p.over == nil {
			c.t.Fatalf("rank %d: %s", rank, p.err)
		}
		all.Lost += p.over.lost
		all.Duplicated += p.over.duplicated
		all.PeakKiB = max(all.PeakKiB, p.over.peakKiB)
		for _, n := range p.have {
			all.Delivered += n
		}
	}
	return all
}
