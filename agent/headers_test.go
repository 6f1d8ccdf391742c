package agent

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// The header of a message is in the events of every agent, in what an agent retains, and in the
// environment of handlers. One that is not allowed is refused.
func TestMessageHeaders(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	agents := startAll(t, 2, fmt.Sprintf(
		"handlers:\n  - {on: t, run: 'echo \"$PLEACH_ID $PLEACH_HEADER_TRACE_ID/$PLEACH_HEADER_EMPTY\" >> %s'}\n", out))
	a, b := agents[0], agents[1]
	want := map[string]string{"trace-id": "1=2, é", "empty": ""}
	events, cut := b.subscribe(t, client.Subscription{})
	defer cut()
	if _, err := a.WithHeader(want).Broadcast(t.Context(), "t", []byte("with"), true, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Broadcast(t.Context(), "u", []byte("without"), false, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WithHeader(want).Send(t.Context(), "b", []byte("with"), 0); err != nil {
		t.Fatal(err)
	}
	retained, cut := b.subscribe(t, client.Subscription{After: "0"})
	defer cut()
	for _, events := range []<-chan client.Event{events, retained} {
		for range 3 {
			m := next(t, events).Message
			if m == nil || m.Data == "with" && !maps.Equal(m.Headers, want) || m.Data == "without" && m.Headers != nil {
				t.Errorf("%+v", m)
			}
		}
	}
	testutil.Eventually(t, "both handlers have run", func() bool {
		got, _ := os.ReadFile(out)
		return string(got) == "a 1=2, é/\nb 1=2, é/\n" || string(got) == "b 1=2, é/\na 1=2, é/\n"
	})
	var refused *client.RefusedError
	_, err := a.WithHeader(map[string]string{"no.key!": ""}).Broadcast(t.Context(), "t", nil, false, 0)
	if !errors.As(err, &refused) || refused.Status != http.StatusBadRequest {
		t.Errorf("%v", err)
	}
}
