//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// fleetMachine is a machine of the guide to fleets, and its agent.
type fleetMachine struct {
	*machine
	zone  int
	line  string // that starts the agent
	agent *terminal
}

// longLink is the delay between two sites.
const longLink = 20 * time.Millisecond

// startFleet starts three agents in each of three zones by the guide, with further flags, in which
// ADDRESS is that of the agent. Each zone is a host of the network.
func startFleet(t *testing.T, flags string) (network *netns.Net, machines []*fleetMachine,
	use []testutil.PrintedCommand,
) {
	t.Helper()
	blocks := testutil.CodeBlocks(t, "../../../docs/guide/fleet.md", "Agents at three sites")
	if len(blocks) != 3 || !strings.Contains(blocks[0].Text, "\nzone: fra\n") {
		t.Fatalf("%d code blocks", len(blocks))
	}
	start := blocks[1].Commands()[0].Line
	network = netns.New(t, 3)
	for zone, id := range []string{"fra", "iad", "sin"} {
		if !network.Delay(zone, longLink) {
			t.Log("there are no TAP devices here: links have no delay")
		}
		settings := strings.Replace(blocks[0].Text, "\nzone: fra\n", "\nzone: "+id+"\n", 1)
		for i := range 3 {
			address := fmt.Sprintf("10.%d.0.%d", zone+1, i+1)
			network.AddAddress(zone, address+"/8")
			m := &fleetMachine{machine: newMachine(t, network, zone), zone: zone}
			m.line = strings.NewReplacer("fra1", fmt.Sprint(id, i+1), "10.1.0.1", address).Replace(start) +
				strings.ReplaceAll(flags, "ADDRESS", address)
			for name, text := range map[string]string{"agent.yaml": settings, "secret": "0123456789abcdef0123456789abcdef\n"} {
				if err := os.WriteFile(filepath.Join(m.root, "etc/pleach", name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m.agent = m.start(m.line)
			machines = append(machines, m)
		}
	}
	for _, m := range machines {
		m.agent.await(contains(`msg="in the fleet"`), nil)
	}
	return network, machines, blocks[2].Commands()
}

// client talks to the agent of a machine.
func (m *fleetMachine) client() *client.Client {
	return client.Socket(filepath.Join(m.root, "run/pleach/agent.sock"))
}

// awaitZones waits until every zone answers to a machine, all links are up, and each zone has its
// delegates, for a while: zones that start together may meet in several backbones first.
func (m *fleetMachine) awaitZones(t *testing.T) {
	t.Helper()
	var last api.Fleet
	whole := 0
	testutil.Eventually(t, "a whole fleet", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f, err := m.client().Fleet(ctx)
		last = f
		whole++
		if err != nil || !wholeFleet(&f) {
			whole = 0
		}
		return whole == 40
	}, func() any {
		text, _ := json.Marshal(last)
		return fmt.Sprintf("%s\nthe agent has logged: %s", text, m.agent)
	})
}

func wholeFleet(f *api.Fleet) bool {
	for i := range f.Zones {
		z := &f.Zones[i]
		if z.Error != "" || len(z.Delegates) != 3 || len(z.Links) != 2 || !z.Links[0].Connected || !z.Links[1].Connected {
			return false
		}
	}
	return len(f.Zones) == 3
}

// sendNumbers has a machine send numbers to the fleet, at a rate, until it is told to stop.
func (m *fleetMachine) sendNumbers(t *testing.T, each time.Duration, stop <-chan struct{}) (sent int) {
	ticker := time.NewTicker(each)
	defer ticker.Stop()
	agent := m.client()
	for {
		select {
		case <-stop:
			return sent
		case <-ticker.C:
		}
		if _, err := agent.BroadcastFleet(t.Context(), "numbers", fmt.Append(nil, sent+1), false, time.Minute); err != nil {
			t.Errorf("number %d: %v", sent+1, err)
			return sent
		}
		sent++
	}
}

// checkNumbers compares what a listener has printed of a sender with all that was sent.
func checkNumbers(t *testing.T, l *terminal, sender string, sent int) {
	t.Helper()
	prefix := "[" + sender + "] "
	whole := func(got string) bool { return strings.Contains(got, fmt.Sprintf("%s%d\n", prefix, sent)) }
	l.await(whole, nil)
	next := 1
	for line := range strings.Lines(l.String()) {
		number, of := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if !of {
			continue
		}
		if number != fmt.Sprint(next) {
			t.Fatalf("number %s of %s instead of %d", number, sender, next)
		}
		next++
	}
	if next != sent+1 {
		t.Errorf("%d numbers of %s, and %d were sent", next-1, sender, sent)
	}
	if strings.Contains(l.String(), "pleach:") {
		t.Errorf("a listener complains: %s", l)
	}
}

// Nine agents in three zones by the guide, 20 ms apart: what is sent to the fleet is heard by all
// nine, and every listener has all messages, in order, once, although a zone is cut off, agents
// of all zones are killed, and then all of one zone: those that listen at a killed agent, too. With
// PLEACH_FULL, the cut lasts for 10 s, and 20 agents are killed.
func TestFleetOfAgents(t *testing.T) {
	cut, kills := 3*time.Second, 2
	if testutil.Full.On() {
		cut, kills = 10*time.Second, 20
	}
	network, machines, use := startFleet(t, "")
	machines[4].awaitZones(t)
	heardByAll(t, machines, use)
	victims := []*fleetMachine{machines[3], machines[4], machines[1], machines[7]} // two of iad, one of fra and of sin
	var listeners []*terminal
	for _, m := range machines {
		listeners = append(listeners, m.start("pleach listen numbers --fleet --after 0"))
	}
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sent := make([]int, 2)
	for i, m := range []*fleetMachine{machines[0], machines[8]} {
		sending.Go(func() { sent[i] = m.sendNumbers(t, 20*time.Millisecond, stop) })
	}
	time.Sleep(500 * time.Millisecond)
	network.Cut(2)
	time.Sleep(cut)
	network.Heal(2)
	for i := range kills {
		v := victims[i%len(victims)]
		v.agent.kill()
		time.Sleep(500 * time.Millisecond)
		v.agent = v.start(v.line)
		v.agent.await(contains(`msg="in the fleet"`), nil)
	}
	restartZone(machines[3:6])
	close(stop)
	sending.Wait()
	for _, l := range listeners {
		checkNumbers(t, l, "fra/fra1", sent[0])
		checkNumbers(t, l, "sin/sin3", sent[1])
	}
	t.Logf("%d and %d messages, each at %d listeners; a zone cut off for %v, %d agents killed", sent[0], sent[1],
		len(listeners), cut, kills)
}

// restartZone kills all agents of a zone at once, and starts them again.
func restartZone(machines []*fleetMachine) {
	for _, m := range machines {
		m.agent.kill()
	}
	for _, m := range machines {
		m.agent = m.start(m.line)
	}
	for _, m := range machines {
		m.agent.await(contains(`msg="in the fleet"`), nil)
	}
}

// heardByAll runs the commands of the guide on one machine, while all of them listen.
func heardByAll(t *testing.T, machines []*fleetMachine, use []testutil.PrintedCommand) {
	var listeners []*terminal
	var send string
	for _, c := range use {
		if strings.HasPrefix(c.Line, "pleach listen") {
			for _, m := range machines {
				listeners = append(listeners, m.start(c.Line))
			}
			continue
		}
		if strings.Contains(c.Line, "pleach send") {
			send = c.Line
		}
		got := machines[4].run(c.Line)
		if !c.Says(got) || strings.HasPrefix(c.Line, "pleach query") && !strings.Contains(got, "9 of 9 members") {
			t.Errorf("%s prints %q, want %q", c.Line, got, c.Output)
		}
	}
	if len(listeners) != len(machines) {
		t.Fatalf("%d listen, of %d", len(listeners), len(machines))
	}
	for _, l := range listeners { // the first message may have come before it has subscribed
		l.await(contains("[iad/iad2] products"), func() { machines[4].run(send) })
		l.kill()
	}
}

// A file reaches the members of all zones although the delegate that gets it for its zone is
// killed: the next one does.
func TestFleetCopiesFiles(t *testing.T) {
	if !testutil.Full.On() {
		t.Skip("make fleet-test runs it")
	}
	_, machines, _ := startFleet(t, " --file-dirs /var/lib/files")
	for _, m := range machines {
		m.run("mkdir -p /var/lib/files")
	}
	machines[0].awaitZones(t)
	machines[0].run("head -c 20000000 /dev/urandom > image")
	copying := machines[0].start("pleach cp image :new/ --fleet --rate 4000000")
	time.Sleep(2 * time.Second) // a part of it has crossed
	victim := machines[3]       // the oldest of its zone, which others ask first
	victim.agent.kill()
	copying.await(contains("members in new have it"), nil)
	if got := copying.String(); strings.Contains(got, "not ") {
		t.Errorf("pleach cp prints %q", got)
	}
	want := machines[0].run("sha256sum < image")
	for _, m := range machines {
		if m == victim {
			continue
		}
		if got := m.run("sha256sum < /var/lib/files/new/image"); got != want {
			t.Errorf("zone %d has %s instead of %s", m.zone, got, want)
		}
	}
	t.Log(copying)
}
