//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// rollingKeys and rollingValue are so large that keys arrive well after the membership.
const (
	rollingKeys  = 120
	rollingValue = 60_000
)

// putKeys puts keys whose values name a round.
func putKeys(t *testing.T, c *client.Client, round int) {
	t.Helper()
	for k := range rollingKeys {
		value := append(bytes.Repeat([]byte{'v'}, rollingValue), fmt.Sprintf("%d.%d", round, k)...)
		if _, err := c.Put(t.Context(), fmt.Sprint("k", k), value, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
}

func (a *loggedAgent) awaitReady() {
	a.t.Helper()
	testutil.Eventually(a.t, a.id+" is ready", func() bool { return a.client.Ready(a.t.Context()) == nil })
}

// scrape returns the metrics of the agent.
func (a *loggedAgent) scrape() string {
	a.t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", a.socket)
	}
	c := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	reply, err := c.Get("http://agent/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	defer reply.Body.Close()
	b, err := io.ReadAll(reply.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(b)
}

// Agents are restarted one at a time, each when the one before is ready, as a StatefulSet does. All
// keys survive, even if the agents are killed. Case 67.
func TestRollingRestartKeepsKeys(t *testing.T) {
	agents := startLogged(t, 2)
	for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		putKeys(t, agents[0].client, round)
		for _, a := range agents {
			a.signal(signal)
			_ = a.cmd.Wait()
			a.start()
			a.awaitReady()
		}
		entries, err := agents[1].client.List(t.Context(), "k", time.Minute)
		if err != nil || len(entries.Entries) != rollingKeys {
			t.Fatalf("%v: %d of %d keys are left, %v", signal, len(entries.Entries), rollingKeys, err)
		}
		for _, e := range entries.Entries {
			if want := fmt.Sprintf("%d.%s", round, strings.TrimPrefix(e.Key, "k")); strings.TrimLeft(e.Data, "v") != want {
				t.Errorf("%v: %s ends with %q instead of %q", signal, e.Key, strings.TrimLeft(e.Data, "v"), want)
			}
		}
		if s := agents[0].status(); s == nil || s.Status.Agent.KeysBegun != 0 {
			t.Errorf("%v: keys began empty", signal)
		}
	}
}

// Keys that no agent has any more begin empty, and the log, the status, the metrics and an event say
// so. Case 67.
func TestKeysThatBeginEmptyAreReported(t *testing.T) {
	agents := startLogged(t, 2)
	if _, err := agents[0].client.Put(t.Context(), "k", []byte("v"), nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, a := range agents {
		a.signal(syscall.SIGKILL)
		_ = a.cmd.Wait()
	}
	for _, a := range agents {
		a.start()
	}
	for _, a := range agents {
		a.awaitReady()
		s := a.status()
		if s == nil || s.Status.Agent.KeysBegun == 0 || !s.Status.Agent.Ready {
			t.Fatalf("%s says nothing: %+v", a.id, s)
		}
		if w := s.Status.Agent.Warnings; len(w) != 1 || w[0].Kind != "keys" {
			t.Errorf("%s warns of %v", a.id, w)
		}
		text, err := exec.Command("pleach", "status", "--socket", a.socket).CombinedOutput()
		if err != nil || !strings.Contains(string(text), "keys and locks began empty in view") {
			t.Errorf("%v: %s", err, text)
		}
		log, err := os.ReadFile(a.log)
		if err != nil || !strings.Contains(string(log), "keys and locks began empty") {
			t.Errorf("the log of %s says nothing", a.id)
		}
		metrics := a.scrape()
		if !strings.Contains(metrics, "pleach_agent_keys_begun_empty_total 1") ||
			!strings.Contains(metrics, `pleach_agent_warning{kind="keys"} 1`) {
			t.Errorf("the metrics of %s say nothing", a.id)
		}
	}
}
