//go:build unix

package trouble

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Case 35: the quorum is lost while a Broadcast waits for room. It ends with ErrNoQuorum
// when the quorum does, and so do those that wait behind it.
func TestCase35WaitingBroadcastLearnsOfTheLostQuorum(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"stopped": syscall.SIGSTOP, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			g, err := pleach.Create(t.Context(), pleach.Config{Group: "trouble", ID: "first"})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Abort()
			ms := newMembers(t, 2, 0, func(_ int, c *memberConfig) { c.Expect, c.Seeds = 0, []string{g.Self().Address} })
			ms.start(0, 1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for v := range g.Views(ctx) {
				if v.Size() == 3 {
					break
				}
			}
			ended := make(chan error, 2)
			for range cap(ended) {
				go func() {
					for {
						if err := g.Broadcast(ctx, make([]byte, 8192)); err != nil {
							ended <- err
							return
						}
					}
				}()
			}
			time.Sleep(300 * time.Millisecond) // windows are full
			for _, p := range ms.running {
				p.Signal(signal)
			}
			for v := range g.Views(ctx) {
				if v.Err != nil {
					break
				}
			}
			for range cap(ended) {
				select {
				case err := <-ended:
					if !errors.Is(err, pleach.ErrNoQuorum) {
						t.Errorf("a Broadcast ended with %v", err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("the quorum is lost, and a Broadcast waits")
				}
			}
		})
	}
}
