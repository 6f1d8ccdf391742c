//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A group of agents is upgraded from the protocol version before to this one, under load, in
// both orders of ranks, and has observers afterwards. PLEACH_PREVIOUS is the binary of the
// version before. If empty, it is this one's code that speaks the version before only.
func TestRollingUpgrade(t *testing.T) {
	previous := testutil.Previous.Text()
	if previous == "" {
		previous = filepath.Join(t.TempDir(), "pleach")
		buildPrevious(t, previous)
	}
	old := protocolOf(t, previous)
	if old.Protocol < wire.MinVersion || old.Protocol > wire.Version {
		t.Fatalf("the version before speaks protocol version %d, and this one %d to %d", old.Protocol, wire.MinVersion,
			wire.Version)
	}
	for name, order := range map[string][]int{"lowest rank first": {0, 1, 2}, "highest rank first": {2, 1, 0}} {
		t.Run(name, func(t *testing.T) {
			f := newUpgradedGroup(t, previous)
			f.upgrade(order, old.Protocol)
			f.raise(old.Protocol)
			observers := f.observe()
			f.settle()
			f.kill(observers)
			if old.Protocol < wire.Version {
				f.refuseOld(old)
			}
		})
	}
}

// buildPrevious builds a command that speaks the version before only.
func buildPrevious(t *testing.T, binary string) {
	t.Helper()
	flags := fmt.Sprintf("-s -w -X github.com/pleach-go/pleach/internal/base/wire.newest=%d", wire.MinVersion)
	cmd := exec.Command("go", "build", "-ldflags", flags, "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func protocolOf(t *testing.T, binary string) (v cli.Build) {
	t.Helper()
	out, err := exec.Command(binary, "version", "--json").Output()
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// upgradedGroup is a group of agents, each of which has a program that sends and one that receives.
type upgradedGroup struct {
	t         *testing.T
	ctx       context.Context
	previous  string // the command
	dir       string
	addresses []string
	agents    []*upgradedAgent // by rank
}

// upgradedAgent is an agent that is replaced by another process.
type upgradedAgent struct {
	group       *upgradedGroup
	id, address string
	more        []string // arguments
	binary      string
	cmd         *exec.Cmd
	log         bytes.Buffer
	life        int // counts its processes
	*client.Client

	received *stream        // of the present process
	sending  chan struct{}  // closed to end the sender
	senders  sync.WaitGroup // of the sender
	sent     map[string]int // by the sender's life
}

// stream is what a subscriber has received: how many of each sender's life, from which on.
type stream struct {
	mu    sync.Mutex
	next  map[string]int
	fault error
	ended chan struct{}
}

func newUpgradedGroup(t *testing.T, previous string) *upgradedGroup {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	f := &upgradedGroup{t: t, ctx: ctx, previous: previous, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(f.dir, "secret"), []byte("a secret of the fleet"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.addresses = testutil.FreeAddresses(t, 3)
	for i, address := range f.addresses {
		f.add(previous, string(rune('a'+i)), address)
	}
	for _, a := range f.agents {
		a.ready()
	}
	slices.SortFunc(f.agents, func(a, b *upgradedAgent) int { return cmp.Compare(a.status().Rank, b.status().Rank) })
	return f
}

// add starts a further agent, with arguments that the others do not have.
func (f *upgradedGroup) add(binary, id, address string, more ...string) *upgradedAgent {
	a := &upgradedAgent{group: f, id: id, address: address, more: more, sent: make(map[string]int)}
	f.agents = append(f.agents, a)
	a.start(binary)
	f.t.Cleanup(func() {
		a.stop()
		if f.t.Failed() {
			f.t.Logf("agent %s:\n%s", a.id, a.log.String())
		}
	})
	return a
}

// command is an agent that has not begun.
func (f *upgradedGroup) command(binary, id, address string, more ...string) *exec.Cmd {
	args := append([]string{
		"agent", "--group", "fleet", "--id", id, "--listen", address, "--expect", "3", "--socket",
		filepath.Join(f.dir, id+".sock"),
		"--data-dir", filepath.Join(f.dir, id), "--secret-file", filepath.Join(f.dir, "secret"), "--retain-messages",
		"1000000",
	}, more...)
	return exec.Command(binary, append(args, f.addresses...)...)
}

func (a *upgradedAgent) start(binary string) {
	f := a.group
	a.life++
	a.binary = binary
	a.cmd = f.command(binary, a.id, a.address, a.more...)
	a.cmd.Stdout, a.cmd.Stderr = &a.log, &a.log
	if err := a.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	a.Client = client.Socket(filepath.Join(f.dir, a.id+".sock"))
}

// ready waits until the agent is a member, and starts its programs.
func (a *upgradedAgent) ready() {
	f := a.group
	f.await("agent "+a.id+" is a member", func() bool { return a.Ready(f.ctx) == nil })
	a.received = &stream{next: make(map[string]int), ended: make(chan struct{})}
	subscribed := make(chan struct{})
	received, topic := a.received, "load"
	go func() {
		defer close(received.ended)
		_ = a.Messages(f.ctx, client.Subscription{Topic: &topic, After: "0"}, sync.OnceFunc(func() { close(subscribed) }),
			received.take)
	}()
	select {
	case <-subscribed:
	case <-received.ended:
		f.t.Fatalf("agent %s has no messages", a.id)
	}
	a.sending = make(chan struct{})
	a.senders.Go(a.send)
}

// send broadcasts numbered messages.
func (a *upgradedAgent) send() {
	name := fmt.Sprintf("%s%d", a.id, a.life)
	for n := 0; ; n++ {
		select {
		case <-a.sending:
			a.sent[name] = n
			return
		default:
		}
		if _, err := a.Broadcast(a.group.ctx, "load", fmt.Appendf(nil, "%s %d", name, n), false, time.Minute); err != nil {
			a.group.t.Errorf("message %d of %s: %v", n, name, err)
			<-a.sending
			return
		}
	}
}

// rest ends the sender.
func (a *upgradedAgent) rest() {
	if a.sending != nil {
		close(a.sending)
		a.senders.Wait()
		a.sending = nil
	}
}

// stop ends the programs, and lets the agent leave.
func (a *upgradedAgent) stop() {
	a.rest()
	if a.cmd == nil {
		return
	}
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	if err := a.cmd.Wait(); err != nil {
		a.group.t.Logf("agent %s: %v", a.id, err) // on a busy host, the others may take too long to let it go
	}
	a.cmd = nil
	if a.received != nil {
		<-a.received.ended
	}
}

// take takes an event: the messages of a sender come without gap or duplicate.
func (s *stream) take(e client.Event) error {
	if e.Message == nil {
		return nil
	}
	var name string
	var n int
	_, err := fmt.Sscanf(e.Message.Data, "%s %d", &name, &n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if next, known := s.next[name]; err == nil && known && n != next {
		err = fmt.Errorf("message %d of %s, after %d", n, name, next-1)
	}
	s.next[name] = n + 1
	s.fault = cmp.Or(s.fault, err)
	return err
}

func (f *upgradedGroup) await(what string, done func() bool) {
	f.t.Helper()
	for !done() {
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("not in time: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (a *upgradedAgent) status() (s api.Status) {
	a.group.await("agent "+a.id+" has a status", func() bool {
		var err error
		s, err = a.Status(a.group.ctx)
		return err == nil
	})
	return s
}

// present is the command under test, which testscript has put into the PATH.
const present = "pleach"

// replace ends an agent, and starts another process with its ID.
func (a *upgradedAgent) replace(binary string) {
	a.group.t.Helper()
	a.stop()
	a.group.checkFaults(a)
	a.start(binary)
	a.ready()
}

// upgrade replaces one agent after the other. One that is restarted meanwhile, as it was,
// still is welcome.
func (f *upgradedGroup) upgrade(order []int, protocol int) {
	f.t.Helper()
	f.refuseObserver(protocol)
	for i, rank := range order {
		a := f.agents[rank]
		a.replace(present)
		if i == 0 { // there is a way back
			a.replace(f.previous)
			a.replace(present)
		}
		f.refuseObserver(protocol)
		s := a.status()
		if s.Version != protocol || s.NewestVersion != wire.Version || s.Rank != rank {
			f.t.Errorf("agent %s has rank %d, protocol version %d of %d, want rank %d, version %d of %d", a.id, s.Rank,
				s.Version, s.NewestVersion, rank, protocol, wire.Version)
		}
		if old := order[i+1:]; len(old) > 0 && protocol < wire.Version {
			f.agents[old[0]].replace(f.previous)
			f.refuseRaise(protocol, old)
		}
	}
}

// config is that of a program that talks to the group.
func (f *upgradedGroup) config() pleach.Config {
	return pleach.Config{Group: "fleet", Security: pleach.Security{Secret: []byte("a secret of the fleet")}}
}

// refuseRaise checks that members of the version before prevent the next one.
func (f *upgradedGroup) refuseRaise(protocol int, old []int) {
	f.t.Helper()
	out, err := exec.CommandContext(f.ctx, present, "raise-version", f.agents[old[0]].address, "--group", "fleet",
		"--secret-file", filepath.Join(f.dir, "secret"), "--json").Output()
	var result raiseJSON
	if code, ok := errors.AsType[*exec.ExitError](err); !ok || code.ExitCode() != cli.ExitFailure ||
		json.Unmarshal(out, &result) != nil {
		f.t.Fatalf("raise-version ends with %v: %s", err, out)
	}
	var ranks []int
	for _, m := range result.Preventing {
		ranks = append(ranks, m.Rank)
	}
	if result.Version != protocol || !slices.Equal(ranks, slices.Sorted(slices.Values(old))) {
		f.t.Errorf("raise-version says %s, want ranks %v", out, old)
	}
}

// refuseObserver checks that no member lets an observer in before the group knows observers. Those of
// this version say why; 0.1.0 refuses a request that it cannot read.
func (f *upgradedGroup) refuseObserver(protocol int) {
	f.t.Helper()
	if protocol >= wire.ObserverVersion {
		return
	}
	c := f.config()
	c.Observer = true
	for _, a := range f.agents {
		g, err := pleach.Join(f.ctx, c, a.address)
		refused, typed := errors.AsType[*pleach.VersionError](err)
		if !errors.Is(err, pleach.ErrRefused) || a.binary == present && !typed || typed && refused.Group != protocol {
			f.t.Errorf("an observer that joins by agent %s in version %d: %v", a.id, protocol, err)
		}
		if err == nil {
			_ = g.Close()
		}
	}
}

// observe adds more observers than there are voters. They take part in the load.
func (f *upgradedGroup) observe() (observers []*upgradedAgent) {
	f.t.Helper()
	voters := len(f.agents)
	for i, address := range testutil.FreeAddresses(f.t, voters+1) {
		observers = append(observers, f.add(present, fmt.Sprint("observer", i), address, "--observer", "true"))
	}
	for _, a := range observers {
		a.ready()
	}
	for _, a := range f.agents {
		f.await("agent "+a.id+" has all in its view", func() bool { return a.status().Members == len(f.agents) })
		if s := a.status(); s.Quorum.Voters != voters || s.Observer != slices.Contains(observers, a) {
			f.t.Errorf("agent %s: observer %t, %d voters, want %d", a.id, s.Observer, s.Quorum.Voters, voters)
		}
	}
	return observers
}

// kill kills all observers at once: the voters, which are fewer, continue.
func (f *upgradedGroup) kill(observers []*upgradedAgent) {
	f.t.Helper()
	for _, a := range observers {
		_ = a.cmd.Process.Kill()
	}
	for _, a := range observers {
		_ = a.cmd.Wait()
		a.cmd = nil
	}
	left := len(f.agents) - len(observers)
	began := time.Now()
	f.await("the voters are alone", func() bool { return f.agents[0].status().Members == left })
	f.t.Logf("%d voters have a view without %d observers after %v", left, len(observers), time.Since(began))
	receipt, err := f.agents[0].Broadcast(f.ctx, "load", []byte("voters 0"), true, time.Minute)
	if err != nil || len(receipt.Members) != left {
		f.t.Errorf("a message of %d voters: %+v, %v", left, receipt, err)
	}
}

// raise raises the version, from which on messages can have headers.
func (f *upgradedGroup) raise(protocol int) {
	f.t.Helper()
	g, err := pleach.Join(f.ctx, f.config(), f.addresses...)
	if err != nil {
		f.t.Fatal(err)
	}
	defer g.Close()
	var refused *pleach.VersionError
	headed := pleach.WithHeader(f.ctx, pleach.Header{"a": "1"})
	if err := g.BroadcastTopic(headed, "traced", nil); protocol < pleach.HeaderVersion &&
		(!errors.As(err, &refused) || refused.Group != protocol) {
		f.t.Errorf("a message with a header in version %d: %v", protocol, err)
	}
	v, err := pleach.RaiseVersion(f.ctx, f.config(), g.Self().Address) // its view is the latest
	if err != nil || v.Version != wire.Version {
		f.t.Fatalf("version %d: %v", v.Version, err)
	}
	f.await("the view is here", func() bool { return g.View().Version == wire.Version })
	trace, err := g.BroadcastTraced(headed, "traced", nil)
	if err != nil || len(trace.Arrivals) != len(f.agents) {
		f.t.Errorf("a traced message in version %d: %+v, %v", wire.Version, trace, err)
	}
	again, err := pleach.RaiseVersion(f.ctx, f.config(), f.addresses[2])
	if err != nil || again.Version != wire.Version {
		f.t.Errorf("raised again: version %d, %v", again.Version, err)
	}
}

// settle ends the load, and checks that all have received all of it.
func (f *upgradedGroup) settle() {
	f.t.Helper()
	for _, a := range f.agents {
		a.rest()
	}
	for _, sender := range f.agents {
		for name, n := range sender.sent {
			f.awaitAll(name, n, name == fmt.Sprintf("%s%d", sender.id, sender.life))
		}
		f.t.Logf("%s has sent %v", sender.id, sender.sent)
	}
	for _, a := range f.agents {
		f.checkFaults(a)
	}
}

// awaitAll waits until all agents have all messages of a sender's life. If that has ended, some agents may have none
// of them: they were started later.
func (f *upgradedGroup) awaitAll(name string, sent int, current bool) {
	f.t.Helper()
	for _, a := range f.agents {
		f.await(fmt.Sprintf("agent %s has all %d messages of %s", a.id, sent, name), func() bool {
			a.received.mu.Lock()
			defer a.received.mu.Unlock()
			next, known := a.received.next[name]
			return a.received.fault != nil || next == sent || !known && !current
		})
	}
}

func (f *upgradedGroup) checkFaults(a *upgradedAgent) {
	f.t.Helper()
	a.received.mu.Lock()
	defer a.received.mu.Unlock()
	if a.received.fault != nil {
		f.t.Errorf("agent %s: %v", a.id, a.received.fault)
	}
}

// refuseOld checks that a process of the version before learns why it cannot join: a new
// one, and one that was a member when it crashed. The saved vote of that one may have observers, which
// 0.1.0 cannot read.
func (f *upgradedGroup) refuseOld(old cli.Build) {
	f.t.Helper()
	crashed := f.agents[1]
	_ = crashed.cmd.Process.Kill()
	_ = crashed.cmd.Wait()
	crashed.cmd = nil
	for id, address := range map[string]string{"d": "127.0.0.1:0", crashed.id: crashed.address} {
		out, err := f.command(f.previous, id, address).CombinedOutput()
		want := fmt.Sprintf("needs protocol version %d to %d, and the group has %d", old.MinProtocol, old.Protocol,
			wire.Version)
		said := bytes.Contains(out, []byte(want)) || id == crashed.id && bytes.Contains(out, []byte("saved state: "))
		if _, ok := errors.AsType[*exec.ExitError](err); !ok || !said {
			f.t.Errorf("agent %s of the version before ends with %v, want %q:\n%s", id, err, want, out)
		}
	}
}
