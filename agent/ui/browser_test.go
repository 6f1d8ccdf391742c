package ui

import (
	"context"
	"fmt"
	"html"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// chromium runs a headless browser on a page for some seconds of virtual time, and returns
// what it prints and logs.
func chromium(t *testing.T, url, seconds string, flags ...string) (output, log string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir=" + t.TempDir(), "--enable-logging=stderr", "--virtual-time-budget=" + seconds + "000",
	}, flags...)
	command := exec.CommandContext(ctx, program, append(args, url)...)
	var out, messages strings.Builder
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %s", err, messages.String())
	}
	return out.String(), messages.String()
}

// attribute returns an attribute that testdata/check.js has set.
func attribute(t *testing.T, dom, name string) string {
	t.Helper()
	found := regexp.MustCompile(`<html[^>]* data-` + name + `="([^"]*)"`).FindStringSubmatch(dom)
	if found == nil {
		t.Fatalf("the page has no data-%s: %.2000s", name, dom)
	}
	return html.UnescapeString(found[1])
}

// checkPage complains about errors and overlaps.
func checkPage(t *testing.T, dom, log string) {
	t.Helper()
	for _, name := range []string{"errors", "overlaps"} {
		if got := attribute(t, dom, name); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for line := range strings.Lines(log) {
		if strings.Contains(line, "CONSOLE") {
			t.Error(line)
		}
	}
}

// The page shows small and large groups without errors and without labels that overlap.
func TestPageInBrowser(t *testing.T) {
	for _, size := range []int{1, 5, 16, 50, 500} {
		for _, window := range []string{"1440,1080", "800,900"} {
			if size != 50 && window == "800,900" {
				continue
			}
			t.Run(fmt.Sprintf("%d on %s", size, window), func(t *testing.T) {
				c := newCanned(size)
				server := httptest.NewServer(c.server(t))
				defer server.Close()
				dom, log := chromium(t, server.URL+Path, "9", "--window-size="+window, "--dump-dom")
				checkPage(t, dom, log)
				if got := attribute(t, dom, "rollouts"); got != "2" {
					t.Errorf("%s rollouts, want 2", got)
				}
				if !strings.Contains(dom, "; arbiter granted view 17 ") {
					t.Error("the page does not show the arbiter's answer")
				}
				if size > 1 && !(strings.Contains(dom, ", of which ") && strings.Contains(dom, `<span class="roles">observer</span>`)) {
					t.Error("the page does not show observers")
				}
				if got, least := attribute(t, dom, "rows"), len(c.ranks()); got != fmt.Sprint(least+2) {
					t.Errorf("%s rows, want %d and 2 that are gone", got, least)
				}
			})
		}
	}
}

// A page of an agent in a fleet shows its zones, few or many, without labels that overlap.
func TestZonesInBrowser(t *testing.T) {
	for _, zones := range []int{3, 8, 60} {
		for _, window := range []string{"1440,1080", "420,900"} {
			t.Run(fmt.Sprintf("%d on %s", zones, window), func(t *testing.T) {
				c := newCanned(20)
				c.zones = zones
				server := httptest.NewServer(c.server(t))
				defer server.Close()
				dom, log := chromium(t, server.URL+Path, "9", "--window-size="+window, "--dump-dom")
				checkPage(t, dom, log)
				if got := attribute(t, dom, "zones"); got != fmt.Sprint(zones) {
					t.Errorf("%s zones, want %d", got, zones)
				}
			})
		}
	}
}

// Names come from other machines. None becomes markup, and long ones spoil nothing.
func TestHostileNamesInBrowser(t *testing.T) {
	hostile := []string{
		`<img src=x onerror="document.title='owned'">`, `"><script>document.title='owned'</script>`, `</text></svg><b>`,
		"\u202egnp.exe",
		strings.Repeat("long", 1000), "line\nbreak\x00", "javascript:alert(1)", "${7*7}{{7*7}}", "名前名前名前名前名前名前名前名前",
		"", "__proto__",
	}
	c := newCanned(16)
	c.name = func(rank int) string { return hostile[rank%len(hostile)] }
	server := httptest.NewServer(c.server(t))
	defer server.Close()
	dom, log := chromium(t, server.URL+Path, "9", "--window-size=1440,1080", "--dump-dom")
	checkPage(t, dom, log)
	for _, markup := range []string{"<img src=\"x", "<img src=x", "<script>", "<title>owned"} {
		if strings.Contains(dom, markup) {
			t.Errorf("the page contains %s", markup)
		}
	}
	if !strings.Contains(dom, "&lt;img src=x") || !strings.Contains(dom, "\ufffdgnp.exe") {
		t.Error("the page does not show hostile names")
	}
}
