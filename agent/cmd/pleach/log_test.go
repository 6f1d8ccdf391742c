//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The load of tests of the log: messages in a second, of all senders together.
const loggedRate = 100

// loggedAgent is an agent with a directory, and a listener that stays.
type loggedAgent struct {
	agentProcess
	args   []string
	log    string
	client *client.Client

	mu     sync.Mutex
	heard  map[string][]int // numbers, by sender
	others []string         // what the listener was told beside messages
}

// startLogged starts agents with directories, and a listener at each. They are ended with the test.
func startLogged(t *testing.T, n int, more ...string) (agents []*loggedAgent) {
	t.Helper()
	return startEach(t, n, func(int) []string { return more })
}

// startEach is startLogged with arguments of each agent.
func startEach(t *testing.T, n int, more func(i int) []string) (agents []*loggedAgent) {
	t.Helper()
	dir, addresses := t.TempDir(), testutil.FreeAddresses(t, n)
	for i, address := range addresses {
		a := &loggedAgent{heard: make(map[string][]int), log: filepath.Join(dir, fmt.Sprint(i, ".log"))}
		a.t, a.id, a.socket = t, fmt.Sprintf("agent%d", i), filepath.Join(dir, strconv.Itoa(i))
		a.client = client.Socket(a.socket)
		a.args = append([]string{
			"agent", "--id", a.id, "--listen", address, "--socket", a.socket, "--data-dir", filepath.Join(dir, a.id),
			"--expect", strconv.Itoa(n),
		}, more(i)...)
		a.args = append(a.args, addresses...)
		a.start()
		t.Cleanup(a.kill)
		agents = append(agents, a)
	}
	for _, a := range agents {
		a.awaitMembers(n)
		a.listen()
	}
	return agents
}

// start starts the agent, for the first time or again.
func (a *loggedAgent) start() {
	a.t.Helper()
	output, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Fatal(err)
	}
	defer output.Close()
	a.cmd = exec.Command("pleach", a.args...)
	a.cmd.Stdout, a.cmd.Stderr = output, output
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
}

func (a *loggedAgent) kill() {
	if a.cmd.Process == nil {
		return // it could not be started
	}
	a.signal(syscall.SIGKILL)
	_ = a.cmd.Wait()
}

// listen starts pleach listen at the agent, and returns when it has subscribed: it hears what
// it sends to itself.
func (a *loggedAgent) listen() {
	a.t.Helper()
	cmd := exec.Command("pleach", "listen", "--json", "--socket", a.socket)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	go a.collect(out)
	testutil.Eventually(a.t, a.id+" hears itself", func() bool {
		if a.count(a.id) > 0 {
			return true
		}
		a.send(context.Background(), 0)
		return false
	})
}

// collect notes what the listener prints.
func (a *loggedAgent) collect(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e struct {
			Event, Data string
			Missing     uint64
		}
		err := json.Unmarshal(lines.Bytes(), &e)
		sender, number, _ := strings.Cut(e.Data, " ")
		n, bad := strconv.Atoi(number)
		a.mu.Lock()
		switch {
		case err != nil || e.Event != api.EventMessage || bad != nil:
			a.others = append(a.others, lines.Text())
		case n > 0 || sender == a.id:
			a.heard[sender] = append(a.heard[sender], n)
		}
		a.mu.Unlock()
	}
}

// send has the agent broadcast a number, and reports whether it has.
func (a *loggedAgent) send(ctx context.Context, n int) bool {
	_, err := a.client.Broadcast(ctx, "t", fmt.Appendf(nil, "%s %d", a.id, n), false, 10*time.Second)
	return err == nil
}

// count is how many messages of a sender the listener has heard.
func (a *loggedAgent) count(sender string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.heard[sender])
}

// numbers are what the listener has heard of a sender, from 1 on.
func (a *loggedAgent) numbers(sender string) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.heard[sender]), func(n int) bool { return n == 0 })
}

// told is what the listener was told beside messages.
func (a *loggedAgent) told() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.others)
}

// load is agents that send until it is stopped. A message that an agent does not accept is sent
// again.
type load struct {
	t       *testing.T
	cancel  context.CancelFunc
	sending sync.WaitGroup
	mu      sync.Mutex
	sent    map[string]int // how many each has sent
}

func startLoad(t *testing.T, agents []*loggedAgent) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t, cancel: cancel, sent: make(map[string]int)}
	for _, a := range agents {
		l.sent[a.id] = 0
		l.sending.Go(func() {
			tick := time.NewTicker(time.Second * time.Duration(len(agents)) / loggedRate)
			defer tick.Stop()
			for n := 1; ctx.Err() == nil; {
				<-tick.C
				if a.send(context.Background(), n) {
					l.mu.Lock()
					l.sent[a.id] = n
					l.mu.Unlock()
					n++
				}
			}
		})
	}
	return l
}

// numbers are how many messages each agent has sent.
func (l *load) numbers() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sent)
}

// more waits until each of the agents has sent so many messages more.
func (l *load) more(n int) {
	l.t.Helper()
	before := l.numbers()
	testutil.Eventually(l.t, fmt.Sprint(n, " more messages of each"), func() bool {
		for id, sent := range l.numbers() {
			if sent < before[id]+n {
				return false
			}
		}
		return true
	}, func() any { return fmt.Sprint(before, l.numbers()) })
}

// stop returns how many messages each has sent.
func (l *load) stop() map[string]int {
	l.cancel()
	l.sending.Wait()
	return l.numbers()
}

