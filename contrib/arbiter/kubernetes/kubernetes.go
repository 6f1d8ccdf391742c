// Package kubernetes is an arbiter with its records in an annotation of a Lease
// (coordination.k8s.io/v1), which the API server swaps by its resource version. It uses the service
// account of the pod and needs no client library. The account needs the verbs get and update for
// that one Lease, and create for Leases if the Lease does not exist.
package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pleach-go/pleach/contrib/arbiter"
)

// accountDirectory has the credentials of a pod's service account.
const accountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

// annotation has the records, a JSON object by group.
const annotation = "pleach-go.github.io/granted"

// maxReply bounds a reply of the API server.
const maxReply = 4 << 20

// Config names the Lease. In a pod, only Lease is needed.
type Config struct {
	// Lease is the name of the Lease. Several groups may share it.
	Lease string
	// Namespace is that of the Lease. If empty, the pod's.
	Namespace string
	// Server is the URL of the API server. If empty, that of the pod's cluster.
	Server string
	// Account is a directory with files token, ca.crt and namespace, which may change at any time. If
	// empty, that of the pod's service account.
	Account string
}

// New returns an arbiter with its records in a Lease.
func New(c Config) (*arbiter.Arbiter, error) {
	if c.Lease == "" {
		return nil, errors.New("kubernetes: an arbiter needs the name of a Lease")
	}
	if c.Account == "" {
		c.Account = accountDirectory
	}
	if c.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("kubernetes: this process is not in a pod: Config.Server is needed")
		}
		c.Server = "https://" + net.JoinHostPort(host, port)
	}
	s := &store{Config: c}
	if c.Namespace == "" {
		namespace, err := s.read("namespace")
		if err != nil {
			return nil, err
		}
		s.Namespace = strings.TrimSpace(string(namespace))
	}
	return arbiter.New(s), nil
}

type store struct {
	Config

	mu     sync.Mutex
	ca     []byte // the certificates that client trusts
	client *http.Client
}

// lease is a Lease, with the fields that this package does not know.
type lease map[string]any

// Load implements [arbiter.Store].
func (s *store) Load(ctx context.Context, group string) ([]byte, arbiter.Swap, error) {
	path := fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", url.PathEscape(s.Namespace))
	named := path + "/" + url.PathEscape(s.Lease)
	var is lease
	found, err := s.call(ctx, http.MethodGet, named, nil, &is)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		swap := func(ctx context.Context, record []byte) (bool, error) {
			made := lease{
				"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": s.Lease},
			}
			if err := made.grant(group, record); err != nil {
				return false, err
			}
			return s.call(ctx, http.MethodPost, path, made, nil)
		}
		return nil, swap, nil
	}
	records, err := is.records()
	if err != nil {
		return nil, nil, err
	}
	swap := func(ctx context.Context, record []byte) (bool, error) {
		if err := is.grant(group, record); err != nil {
			return false, err
		}
		return s.call(ctx, http.MethodPut, named, is, nil) // with its resource version
	}
	return records[group], swap, nil
}

// records returns the records of a Lease by group.
func (l lease) records() (map[string]json.RawMessage, error) {
	records := make(map[string]json.RawMessage)
	text, ok := object(object(l, "metadata"), "annotations")[annotation].(string)
	if !ok {
		return records, nil
	}
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", annotation, err)
	}
	return records, nil
}

// grant puts a record into a Lease.
func (l lease) grant(group string, record []byte) error {
	records, err := l.records()
	if err != nil {
		return err
	}
	records[group] = record
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	object(object(l, "metadata"), "annotations")[annotation] = string(text)
	spec := object(l, "spec")
	transitions, _ := spec["leaseTransitions"].(float64)
	spec["leaseTransitions"] = transitions + 1 // number of grants, for kubectl
	return nil
}

// object returns a field that is an object, which is made if it does not exist.
func object(of map[string]any, field string) map[string]any {
	o, ok := of[field].(map[string]any)
	if !ok {
		o = make(map[string]any)
		of[field] = o
	}
	return o
}

// call sends a request, and reports whether the Lease was there to be read, was created, or was still
// the one that was loaded.
func (s *store) call(ctx context.Context, method, path string, body lease, reply *lease) (ok bool, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return false, err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.Server+path, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	client, err := s.trusted()
	if err != nil {
		return false, err
	}
	token, err := s.read("token")
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxReply))
	switch code := response.StatusCode; {
	case err != nil:
		return false, err
	case code == http.StatusNotFound && method != http.MethodPost, code == http.StatusConflict:
		return false, nil
	case code != http.StatusOK && code != http.StatusCreated:
		return false, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	case reply == nil:
		return true, nil
	}
	return true, json.Unmarshal(text, reply)
}

// trusted returns a client that trusts the current certificates of the account.
func (s *store) trusted() (*http.Client, error) {
	ca, err := s.read("ca.crt")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil && bytes.Equal(ca, s.ca) {
		return s.client, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(s.Account, "ca.crt"))
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.ca, s.client = ca, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	return s.client, nil
}

// read returns a file of the account.
func (s *store) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(s.Account, name)) }
