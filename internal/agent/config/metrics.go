package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// Metrics is a listener for Prometheus on another host. It serves metrics and probes, and
// nothing that changes or shows messages.
type Metrics struct {
	MetricsListen  string `yaml:"metrics-listen"`
	MetricsTLSCert string `yaml:"metrics-tls-cert"`
	MetricsTLSKey  string `yaml:"metrics-tls-key"`
}

func (m *Metrics) check() error {
	switch {
	case (m.MetricsTLSCert == "") != (m.MetricsTLSKey == ""):
		return errors.New("metrics-tls-cert and metrics-tls-key belong together: set both or none")
	case m.MetricsListen == "" && m.MetricsTLSCert != "":
		return errors.New("metrics-tls-cert and metrics-tls-key have no effect without metrics-listen")
	case m.MetricsListen == "":
		return nil
	}
	if _, _, err := net.SplitHostPort(m.MetricsListen); err != nil {
		return fmt.Errorf("metrics-listen is %q: write host:port, as in 0.0.0.0:9464", m.MetricsListen)
	}
	return nil
}

// Listen opens the listener, or returns nil if there is none. The certificate is read for each
// connection, so that it can be replaced.
func (m *Metrics) Listen() (net.Listener, error) {
	if m.MetricsListen == "" {
		return nil, nil
	}
	if m.MetricsTLSCert == "" {
		return net.Listen("tcp", m.MetricsListen)
	}
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(m.MetricsTLSCert, m.MetricsTLSKey)
		return &c, err
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	return tls.Listen("tcp", m.MetricsListen, &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12})
}
