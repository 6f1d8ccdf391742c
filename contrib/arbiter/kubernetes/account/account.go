// Package account calls the API server of a Kubernetes cluster with the service account of a pod. It
// needs no client library.
package account

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
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// DefaultDirectory has the credentials of a pod's service account.
const DefaultDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

// maxReply bounds a reply of the API server.
const maxReply = 4 << 20

// Config says where the API server and the account are. In a pod, it may be empty.
type Config struct {
	// Server is the URL of the API server. If empty, that of the pod's cluster.
	Server string
	// Directory has the files token, ca.crt and namespace, which may change at any time. If empty,
	// [DefaultDirectory].
	Directory string
}

// Client calls an API server. It may be used concurrently.
type Client struct {
	config Config

	mu     sync.Mutex
	ca     []byte // the certificates that client trusts
	client *http.Client
}

// New returns a client. It sends nothing.
func New(c Config) (*Client, error) {
	if c.Directory == "" {
		c.Directory = DefaultDirectory
	}
	if c.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("kubernetes: this process is not in a pod: the URL of the API server is needed")
		}
		c.Server = "https://" + net.JoinHostPort(host, port)
	}
	return &Client{config: c}, nil
}

// Namespace returns the namespace of the account.
func (c *Client) Namespace() (string, error) {
	namespace, err := c.read("namespace")
	return strings.TrimSpace(string(namespace)), err
}

// StatusError is a reply other than 200 and 201.
type StatusError struct {
	Method, Path string
	Code         int
	Status, Text string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", e.Method, e.Path, e.Status, e.Text)
}

// Call sends a request with a body in JSON, unless body is nil, and decodes the reply, unless reply is
// nil. It returns a [*StatusError] if the server refuses the request.
func (c *Client) Call(ctx context.Context, method, path string, body, reply any) error {
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	client, err := c.trusted()
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	switch code := response.StatusCode; {
	case err != nil:
		return err
	case code != http.StatusOK && code != http.StatusCreated:
		return &StatusError{Method: method, Path: path, Code: code, Status: response.Status, Text: string(text)}
	case reply == nil:
		return nil
	}
	return json.Unmarshal(text, reply)
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	content := io.Reader(http.NoBody)
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.config.Server+path, content)
	if err != nil {
		return nil, err
	}
	token, err := c.read("token")
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return request, nil
}

// trusted returns a client that trusts the current certificates of the account.
func (c *Client) trusted() (*http.Client, error) {
	ca, err := c.read("ca.crt")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && bytes.Equal(ca, c.ca) {
		return c.client, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(c.config.Directory, "ca.crt"))
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	c.ca, c.client = ca, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}
	return c.client, nil
}

// read returns a file of the account.
func (c *Client) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(c.config.Directory, name))
}
