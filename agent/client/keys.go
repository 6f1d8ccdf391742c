package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

func keyPath(key string) string { return "/v1/kv/" + inPath(key) }

// inPath escapes a name as one part of a path: the server would resolve repeated slashes and dots.
func inPath(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

// withVersion adds the version that a key must have; nil: any.
func withVersion(query url.Values, version *uint64) url.Values {
	if version != nil {
		query.Set("version", strconv.FormatUint(*version, 10))
	}
	return query
}

// Get returns a key with its value.
func (c *Client) Get(ctx context.Context, key string, timeout time.Duration) (e api.Entry, err error) {
	err = c.call(ctx, http.MethodGet, keyPath(key), withTimeout(timeout), nil, &e)
	return e, err
}

// List returns the keys that begin with a prefix.
func (c *Client) List(ctx context.Context, prefix string, timeout time.Duration) (e api.Entries, err error) {
	query := withTimeout(timeout)
	query.Set("prefix", prefix)
	err = c.call(ctx, http.MethodGet, "/v1/kv", query, nil, &e)
	return e, err
}

// Put gives a key a value, if it has the version.
func (c *Client) Put(ctx context.Context, key string, value []byte, version *uint64,
	timeout time.Duration,
) (r api.Changed, err error) {
	err = c.call(ctx, http.MethodPut, keyPath(key), withVersion(withTimeout(timeout), version), value, &r)
	return r, err
}

// Delete removes a key, if it has the version.
func (c *Client) Delete(ctx context.Context, key string, version *uint64,
	timeout time.Duration,
) (r api.Changed, err error) {
	err = c.call(ctx, http.MethodDelete, keyPath(key), withVersion(withTimeout(timeout), version), nil, &r)
	return r, err
}

// Watch calls f with the keys that begin with a prefix, and with each that changes, until it
// returns an error, ctx ends or the agent does.
func (c *Client) Watch(ctx context.Context, prefix string, f func(api.Change) error) error {
	response, err := c.do(ctx, http.MethodGet, "/v1/watch", url.Values{"prefix": {prefix}}, nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	for {
		name, _, data, err := readLines(lines)
		if err != nil {
			return fmt.Errorf("the agent has ended the watch, or was ended: watch again when it is back (%w)", err)
		}
		if name != api.EventPut && name != api.EventDelete {
			return fmt.Errorf("the agent sends an event %q, which this program does not know", name)
		}
		var change api.Change
		if err := json.Unmarshal([]byte(data), &change); err != nil {
			return err
		}
		if err := f(change); err != nil {
			return err
		}
	}
}
