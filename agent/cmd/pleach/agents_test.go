//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// promisedTruth is how soon an operator sees that a member hangs or is dead.
const promisedTruth = 2 * time.Second

// agentProcess is pleach agent in a process of its own.
type agentProcess struct {
	t          *testing.T
	id, socket string
	cmd        *exec.Cmd
}

// startAgents starts agents alike: some together on one host, and the others apart, each on a
// host of its own. It returns when all are members.
func startAgents(t *testing.T, together, apart int) (agents []*agentProcess) {
	t.Helper()
	network, dir := netns.New(t, apart+1), t.TempDir()
	addresses := make([]string, together+apart)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("%s:%d", network.Address(max(i-together+1, 0)), 7000+i)
	}
	for i, address := range addresses {
		a := &agentProcess{t: t, id: fmt.Sprintf("agent%d", i), socket: filepath.Join(dir, strconv.Itoa(i))}
		args := []string{
			"agent", "--id", a.id, "--listen", address, "--socket", a.socket,
			"--expect", strconv.Itoa(len(addresses)),
		}
		a.cmd = network.Command(max(i-together+1, 0), "pleach", append(args, addresses[0], addresses[1],
			addresses[len(addresses)-1])...)
		output, err := os.Create(filepath.Join(dir, a.id+".log"))
		if err != nil {
			t.Fatal(err)
		}
		defer output.Close()
		a.cmd.Stdout, a.cmd.Stderr = output, output
		if err := a.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			a.signal(syscall.SIGKILL)
			_ = a.cmd.Wait()
		})
		agents = append(agents, a)
	}
	// Members of the first view may not have started yet. Those that tell their version have.
	agents[0].await("all members with their versions", func(s *statusJSON) bool {
		silent := slices.ContainsFunc(s.Members.Members, func(m api.Member) bool { return m.Meta == "" })
		return len(s.Members.Members) == len(agents) && !silent
	})
	return agents
}

// signal sends a signal. A process that is to stop has stopped when it returns.
func (a *agentProcess) signal(s syscall.Signal) {
	_ = a.cmd.Process.Signal(s)
	if s == syscall.SIGSTOP {
		testutil.Eventually(a.t, a.id+" is stopped", func() bool { return stopped(a.cmd.Process.Pid) })
	}
}

// stopped reports whether all threads of a process are stopped, or cannot be looked at.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		_, state, ok := strings.Cut(string(stat), ") ")
		if err == nil && ok && state[0] != 'T' {
			return false
		}
	}
	return true
}

// status is what pleach status --json prints, or nil if the agent does not answer yet.
func (a *agentProcess) status() *statusJSON {
	out, err := exec.Command("pleach", "status", "--json", "--socket", a.socket).Output()
	if err != nil {
		return nil
	}
	var s statusJSON
	if err := json.Unmarshal(out, &s); err != nil {
		a.t.Fatalf("%v: %s", err, out)
	}
	return &s
}

// await asks for the status until it is as wanted, and returns when that was.
func (a *agentProcess) await(what string, ok func(*statusJSON) bool) time.Time {
	a.t.Helper()
	testutil.Eventually(a.t, what+" for "+a.id, func() bool {
		s := a.status()
		return s != nil && ok(s)
	})
	return time.Now()
}

func (a *agentProcess) awaitMembers(n int) {
	a.t.Helper()
	a.await(fmt.Sprint(n, " members"), func(s *statusJSON) bool {
		return len(s.Members.Members) == n &&
			len(s.Status.Suspects) == 0
	})
}

// stateOf is the state of a member in a status, or gone.
func stateOf(s *statusJSON, id string) string {
	i := slices.IndexFunc(s.Members.Members, func(m api.Member) bool { return m.ID == id })
	if i < 0 {
		return "gone"
	}
	return s.Members.Members[i].State
}

// A client of an agent sees within two seconds that another one hangs or is dead, on its
// own host or on another one, and a query names the one that does not answer. With
// PLEACH_FULL, there are 50 agents.
func TestStatusTellsTheTruth(t *testing.T) {
	together, apart := 3, 3
	if testutil.Full.On() {
		together, apart = 34, 16
	}
	agents := startAgents(t, together, apart)
	observer, n := agents[0], len(agents)
	for where, victim := range map[string]*agentProcess{
		"on the same host":     agents[1],
		"on a host of its own": agents[n-1],
	} {
		victim.signal(syscall.SIGSTOP)
		began := time.Now()
		answered := make(chan string, 1)
		go func() { answered <- unansweredPing(observer) }()
		first := ""
		noticed := observer.await(victim.id+" suspected", func(s *statusJSON) bool {
			first = stateOf(s, victim.id)
			return first != api.Alive
		})
		gone := observer.await(victim.id+" gone", func(s *statusJSON) bool { return stateOf(s, victim.id) == "gone" })
		if id := <-answered; id != victim.id {
			t.Errorf("%s hangs, and pleach query ping says that %q has not answered", victim.id, id)
		}
		t.Logf("%s, stopped: %s after %v, gone after %v", where, first, noticed.Sub(began), gone.Sub(began))
		testutil.Took(t, "the status that "+victim.id+" hangs", noticed.Sub(began), promisedTruth)
		victim.signal(syscall.SIGCONT)
		observer.awaitMembers(n)

		victim.signal(syscall.SIGKILL)
		began = time.Now()
		gone = observer.await(victim.id+" gone", func(s *statusJSON) bool { return stateOf(s, victim.id) == "gone" })
		t.Logf("%s, killed: gone after %v", where, gone.Sub(began))
		testutil.Took(t, "the status that "+victim.id+" is dead", gone.Sub(began), promisedTruth)
		n--
		observer.awaitMembers(n)
	}
}

// unansweredPing is the member that pleach query ping says has not answered.
func unansweredPing(a *agentProcess) string {
	out, err := exec.Command("pleach", "query", "ping", "--json", "--timeout", "1m", "--socket", a.socket).Output()
	if err == nil {
		return "none"
	}
	var answers api.Answers
	if err := json.Unmarshal(out, &answers); err != nil || len(answers.Unanswered) != 1 {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return answers.Unanswered[0].ID
}
