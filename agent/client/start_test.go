package client

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// serveReady serves /readyz on a Unix socket, after a while: 503 until the agent is a member.
func serveReady(t *testing.T, socket string, after time.Duration, notReady *atomic.Pointer[error]) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := notReady.Load(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(api.Error{Error: (*err).Error()})
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	done := make(chan struct{})
	timer := time.AfterFunc(after, func() {
		defer close(done)
		if l, err := net.Listen("unix", socket); err == nil {
			_ = server.Serve(l)
		}
	})
	t.Cleanup(func() {
		_ = server.Close()
		if !timer.Stop() {
			<-done
		}
	})
}

// AwaitStart returns when the agent is there, or a member, and not before, or else at the end of its
// context. It notifies once of a long wait.
func TestAwaitStart(t *testing.T) {
	for _, test := range []struct {
		name     string
		after    time.Duration
		notReady error
		member   bool
		waits    bool // until the end of the context
	}{
		{"agent runs", 0, nil, true, false},
		{"agent starts later", 300 * time.Millisecond, nil, true, false},
		{"no agent", time.Hour, nil, true, true},
		{"not a member", 0, api.ErrNotMember, true, true},
		{"not a member, which does not matter", 0, api.ErrNotMember, false, false},
		{"a member, not current", 0, api.ErrNotCurrent, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var notReady atomic.Pointer[error]
			if test.notReady != nil {
				notReady.Store(&test.notReady)
			}
			socket := filepath.Join(t.TempDir(), "s")
			serveReady(t, socket, test.after, &notReady)
			if test.after == 0 {
				awaitSocket(t, socket)
			}
			timeout := time.Minute
			if test.waits {
				timeout = startPatience * 3 / 2
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			began, notified := time.Now(), 0
			Socket(socket).AwaitStart(ctx, test.member, func() { notified++ })
			took := time.Since(began)
			if ended := ctx.Err() != nil; ended != test.waits || !test.waits && took < test.after {
				t.Errorf("returned after %v, at the end of the context: %v", took, ended)
			}
			// A long wait has an attempt after startPatience. A short one is long on a busy host.
			if most := min(int(took/startPatience), 1); notified > most || test.waits && notified == 0 {
				t.Errorf("notified %d times after %v", notified, took)
			}
		})
	}
}

// An agent that becomes a member ends the wait.
func TestAwaitStartUntilMember(t *testing.T) {
	t.Parallel()
	notMember := error(api.ErrNotMember)
	var notReady atomic.Pointer[error]
	notReady.Store(&notMember)
	socket := filepath.Join(t.TempDir(), "s")
	serveReady(t, socket, 0, &notReady)
	awaitSocket(t, socket)
	time.AfterFunc(200*time.Millisecond, func() { notReady.Store(nil) })
	Socket(socket).AwaitStart(t.Context(), true, nil)
	if notReady.Load() != nil {
		t.Error("returned before the agent was a member")
	}
}

func awaitSocket(t *testing.T, socket string) {
	t.Helper()
	var err error
	testutil.Eventually(t, "a server at "+socket, func() bool {
		var c net.Conn
		c, err = net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, func() any { return err })
}
