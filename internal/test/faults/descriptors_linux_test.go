//go:build linux

package faults

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// counterRole is the environment variable that makes this test binary a member that counts
// messages. Its value is a counterConfig.
const counterRole = "PLEACH_FAULTS_COUNTER"

type counterConfig struct {
	Create     bool
	Listen, ID string
	Seeds      []string
	// Leak has the process take every descriptor that it can get, once it is a member.
	Leak bool
	// Spare is how many connections the process has descriptors for; 0: no limit.
	Spare int
}

func init() {
	testutil.PlayRole(counterRole, func(c counterConfig) {
		if err := c.run(); err != nil {
			fmt.Println("error", err)
		}
	})
}

// counts are how many messages a member has of each sender.
type counts struct {
	mu   sync.Mutex
	last map[string]string // number of the last message
	lost uint64
}

// run is the member. It broadcasts numbers, until a line of its input has it print how many
// it has sent. With each further line it prints the last number of each other member that it
// has, and what it knows of its own health.
func (c *counterConfig) run() error {
	if err := c.limit(); err != nil {
		return err
	}
	config := pleach.Config{
		Group: "faults", Listen: c.Listen, ID: c.ID,
		Logger: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	}
	start := func() (*pleach.Group, error) { return pleach.Join(context.Background(), config, c.Seeds...) }
	if c.Create {
		start = func() (*pleach.Group, error) { return pleach.Create(context.Background(), config) }
	}
	g, err := start()
	if err != nil {
		return err
	}
	fmt.Println("joined", g.Rank())
	if c.Leak {
		go leak()
	}
	have := counts{last: map[string]string{}}
	go have.count(g)
	ctx, stop := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sent := 0
	sending.Go(func() {
		for ; ctx.Err() == nil && g.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if g.Broadcast(context.Background(), fmt.Append(nil, c.ID, " ", sent+1)) == nil {
				sent++
			}
		}
	})
	input := bufio.NewScanner(os.Stdin)
	input.Scan()
	stop()
	sending.Wait()
	fmt.Println("sent", c.ID, sent)
	for input.Scan() {
		have.mu.Lock()
		fmt.Println("have", have.last, "lost", have.lost, "view", g.View().Number, "told", cmp.Or(g.Err(), g.View().Err))
		have.mu.Unlock()
	}
	return nil
}

// limit leaves the process descriptors for its listener and a few connections, beside those
// that it has open once it uses the network.
func (c *counterConfig) limit() error {
	if c.Spare == 0 {
		return nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	conn, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	// The limit is of their numbers, not of how many there are: those that the process was
	// started with may lie above it. The listener's number is free again, too.
	limit := syscall.Rlimit{}
	for free := 0; free < 1+c.Spare; limit.Cur++ {
		if number := int(limit.Cur); number == fd(l) || number == fd(conn) || !inUse(number) {
			free++
		}
	}
	limit.Max = limit.Cur
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// fd is the number of a socket's descriptor.
func fd(socket any) (number int) {
	raw, err := socket.(syscall.Conn).SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { number = int(n) })
	}
	if err != nil {
		panic(err)
	}
	return number
}

// inUse reports whether a number is that of an open descriptor.
func inUse(number int) bool {
	_, err := os.Lstat(fmt.Sprint("/proc/self/fd/", number))
	return err == nil
}

// leak takes every descriptor that is free, and keeps it.
func leak() {
	for ; ; time.Sleep(time.Millisecond) {
		for err := error(nil); err == nil; {
			_, err = syscall.Open(os.DevNull, syscall.O_RDONLY, 0)
		}
	}
}

// count takes messages.
func (h *counts) count(g *pleach.Group) {
	for m, err := range g.Messages(context.Background()) {
		id, number, _ := strings.Cut(string(m.Data), " ")
		h.mu.Lock()
		if err == nil {
			h.last[id] = number
		}
		if lost, ok := errors.AsType[*pleach.LostError](err); ok {
			h.lost += lost.Count
		}
		h.mu.Unlock()
	}
}

