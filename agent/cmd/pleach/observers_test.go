//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// "Any number of observers may fail at once" (Config.Observer): three voters and observers, which are
// killed at the same moment, while a voter broadcasts. No broadcast fails, and no voter loses its quorum.
// PLEACH_MEMBERS=29 is the number of observers.
func TestVotersContinueWithoutTheirObservers(t *testing.T) {
	const voters = 3
	all := voters + testutil.Members.Or(4)
	agents := startEach(t, all, func(i int) []string {
		return []string{"--expect", fmt.Sprint(voters), "--observer", fmt.Sprint(i >= voters)}
	})
	first, observers := agents[0], agents[voters:]
	members := func() int {
		s, err := first.client.Status(t.Context())
		if err != nil || !s.Quorum.OK || s.Quorum.Voters != voters {
			t.Errorf("the status of a voter: %d voters, quorum %t, %v", s.Quorum.Voters, s.Quorum.OK, err)
		}
		return s.Members
	}
	ctx, stop := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	sent := 0
	sender.Go(func() {
		for ; ctx.Err() == nil; sent++ {
			if _, err := first.client.Broadcast(t.Context(), "load", []byte("x"), false, time.Minute); err != nil {
				t.Error(err)
			}
		}
	})
	for _, a := range observers {
		_ = a.cmd.Process.Kill()
	}
	began := time.Now()
	testutil.Eventually(t, "the voters are alone", func() bool { return members() == voters })
	t.Logf("%d voters have a view without %d observers after %v", voters, len(observers), time.Since(began))
	for _, a := range observers {
		_ = a.cmd.Wait()
	}
	began = time.Now()
	for _, a := range observers {
		a.start()
	}
	testutil.Eventually(t, "the observers are back", func() bool { return members() == all })
	stop()
	sender.Wait()
	t.Logf("%d observers have joined after %v; %d broadcasts", len(observers), time.Since(began), sent)
}
