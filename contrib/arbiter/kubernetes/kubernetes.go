// Package kubernetes is an arbiter with its records in an annotation of a Lease
// (coordination.k8s.io/v1), which the API server swaps by its resource version. It uses the service
// account of the pod and needs no client library. The account needs the verbs get and update for
// that one Lease, and create for Leases if the Lease does not exist.
package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/pleach-go/pleach/contrib/arbiter"
	"github.com/pleach-go/pleach/contrib/arbiter/kubernetes/account"
)

// annotation has the records, a JSON object by group.
const annotation = "pleach-go.github.io/granted"

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
	client, err := account.New(account.Config{Server: c.Server, Directory: c.Account})
	if err != nil {
		return nil, err
	}
	if c.Namespace == "" {
		c.Namespace, err = client.Namespace()
		if err != nil {
			return nil, err
		}
	}
	return arbiter.New(&store{client, c.Namespace, c.Lease}), nil
}

type store struct {
	client           *account.Client
	namespace, lease string
}

// lease is a Lease, with the fields that this package does not know.
type lease map[string]any

// Load implements [arbiter.Store].
func (s *store) Load(ctx context.Context, group string) ([]byte, arbiter.Swap, error) {
	path := fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases", url.PathEscape(s.namespace))
	named := path + "/" + url.PathEscape(s.lease)
	var is lease
	found, err := s.call(ctx, http.MethodGet, named, nil, &is)
	if err != nil {
		return nil, nil, err
	}
	if !found {
		swap := func(ctx context.Context, record []byte) (bool, error) {
			made := lease{
				"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": s.lease},
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
func (s *store) call(ctx context.Context, method, path string, body, reply any) (ok bool, err error) {
	err = s.client.Call(ctx, method, path, body, reply)
	var refused *account.StatusError
	if errors.As(err, &refused) && (refused.Code == http.StatusConflict ||
		refused.Code == http.StatusNotFound && method != http.MethodPost) {
		return false, nil
	}
	return err == nil, err
}
