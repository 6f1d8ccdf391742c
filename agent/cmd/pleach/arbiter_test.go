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
	agents := startLogged(t, 2, "--arbiter", "file:"+t.TempDir())
	kills := 2 // of each agent
	if testutil.Full.On() {
		kills = 20
	}
	var worst time.Duration
	for round := range 2 * kills {
		killed, survivor := agents[round%2], agents[1-round%2]
		if _, err := survivor.client.Put(t.Context(), "k", []byte(fmt.Sprint(round)), nil, time.Minute); err != nil {
			t.Fatal(err)
		}
		killed.signal(syscall.SIGKILL)
		died := time.Now()
		_ = killed.cmd.Wait()
		survivor.awaitMembers(1)
		worst = max(worst, time.Since(died))
		e, err := survivor.client.Get(t.Context(), "k", time.Minute)
		if err != nil || e.Data != fmt.Sprint(round) {
			t.Fatalf("round %d: %+v, %v", round, e, err)
		}
		killed.start()
		killed.awaitReady()
		survivor.awaitMembers(2)
	}
	t.Logf("%d kills: the other continues within %v", 2*kills, worst)
}

// A setting that is none names what it can be.
func TestArbiterOfAnUnknownKind(t *testing.T) {
	out, err := exec.Command("pleach", "agent", "--arbiter", "redis:x", "127.0.0.1:1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file:DIRECTORY") {
		t.Errorf("%v: %s", err, out)
	}
}
