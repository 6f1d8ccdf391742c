//go:build unix

package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Of two agents with an arbiter, either one survives the death of the other, with the keys, and the
// other returns.
func TestTwoAgentsAndAnArbiter(t *testing.T) {
	killInTurn(t, startLogged(t, 2, "--arbiter", "file:"+t.TempDir()), 1)
}

// So does either one of two agents with a witness.
func TestTwoAgentsAndAWitness(t *testing.T) {
	agents := startLogged(t, 3)
	witness := agents[2]
	witness.signal(syscall.SIGTERM)
	_ = witness.cmd.Wait()
	witness.args[0] = "witness"
	witness.start()
	for _, a := range agents {
		a.awaitMembers(3)
		a.awaitReady()
	}
	killInTurn(t, agents[:2], 2)
}

// killInTurn kills each of two agents several times, and starts it again. The other one continues
// with so many members and the keys.
func killInTurn(t *testing.T, agents []*loggedAgent, left int) {
	t.Helper()
	kills := 2 // of each agent
	if testutil.Full.On() {
		kills = 20
	}
	var worst time.Duration
	for round := range 2 * kills {
		killed, survivor, value := agents[round%2], agents[1-round%2], fmt.Sprint(round)
		if _, err := survivor.client.Put(t.Context(), "k", []byte(value), nil, time.Minute); err != nil {
			t.Fatal(err)
		}
		killed.signal(syscall.SIGKILL)
		died := time.Now()
		_ = killed.cmd.Wait()
		survivor.awaitMembers(left)
		e, err := survivor.client.Get(t.Context(), "k", time.Minute)
		worst = max(worst, time.Since(died))
		if err != nil || e.Data != value {
			t.Fatalf("round %d: %+v, %v", round, e, err)
		}
		killed.start()
		killed.awaitReady()
		survivor.awaitMembers(left + 1)
	}
	t.Logf("%d kills: the other one has its view, and reads, within %v", 2*kills, worst)
}

// A setting that is none names what it can be.
func TestArbiterOfAnUnknownKind(t *testing.T) {
	out, err := exec.Command("pleach", "agent", "--arbiter", "redis:x", "127.0.0.1:1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file:DIRECTORY") {
		t.Errorf("%v: %s", err, out)
	}
}
