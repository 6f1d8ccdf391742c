package prom_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A Prometheus server scrapes a member, and answers the queries of the dashboard.
func TestScrape(t *testing.T) {
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus: install the package of that name")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(pair(t))
	target := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer target.Close()
	address := startPrometheus(t, binary, target.Listener.Addr().String())
	var values []string
	testutil.Eventually(t, "two members in Prometheus", func() bool {
		values, err = query(address, "pleach_members")
		return err == nil && len(values) == 1 && values[0] == "2"
	}, func() any { return fmt.Sprintf("%q: %v", values, err) })
	for _, expr := range expressions(t) {
		expr = strings.NewReplacer("$group", "web", "$__rate_interval", "5s").Replace(expr)
		if _, err := query(address, expr); err != nil {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// startPrometheus starts a server that scrapes a target, until the test ends. It returns the
// server's address.
func startPrometheus(t *testing.T, binary, target string) string {
	t.Helper()
	address := testutil.FreeAddresses(t, 1)[0]
	dir := t.TempDir()
	config := fmt.Sprintf(
		"scrape_configs: [{job_name: pleach, scrape_interval: 200ms, scrape_timeout: 200ms, static_configs: [{targets: [%q]}]}]", target)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.Command(binary, "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(output.String())
		}
	})
	return address
}

// query returns the values that a query has now.
func query(address, expr string) (values []string, err error) {
	reply, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status string
		Data   struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Status != "success" {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	for _, r := range answer.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values, nil
}
