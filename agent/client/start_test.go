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

func TestAwaitStart(t *testing.T) {
	for _, test := range []struct {
		name     string
		after    time.Duration
		notReady error
		member   bool
		atLeast  time.Duration
		atMost   time.Duration
	}{
		{"agent runs", 0, nil, true, 0, time.Second},
		{"agent starts later", 300 * time.Millisecond, nil, true, 300 * time.Millisecond, 2 * time.Second},
		{"no agent", time.Hour, nil, true, 1500 * time.Millisecond, 3 * time.Second},
		{"not a member", 0, api.ErrNotMember, true, 1500 * time.Millisecond, 3 * time.Second},
		{"not a member, which does not matter", 0, api.ErrNotMember, false, 0, time.Second},
		{"a member, not current", 0, api.ErrNotCurrent, true, 0, time.Second},
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
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			began, notified := time.Now(), 0
			Socket(socket).AwaitStart(ctx, test.member, func() { notified++ })
			took := time.Since(began)
			if took < test.atLeast || took > test.atMost {
				t.Errorf("returned after %v, want %v to %v", took, test.atLeast, test.atMost)
			}
			if waited := test.atLeast > startPatience; (notified == 1) != waited {
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