// Case 60: a member has descriptors for as few connections as it can live with. Another one
// is killed and started again. Every member gets everything that is sent, up to the last
// message of each sender, or it is told that it has no quorum, or is no longer a member. The
// short one says what it lacks.
func TestCase60FewDescriptors(t *testing.T) {
	const size, short, restarted = 8, 3, 5
	for _, c := range []struct {
		name  string
		spare int
		leak  bool
	}{{"for two connections", 2, false}, {"for three connections", 3, false}, {"leaked", 20, true}} {
		t.Run(c.name, func(t *testing.T) {
			ps := startCounters(t, size)
			ps.configs[short].Spare, ps.configs[short].Leak = c.spare, c.leak
			for i := range ps.configs {
				ps.start(i)
			}
			time.Sleep(seconds())
			ps.running[restarted].Kill()
			ps.start(restarted)
			time.Sleep(seconds())
			took, told := ps.finish()
			if !strings.Contains(ps.lines(short), syscall.EMFILE.Error()) {
				t.Error("the short one does not say what it lacks")
			}
			figures(t, map[string]any{
				"case": 60, "variant": c.name, "members": size, "told": told,
				"all_ms": took.Milliseconds(),
			})
		})
	}
}

// counters are the processes, as the test sees them.
type counters struct {
	t       *testing.T
	configs []counterConfig
	running []*testutil.Process
}

// startCounters describes processes. The first one creates their group.
func startCounters(t *testing.T, size int) *counters {
	cs := &counters{t: t, running: make([]*testutil.Process, size)}
	addresses := testutil.FreeAddresses(t, size)
	for i, address := range addresses {
		cs.configs = append(cs.configs, counterConfig{
			Create: i == 0, Listen: address, ID: fmt.Sprint("m", i),
			Seeds: addresses,
		})
	}
	t.Cleanup(func() {
		for i, p := range cs.running {
			if t.Failed() && p != nil {
				t.Logf("m%d:\n\t%s", i, cs.lines(i))
			}
		}
	})
	return cs
}

// start starts a process, and waits until it is a member.
func (cs *counters) start(i int) {
	cs.t.Helper()
	cs.running[i] = testutil.StartRole(cs.t, counterRole, cs.configs[i])
	cs.running[i].Wait(cs.t, "joined")
}

// lines is what a process has printed.
func (cs *counters) lines(i int) string { return strings.Join(cs.running[i].All(), "\n\t") }

// finish ends the broadcasts, and waits until each process has the last message of each
// other one, or knows that it will not get it. It returns how many do.
func (cs *counters) finish() (took time.Duration, over int) {
	cs.t.Helper()
	began, sent := time.Now(), map[string]string{}
	for _, p := range cs.running {
		p.Write("stop")
	}
	for _, p := range cs.running {
		text, _ := p.Wait(cs.t, "sent ")
		id, number, _ := strings.Cut(text, " ")
		sent[id] = number
	}
	for {
		told := make([]string, len(cs.running))
		for i := range told {
			told[i] = cs.ask(i)
			if !strings.Contains(told[i], "told <nil>") {
				delete(sent, cs.configs[i].ID)
			}
		}
		lacks := slices.IndexFunc(ranksBut(len(told)), func(i int) bool {
			id := cs.configs[i].ID
			return sent[id] != "" && !complete(told[i], id, sent)
		})
		took = time.Since(began)
		if lacks < 0 {
			return took, len(told) - len(sent)
		}
		if took > 40*time.Second {
			cs.t.Fatalf("m%d has %s, of %v", lacks, told[lacks], sent)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ask has a process say what it has.
func (cs *counters) ask(i int) string {
	cs.t.Helper()
	p := cs.running[i]
	before := len(p.All())
	p.Write("ask")
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, line := range p.All()[before:] {
			if strings.HasPrefix(line, "have ") {
				return line
			}
		}
	}
	cs.t.Fatalf("m%d does not answer", i)
	return ""
}

// complete reports whether a member has the last message of every other one.
func complete(told, id string, sent map[string]string) bool {
	have, _, _ := strings.Cut(strings.TrimPrefix(told, "have map["), "]")
	fields := strings.Fields(have)
	for of, number := range sent {
		if of != id && !slices.Contains(fields, of+":"+number) {
			return false
		}
	}
	return true
}
