//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes of this test are instances of the service.
const instanceVariable = "FLAGS_TEST_INSTANCE"

func TestMain(m *testing.M) {
	if os.Getenv(instanceVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// instance is a process of the service, which may be started several times.
type instance struct {
	t       *testing.T
	args    []string
	address string // of its HTTP API
	process *exec.Cmd
	log     *testutil.LogBuffer
}

// newInstances returns three instances with TLS and a data directory each.
func newInstances(t *testing.T) (all []*instance) {
	t.Helper()
	const size = 3
	addresses, apis := testutil.FreeAddresses(t, size), testutil.FreeAddresses(t, size)
	ca := testutil.NewCA(t)
	for i := range size {
		dir := t.TempDir()
		credentials := ca.Issue(t)
		files := map[string][]byte{"cert.pem": credentials.Cert, "key.pem": credentials.Key, "ca.pem": credentials.CA}
		for name, pem := range files {
			if err := os.WriteFile(filepath.Join(dir, name), pem, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args := []string{"--listen", addresses[i], "--http", apis[i], "--data", filepath.Join(dir, "data"), "--tls", dir}
		all = append(all, &instance{t: t, args: append(args, addresses...), address: apis[i], log: new(testutil.LogBuffer)})
	}
	return all
}

// start starts an instance with further flags.
func (i *instance) start(flags ...string) {
	i.t.Helper()
	i.process = exec.Command(os.Args[0], append(flags, i.args...)...)
	i.process.Env = append(os.Environ(), instanceVariable+"=1")
	i.process.Stderr = i.log
	if err := i.process.Start(); err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() { _ = i.process.Process.Kill() })
}

// end ends an instance by a signal.
func (i *instance) end(s syscall.Signal) error {
	if err := i.process.Process.Signal(s); err != nil {
		return err
	}
	return i.process.Wait()
}

func (i *instance) call(ctx context.Context, method, path, body string) (int, string) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+i.address+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// await waits until an instance replies to a GET as wanted.
func (i *instance) await(path, what string, want func(status int, text string) bool) {
	i.t.Helper()
	var status int
	var text string
	testutil.Eventually(i.t, what+" of "+i.address, func() bool {
		status, text = i.call(i.t.Context(), "GET", path, "")
		return want(status, text)
	}, func() any { return fmt.Sprintf("%d %q, log:\n%s", status, text, i.log) })
}

func (i *instance) awaitReady() {
	i.t.Helper()
	i.await("/readyz", "readiness", func(status int, _ string) bool { return status == http.StatusOK })
}

// awaitSize waits until an instance has a view of a size.
func (i *instance) awaitSize(size int) {
	i.t.Helper()
	metric := fmt.Sprintf(`pleach_members{group="flags"} %d`, size)
	i.await("/metrics", metric, func(_ int, text string) bool { return strings.Contains(text, metric+"\n") })
}

// set sets a flag, which an instance that finds another one dead may refuse for a moment.
func (i *instance) set(name, value string) {
	i.t.Helper()
	var status int
	var text string
	testutil.Eventually(i.t, i.address+" sets "+name, func() bool {
		status, text = i.call(i.t.Context(), "PUT", "/flags/"+name, value)
		return status == http.StatusOK
	}, func() any { return fmt.Sprintf("%d %q", status, text) })
}

// get returns the value of a flag.
func (i *instance) get(name string) string {
	i.t.Helper()
	_, text := i.call(i.t.Context(), "GET", "/flags", "")
	flags := make(map[string]setting)
	if err := json.Unmarshal([]byte(text), &flags); err != nil {
		i.t.Fatalf("%q: %v", text, err)
	}
	return flags[name].Value
}

// A flag reaches all instances. An instance that is killed has it when it is started again, and so has
// each instance of a rolling upgrade.
func TestFlagsSurviveDeathsAndUpgrades(t *testing.T) {
	all := newInstances(t)
	for _, i := range all {
		i.start()
	}
	for _, i := range all {
		i.awaitReady()
	}
	all[0].set("dark-mode", "on")
	for _, i := range all {
		if got := i.get("dark-mode"); got != "on" {
			t.Errorf("%s has %q", i.address, got)
		}
	}
	if err := all[2].end(syscall.SIGKILL); err == nil {
		t.Error("a killed process has succeeded")
	}
	all[0].awaitSize(2)
	all[1].set("checkout", "new") // while an instance is dead
	all[2].start()
	all[2].awaitReady()
	if a, b := all[2].get("dark-mode"), all[2].get("checkout"); a != "on" || b != "new" {
		t.Errorf("after a restart: %q, %q", a, b)
	}
	for _, i := range all {
		if err := i.end(syscall.SIGTERM); err != nil {
			t.Errorf("%v, log:\n%s", err, i.log)
		}
		i.start("--version", "v2")
		i.awaitReady()
		all[0].awaitSize(len(all))
	}
	for _, i := range all {
		if got := i.get("checkout"); got != "new" {
			t.Errorf("after an upgrade, %s has %q", i.address, got)
		}
	}
}

// Concurrent changes have the same result in any order.
func TestNewerSettingWins(t *testing.T) {
	old, early, late := setting{"a", 1, "x"}, setting{"b", 2, "x"}, setting{"c", 2, "y"}
	for _, pair := range [][2]setting{{early, old}, {late, early}, {late, old}} {
		if !pair[0].newer(pair[1]) || pair[1].newer(pair[0]) || pair[0].newer(pair[0]) {
			t.Errorf("%+v and %+v have the wrong order", pair[0], pair[1])
		}
	}
}
