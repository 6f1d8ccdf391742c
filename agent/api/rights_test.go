package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pleach-go/pleach/agent/limit"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/rights"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// rules are those of a text.
func rules(t *testing.T, text string) *rights.Rules {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rights")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := rights.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// as is a request of a user, or with a token if the user is negative.
func as(user int, token, method, target string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(""))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if user >= 0 {
		r = r.WithContext(limit.WithConn(r.Context(),
			&limit.Conn{Peer: limit.Peer{UID: user, Groups: []int{100}, Known: true}}))
	}
	return r
}

// Each right opens its routes, and no other ones, for users, groups and tokens.
func TestRights(t *testing.T) {
	const outsider, root = 4000, 0
	all := []rights.Right{rights.Read, rights.Send, rights.Keys, rights.Locks, rights.Files, rights.Operate}
	text := "group 4711 = all\n"
	for i, right := range all {
		text += fmt.Sprintf("user %d = %s\ntoken t%d the-token-of-client-%d = %s\n", 5000+i, right, i, i, right)
	}
	s := newTestServer(newFake())
	s.SetRules(rules(t, text))
	s.SetToken("the token of token-file")
	status := func(h http.Handler, r *http.Request) int {
		ctx, cancel := context.WithCancel(r.Context())
		if r.URL.Path == "/v1/messages" || r.URL.Path == "/v1/events" || r.URL.Path == "/v1/watch" {
			cancel() // a stream ends at once
		}
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		if w.Code == http.StatusForbidden && !strings.Contains(w.Body.String(), "does not have the right") {
			t.Errorf("%s: the error is %s", r.URL.Path, w.Body)
		}
		return w.Code
	}
	tcp := http.HandlerFunc(s.authorize)
	for _, r := range routes {
		target := r.path + parameters[r.path]
		for i, right := range all {
			want := r.right == rights.Public || r.right == right
			if got := status(s.socketHandler(), as(5000+i, "", r.method, target)); (got != http.StatusForbidden) != want {
				t.Errorf("%s %s for a user with the right %s: %d", r.method, r.path, right, got)
			}
			if got := status(tcp, as(-1, fmt.Sprintf("the-token-of-client-%d", i), r.method,
				target)); (got != http.StatusForbidden) != want {
				t.Errorf("%s %s for a token with the right %s: %d", r.method, r.path, right, got)
			}
		}
		public := r.right == rights.Public
		for _, c := range []struct {
			name    string
			h       http.Handler
			r       *http.Request
			allowed bool
		}{
			{"another user", s.socketHandler(), as(outsider, "", r.method, target), public},
			{"another user with a wrong token", s.socketHandler(), as(outsider, "guess", r.method, target), public},
			{"another user with the token", s.socketHandler(), as(outsider, "the token of token-file", r.method, target), true},
			{"root", s.socketHandler(), as(root, "", r.method, target), true},
			{"the user of the agent", s.socketHandler(), as(os.Geteuid(), "", r.method, target), true},
			{"no token", tcp, as(-1, "", r.method, target), public},
			{"a wrong token", tcp, as(-1, "the-token-of-client", r.method, target), public},
			{"the hash of a token", tcp, as(-1, "sha256:0", r.method, target), public},
			{"the token of token-file", tcp, as(-1, "the token of token-file", r.method, target), true},
		} {
			got := status(c.h, c.r)
			if refused := got == http.StatusForbidden || got == http.StatusUnauthorized; refused == c.allowed {
				t.Errorf("%s %s for %s: %d", r.method, r.path, c.name, got)
			}
		}
	}
	s.SetRules(nil)
	if got := status(s.socketHandler(), as(outsider, "", "GET", "/v1/status")); got != http.StatusOK {
		t.Errorf("without rules, a user that can open the socket: %d", got)
	}
}

// Changes have a line each, with a fixed set of keys; what programs repeat is counted, and no client
// can fill the log.
func TestAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testutil.LogBuffer
		s := NewServer(newFake(), log.Logger())
		s.SetRules(rules(t, "user 5000 = keys, send\n"))
		do := func(user int, method, target string) {
			s.socketHandler().ServeHTTP(httptest.NewRecorder(), as(user, "", method, target))
		}
		do(5000, "PUT", "/v1/kv/config/a")
		do(5000, "PUT", "/v1/shards/s?partitions=1")
		do(5000, "GET", "/v1/kv/config/a")
		for range 1000 {
			do(0, "POST", "/v1/broadcast?topic=t")
		}
		for _, want := range []string{
			`msg=audit who="user 5000" from=socket action="put key" what=config/a result=ok`,
			`msg=audit who="user 5000" from=socket action="put shards" what=s result="403: user 5000 does not have the right operate: the agent's rights-file gives it"`,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no line %s in %s", want, log.String())
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d lines: %s", n, log.String())
		}
		testutil.Advance(auditInterval)
		if want := `who="user 0" from=socket action=send what="1000 requests in 10s" result=ok`; !strings.Contains(
			log.String(), want) {
			t.Errorf("no line %s in %s", want, log.String())
		}
		before := strings.Count(log.String(), "\n")
		for i := range 6000 { // 600 a second, of 60 users
			do(6000+i%60, "PUT", fmt.Sprint("/v1/kv/", i))
			testutil.Advance(time.Second / 600)
		}
		testutil.Advance(auditInterval)
		if n := strings.Count(log.String(), "\n") - before; n == 0 || n > 10*10 {
			t.Errorf("%d lines in 10 s", n)
		}
		cursor, err := s.audit.events.Subscribe(retention.Filter{}, "0")
		if err != nil {
			t.Fatal(err)
		}
		e, err := cursor.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range readDescription(t).check(&schema{Ref: "/Audit"}, "", decoded(t, e.Message.Data)) {
			t.Error(c)
		}
	})
}

// A rollout of a file needs the right files, as a copy does.
func TestRolloutOfAFileNeedsFiles(t *testing.T) {
	s := newTestServer(newFake())
	for set, want := range map[rights.Set]int{
		rights.Set(rights.Send): http.StatusForbidden, rights.Set(rights.Send | rights.Files): http.StatusOK,
		rights.Set(rights.Files): http.StatusForbidden,
	} {
		body := strings.NewReader(`{"file": {"dir": "d", "name": "n", "mode": 420}, "data": "x"}`)
		r := withCaller(httptest.NewRequest(http.MethodPost, "/v1/rollouts", body), &caller{who: "c", from: "f", rights: set})
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("rights %b: %d: %s", set, w.Code, w.Body)
		}
	}
}
