package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A reload that fails changes nothing, and the next one answers the queries of its settings and no
// others. Settings that need a restart are named. Case 81.
func TestFailedReloadChangesNothing(t *testing.T) {
	dir, address := t.TempDir(), testutil.FreeAddresses(t, 1)[0]
	token := filepath.Join(dir, "token")
	settings := func(file, query, more string) string {
		return fmt.Sprintf("expect: 1\nid: a\ntags: {role: %s}\napi: %s\ntoken-file: %s\n%shandlers:\n  - {query: %s, run: 'echo %s'}\n", query, address, file, more, query, query)
	}
	a := start(t, settings(token, "one", ""))
	answers := func(query string) bool {
		t.Helper()
		r, err := a.Query(t.Context(), query, nil, false, 0)
		if err != nil || len(r.Answers) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Answers[0].Error == "" && r.Answers[0].Data == query+"\n"
	}
	broken := filepath.Join(dir, "broken")
	if err := os.Mkdir(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	role := func(want string) func() bool {
		return func() bool {
			m, err := a.Members(t.Context())
			return err == nil && m.Members[0].Meta == "pleach=v1 role="+want
		}
	}
	testutil.Eventually(t, "its tags are known", role("one"))
	a.write(t, settings(broken, "two", ""))
	a.reload <- struct{}{}
	a.log.Await(t, "settings not reloaded")
	if !answers("one") || answers("two") {
		t.Error("a part of the settings is in force")
	}
	if !role("one")() {
		t.Error("the tags have changed")
	}
	a.write(t, settings(token, "three", "retain-messages: 7\n"))
	a.reload <- struct{}{}
	a.log.Await(t, "settings reloaded")
	a.log.Await(t, "needRestart=[retain-messages]")
	testutil.Eventually(t, "its tags have changed", role("three"))
	if answers("one") || answers("two") || !answers("three") {
		t.Error("queries of settings before are answered, or those of the present ones are not")
	}
}
