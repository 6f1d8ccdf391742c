//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Handlers run at least once for every message that has arrived, even if the agent is killed, or
// ended, while messages wait. They learn the ID of a message. Case 75.
func TestHandlersResumeAfterRestart(t *testing.T) {
	dir := t.TempDir()
	ran, file := filepath.Join(dir, "ran"), filepath.Join(dir, "agent.yaml")
	settings := fmt.Sprintf("handlers:\n  - {on: work, run: 'echo $(cat) $PLEACH_MESSAGE_ID >>%s; sleep 0.1'}\n", ran)
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startLogged(t, 1, "--config", file)[0]
	const messages = 12
	for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		a.awaitReady()
		for i := range messages {
			if _, err := a.client.Broadcast(t.Context(), "work", fmt.Appendf(nil, "m%d.%d", round, i), false,
				time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		// A message that only this agent has is kept from when the agent has saved it.
		testutil.Eventually(t, "every message is saved", func() bool {
			return strings.Count(strings.Join(a.told(), "\n"), fmt.Sprintf(`"m%d.`, round)) >= messages
		}, func() any { return a.told() })
		a.signal(signal)
		_ = a.cmd.Wait()
		a.start()
		testutil.Eventually(t, "every message is handled", func() bool {
			b, _ := os.ReadFile(ran)
			ids := make(map[string]string) // by message
			for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
				if message, id, ok := strings.Cut(line, " "); ok && id != "" {
					if before := ids[message]; before != "" && before != id {
						t.Fatalf("%s has the IDs %s and %s", message, before, id)
					}
					ids[message] = id
				}
			}
			return len(ids) == (round+1)*messages
		})
	}
}
