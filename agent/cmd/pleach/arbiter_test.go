//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/contrib/arbiter/file"
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

// The status says what the arbiter has answered last: nothing yet, nothing at all, a grant, a refusal.
func TestStatusOfTheArbiter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "arbiter")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	agents := startLogged(t, 2, "--arbiter", "file:"+dir)
	left, other := agents[0], agents[1]
	left.awaitReady()
	left.awaitArbiter(pleach.ArbiterNotAsked, "arbiter: not asked yet")

	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	other.signal(syscall.SIGKILL)
	_ = other.cmd.Wait()
	view := left.status().Status.View + 1
	a := left.awaitArbiter(pleach.ArbiterUnavailable, fmt.Sprintf("arbiter: no answer about view %d for ", view),
		"next: make the arbiter available again; or start 1 of agent1 again")
	if !strings.Contains(a.Cause, dir) || a.Since.Before(began) || a.LastCall.Before(a.Since) || a.View != view {
		t.Errorf("without the directory: %+v", a)
	}

	if err := os.Rename(dir+".gone", dir); err != nil {
		t.Fatal(err)
	}
	a = left.awaitArbiter(pleach.ArbiterGranted, fmt.Sprintf("arbiter: granted view %d, ", view))
	if a.Cause != "" || a.View != view {
		t.Errorf("with a grant: %+v", a)
	}
	left.awaitMembers(1)
	other.start()
	left.awaitMembers(2)

	record, err := file.New(dir)
	if err == nil {
		_, err = record.Grant(t.Context(), pleach.ArbiterClaim{View: 1000, Side: []pleach.Member{{ID: "another"}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	other.signal(syscall.SIGKILL)
	_ = other.cmd.Wait()
	left.awaitArbiter(pleach.ArbiterRefused, fmt.Sprintf("arbiter: refused view %d, ", left.status().Status.View+1))
}

// awaitArbiter waits until the status has an answer of the arbiter, and checks the text.
func (a *loggedAgent) awaitArbiter(state pleach.ArbiterState, text ...string) pleach.ArbiterStatus {
	a.t.Helper()
	var last pleach.ArbiterStatus
	testutil.Eventually(a.t, "the arbiter is "+string(state), func() bool {
		s := a.status()
		if s == nil {
			return false
		}
		last = s.Status.Quorum.Arbiter
		return last.State == state
	})
	out, err := exec.Command("pleach", "status", "--socket", a.socket).CombinedOutput()
	for _, part := range text {
		if err != nil || !strings.Contains(string(out), part) {
			a.t.Errorf("%v, without %q: %s", err, part, out)
		}
	}
	return last
}

// A setting that is none names what it can be.
func TestArbiterOfAnUnknownKind(t *testing.T) {
	out, err := exec.Command("pleach", "agent", "--arbiter", "redis:x", "127.0.0.1:1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file:DIRECTORY") {
		t.Errorf("%v: %s", err, out)
	}
}
