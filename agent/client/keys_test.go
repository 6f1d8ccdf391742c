package client

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

// A key and a lock have the name that the caller gives them, with repeated slashes and dots.
func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /v1/kv/{name...}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Changed{Key: r.PathValue("name")})
	})
	mux.HandleFunc("POST /v1/locks/{name...}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Lock{Name: r.PathValue("name")})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	c := TCP(strings.TrimPrefix(server.URL, "http://"), "")
	for _, name := range []string{"a", "a/b", "a//b", "/", "..", "a/../b", "./.", "a?b#c%2F", "a b;c&d", "€"} {
		changed, err := c.Put(t.Context(), name, nil, nil, time.Second)
		if err != nil || changed.Key != name {
			t.Errorf("key %q: %q, %v", name, changed.Key, err)
		}
		lock, err := c.Lock(t.Context(), LockRequest{Name: name, TTL: time.Second})
		if err != nil || lock.Name != name {
			t.Errorf("lock %q: %q, %v", name, lock.Name, err)
		}
	}
}
