package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"github.com/pleach-go/pleach/internal/driver/admission"
)

// Metrics is a listener for Prometheus on another host. It serves metrics and probes, and
// nothing that changes or shows messages.
type Metrics struct {
	MetricsListen  string `yaml:"metrics-listen"`
	MetricsTLSCert string `yaml:"metrics-tls-cert"`
	MetricsTLSKey  string `yaml:"metrics-tls-key"`
	// MetricsHosts are the names by which clients reach the listener.
	MetricsHosts []string `yaml:"metrics-hosts"`
}

func (m *Metrics) check() error {
	switch {
	case (m.MetricsTLSCert == "") != (m.MetricsTLSKey == ""):
		return errors.New("metrics-tls-cert and metrics-tls-key belong together: set both or none")
	case m.MetricsListen == "" && m.MetricsTLSCert != "":
		return errors.New("metrics-tls-cert and metrics-tls-key have no effect without metrics-listen")
	case m.MetricsListen == "" && len(m.MetricsHosts) > 0:
		return errors.New("metrics-hosts has no effect without metrics-listen")
	case m.MetricsListen == "":
		return nil
	}
	if _, _, err := net.SplitHostPort(m.MetricsListen); err != nil {
		return fmt.Errorf("metrics-listen is %q: write host:port, as in 0.0.0.0:9464", m.MetricsListen)
	}
	return nil
}

// TLS returns the configuration of the listener, or nil if it has no certificate. The certificate is
// read for each connection, so that it can be replaced.
func (m *Metrics) TLS() (*tls.Config, error) {
	if m.MetricsTLSCert == "" {
		return nil, nil
	}
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if err := admission.CheckFile(m.MetricsTLSKey); err != nil {
			return nil, fmt.Errorf("metrics-tls-key: %w", err)
		}
		c, err := tls.LoadX509KeyPair(m.MetricsTLSCert, m.MetricsTLSKey)
		return &c, err
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}, nil
}

// Hosts returns the names by which clients may reach the metrics of this agent, besides IP addresses.
func (c *Config) Hosts() []string {
	names := slices.Clone(c.MetricsHosts)
	for _, address := range []string{c.MetricsListen, c.Listen, c.Advertise} {
		if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
			names = append(names, host)
		}
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	return names
}