// outage is how long agents are away.
func outage() time.Duration {
	if testutil.Full.On() {
		return 30 * time.Second
	}
	return 2 * time.Second
}

// checkHeard checks that a listener has heard all messages, each once and in order, and nothing
// else.
func checkHeard(t *testing.T, a *loggedAgent, sent map[string]int) {
	t.Helper()
	testutil.Within(time.Minute, func() bool {
		return !slices.ContainsFunc(senders(sent), func(s string) bool { return len(a.numbers(s)) < sent[s] })
	})
	for _, sender := range senders(sent) {
		got := a.numbers(sender)
		if len(got) != sent[sender] {
			t.Errorf("%s has %d of %d messages of %s", a.id, len(got), sent[sender], sender)
		}
		for i, n := range got {
			if n != i+1 {
				t.Errorf("%s: message %d of %s is number %d", a.id, n, sender, i+1)
				break
			}
		}
	}
	if told := a.told(); len(told) > 0 {
		t.Errorf("%s was told %q", a.id, told)
	}
	if t.Failed() {
		b, _ := os.ReadFile(a.log)
		t.Logf("log of %s:\n%s", a.id, b)
	}
}

func senders(sent map[string]int) (ids []string) {
	for id := range sent {
		ids = append(ids, id)
	}
	return ids
}

// An agent is killed for a while under 100 messages a second and started again: the listener at
// it has every message once and in order, and is told of no gap. With PLEACH_FULL, the agent is
// away for 30 s, in 20 groups.
func TestListenAcrossKilledAgent(t *testing.T) {
	rounds := 1
	if testutil.Full.On() {
		rounds = 20
	}
	for round := range testutil.Rounds.Or(rounds) {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			agents := startLogged(t, 3)
			victim := agents[1+round%2]
			l := startLoad(t, []*loggedAgent{agents[0], agents[2-round%2]})
			l.more(loggedRate / 2)
			victim.kill()
			time.Sleep(outage())
			victim.start()
			victim.awaitMembers(3)
			l.more(loggedRate / 2)
			sent := l.stop()
			for _, a := range agents {
				checkHeard(t, a, sent)
			}
			t.Logf("sent: %v", sent)
		})
	}
}

// All agents are killed at once under load and started again: the listeners have the same
// messages, each once and in order, and are told of no gap.
func TestListenAcrossKilledGroup(t *testing.T) {
	t.Parallel()
	agents := startLogged(t, 3)
	l := startLoad(t, agents)
	l.more(loggedRate / 3)
	for _, a := range agents {
		a.signal(syscall.SIGKILL)
	}
	for _, a := range agents {
		_ = a.cmd.Wait()
		a.start()
	}
	for _, a := range agents {
		a.awaitMembers(3)
	}
	l.more(loggedRate / 3)
	sent := l.stop()
	for _, sender := range senders(sent) {
		last := func(a *loggedAgent) int { n := a.numbers(sender); return slices.Max(append(n, 0)) }
		for _, a := range agents {
			testutil.Within(time.Minute, func() bool { return last(a) >= sent[sender] })
			if got, want := a.numbers(sender), agents[0].numbers(sender); !slices.Equal(got, want) {
				t.Errorf("of %s, %s has %v, and %s has %v", sender, a.id, got, agents[0].id, want)
			} else if !slices.IsSorted(got) || len(slices.Compact(got)) < len(want) || len(want) < sent[sender]-5 {
				t.Errorf("of %s, %s has %v of %d", sender, a.id, got, sent[sender])
			}
		}
	}
	for _, a := range agents {
		if told := a.told(); len(told) > 0 {
			t.Errorf("%s was told %q", a.id, told)
		}
	}
}

// An agent is stopped until the others have removed it, and goes on: the listener at it has every
// message, and is told of no gap.
func TestListenAcrossRemoval(t *testing.T) {
	t.Parallel()
	agents := startLogged(t, 3)
	victim := agents[2]
	l := startLoad(t, agents[:2])
	l.more(loggedRate / 4)
	victim.signal(syscall.SIGSTOP)
	agents[0].awaitMembers(2)
	l.more(loggedRate / 2)
	victim.signal(syscall.SIGCONT)
	agents[0].awaitMembers(3)
	l.more(loggedRate / 2)
	checkHeard(t, victim, l.stop())
}

// Where no agent has them any more, the listener is told how many messages are missing.
func TestListenTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	agents := startLogged(t, 3, "--retain-messages", "50")
	victim := agents[2]
	l := startLoad(t, agents[:2])
	l.more(loggedRate / 4)
	victim.kill()
	l.more(loggedRate) // twice what is retained, of each
	victim.start()
	victim.awaitMembers(3)
	l.more(loggedRate / 4)
	sent := l.stop()
	total, heard := 0, 0
	for sender, n := range sent {
		total += n
		testutil.Within(time.Minute, func() bool { return slices.Contains(victim.numbers(sender), n) })
		got := victim.numbers(sender)
		heard += len(got)
		if !slices.IsSorted(got) || len(slices.Compact(got)) < len(victim.numbers(sender)) {
			t.Errorf("of %s: %v", sender, got)
		}
	}
	missing, gaps := 0, 0
	for _, line := range victim.told() {
		var e struct {
			Event          string
			Missing, Count int
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		missing += e.Missing + e.Count
		if e.Event == api.EventGap && e.Missing > 0 {
			gaps++
		}
	}
	if gaps != 1 || missing != total-heard {
		t.Errorf("%d of %d messages heard, told %q", heard, total, victim.told())
	}
}
