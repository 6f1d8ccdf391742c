// Package etcd is an arbiter with its records in etcd (version 3.4 or later), over its JSON gateway,
// so that it needs no client library.
package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach/contrib/arbiter"
)

// DefaultPrefix begins the keys of records.
const DefaultPrefix = "pleach/arbiter/"

// endpointTimeout bounds the calls of one server: the next one may answer.
const endpointTimeout = time.Second

// maxReply bounds a reply of etcd.
const maxReply = 1 << 20

// Config says how to reach etcd.
type Config struct {
	// Endpoints are the URLs of the servers, as in "https://10.0.0.1:2379". After one that does not
	// answer, the next one is asked.
	Endpoints []string
	// Prefix begins the keys of records. If empty, DefaultPrefix.
	Prefix string
	// Username and Password are an account in etcd, which needs to read and write the keys with the
	// prefix. If Username is empty, none is used: certificates do not identify users of the gateway.
	Username, Password string
	// Client sends the requests, and has the TLS configuration. If nil, http.DefaultClient.
	Client *http.Client
}

// New returns an arbiter with its records in etcd.
func New(c Config) (*arbiter.Arbiter, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("etcd: an arbiter needs endpoints")
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	return arbiter.New(&store{Config: c}), nil
}

type store struct {
	Config
	next atomic.Int64 // index of the endpoint to ask first: it has answered, or the one before has not
}

// compare is a condition of a transaction: the revision of a key, 0 if it does not exist.
type compare struct {
	Key         []byte `json:"key"`
	Target      string `json:"target"`
	Result      string `json:"result"`
	ModRevision int64  `json:"mod_revision,string"`
}

type put struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

type operation struct {
	Put put `json:"request_put"`
}

type transaction struct {
	Compare []compare   `json:"compare"`
	Success []operation `json:"success"`
}

type keyValue struct {
	Value       []byte `json:"value"`
	ModRevision int64  `json:"mod_revision,string"`
}

// Load implements [arbiter.Store]. The read is linearizable.
func (s *store) Load(ctx context.Context, group string) ([]byte, arbiter.Swap, error) {
	key := []byte(s.Prefix + group)
	var found struct {
		KVs []keyValue `json:"kvs"`
	}
	if err := s.call(ctx, "kv/range", map[string][]byte{"key": key}, &found); err != nil {
		return nil, nil, err
	}
	var last keyValue
	if len(found.KVs) > 0 {
		last = found.KVs[0]
	}
	swap := func(ctx context.Context, record []byte) (bool, error) {
		var done struct {
			Succeeded bool `json:"succeeded"`
		}
		err := s.call(ctx, "kv/txn", transaction{
			Compare: []compare{{key, "MOD", "EQUAL", last.ModRevision}},
			Success: []operation{{put{key, record}}},
		}, &done)
		return done.Succeeded, err
	}
	return last.Value, swap, nil
}

// call calls a method at the first server that answers. A method that several servers have got has
// the effect of one: transactions compare the revision.
func (s *store) call(ctx context.Context, method string, request, reply any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	var failed []error
	for range s.Endpoints {
		i := s.next.Load()
		endpoint := s.Endpoints[i]
		err := s.callAt(ctx, endpoint, method, body, reply)
		if err == nil {
			return nil
		}
		s.next.CompareAndSwap(i, (i+1)%int64(len(s.Endpoints)))
		failed = append(failed, fmt.Errorf("%s: %w", endpoint, err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failed...)
}

func (s *store) callAt(ctx context.Context, endpoint, method string, body []byte, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	token := ""
	if s.Username != "" {
		// Tokens expire; claims are rare.
		account, err := json.Marshal(map[string]string{"name": s.Username, "password": s.Password})
		if err != nil {
			return err
		}
		var authenticated struct {
			Token string `json:"token"`
		}
		if err := s.post(ctx, endpoint, "auth/authenticate", "", account, &authenticated); err != nil {
			return err
		}
		token = authenticated.Token
	}
	return s.post(ctx, endpoint, method, token, body, reply)
}

func (s *store) post(ctx context.Context, endpoint, method, token string, body []byte, reply any) error {
	url := strings.TrimSuffix(endpoint, "/") + "/v3/" + method
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return json.Unmarshal(text, reply)
}
