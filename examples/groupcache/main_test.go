//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes of this test are instances.
const instanceVariable = "GROUPCACHE_TEST_INSTANCE"

func TestMain(m *testing.M) {
	if os.Getenv(instanceVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// What is put at one instance is what all of them get as soon as the reply is there.
func TestFilesAreNeverStale(t *testing.T) {
	const size = 3
	members, servers, data := testutil.FreeAddresses(t, size), testutil.FreeAddresses(t, size), t.TempDir()
	for i := range size {
		args := append([]string{"--listen", members[i], "--http", servers[i], "--data", data}, members...)
		testutil.StartCommand(t, exec.Command(os.Args[0], args...), instanceVariable, "1")
	}
	call := func(method, server, body string) (string, int) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+server+"/greeting", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error(), 0
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error(), 0
		}
		return string(text), response.StatusCode
	}
	for _, server := range servers {
		testutil.Eventually(t, server+" serves", func() bool {
			_, status := call(http.MethodGet, server, "")
			return status == http.StatusNotFound
		})
	}
	for i := range 50 {
		want := fmt.Sprint("hello ", i)
		if text, _ := call(http.MethodPut, servers[i%size], want); text != "3 instances\n" {
			t.Fatalf("put: %s", text)
		}
		for _, server := range servers {
			if got, status := call(http.MethodGet, server, ""); got != want {
				t.Errorf("%s has %q (%d), want %q", server, got, status, want)
			}
		}
	}
}
