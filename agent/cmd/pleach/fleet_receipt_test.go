//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A message to the fleet has a receipt: every member of the sender's zone has it, and passes it on. A
// member that does not answer is not in a receipt: there is none until a view without it. Case 79.
func TestFleetReceipt(t *testing.T) {
	agents := startLogged(t, 2, "--zone", "a")
	send := func(stable bool, timeout time.Duration) (zones, members int, err error) {
		r, err := agents[0].client.BroadcastFleet(t.Context(), "work", []byte("x"), stable, timeout)
		if err == nil && r.Stable != stable {
			t.Errorf("%+v", r)
		}
		return r.Zones, len(r.Members), err
	}
	testutil.Eventually(t, "in the fleet", func() bool {
		_, _, err := send(false, time.Minute)
		return err == nil
	})
	if zones, members, err := send(true, time.Minute); err != nil || zones != 1 || members != 2 {
		t.Fatalf("%d zones, %d members, %v", zones, members, err)
	}
	agents[1].signal(syscall.SIGSTOP)
	defer agents[1].signal(syscall.SIGCONT)
	if _, _, err := send(false, time.Minute); err != nil {
		t.Logf("it knows already: %v", err)
	}
	if _, members, err := send(true, time.Minute); err == nil && members != 1 {
		t.Errorf("a receipt of %d members, of which one is stopped", members)
	}
}
