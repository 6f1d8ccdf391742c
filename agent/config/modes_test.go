//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A config that all users can change could name any command, and a key that all users can read
// is nobody's: case 100.
func TestModesOfFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(file, []byte("group: web\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o664: true, 0o666: false, 0o602: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(file, nil, nil); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "chmod o-w") {
			t.Errorf("a config with mode %04o: %v", mode, err)
		}
	}
	m := Metrics{MetricsListen: "127.0.0.1:0", MetricsTLSCert: file, MetricsTLSKey: file}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.TLS(); err == nil || !strings.Contains(err.Error(), "metrics-tls-key") ||
		!strings.Contains(err.Error(), "0644") {
		t.Errorf("a key of metrics with mode 0644: %v", err)
	}
}
