// Package client talks to an agent by its local API.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

// Client talks to one agent.
type Client struct {
	http  *http.Client
	base  string
	token string
	where string // for errors

	header map[string]string // of messages
}

// Socket returns the client of the agent at a Unix socket.
func Socket(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, base: "http://agent", where: path}
}

// TCP returns the client of the agent at a loopback address, with its token.
func TCP(address, token string) *Client {
	return &Client{
		http: &http.Client{Transport: &http.Transport{}}, base: "http://" + address, token: token,
		where: address,
	}
}

// NoAgentError is returned when no agent answers.
type NoAgentError struct {
	Where string
	Err   error
}

func (e *NoAgentError) Error() string {
	return fmt.Sprintf("no agent answers on %s: start one with pleach agent, or name its --socket; if it has ended, its log says why (%v)", e.Where, e.Err)
}

// Unwrap returns the cause.
func (e *NoAgentError) Unwrap() error { return e.Err }

// RefusedError is returned when the agent answers with an error.
type RefusedError struct {
	Status int
	Reply  api.Error
}

func (e *RefusedError) Error() string { return e.Reply.Error }

// maxReply bounds a reply. Those about a group of 65,536 members are shorter.
const maxReply = 256 << 20

// WithHeader returns a client whose messages have a header.
func (c *Client) WithHeader(header map[string]string) *Client {
	with := *c
	with.header = maps.Clone(header)
	return &with
}

// Broadcast sends to all members.
func (c *Client) Broadcast(ctx context.Context, topic string, data []byte, stable bool,
	timeout time.Duration,
) (r api.Receipt, err error) {
	query := withTimeout(timeout)
	query.Set("topic", topic)
	if stable {
		query.Set("wait", "stable")
	}
	err = c.call(ctx, http.MethodPost, "/v1/broadcast", query, data, &r)
	return r, err
}

// BroadcastFleet sends to all members of all zones. If stable is true, it waits until every member of
// the agent's zone has the message.
func (c *Client) BroadcastFleet(ctx context.Context, topic string, data []byte, stable bool,
	timeout time.Duration,
) (r api.Receipt, err error) {
	query := withTimeout(timeout)
	query.Set("topic", topic)
	query.Set("fleet", "true")
	if stable {
		query.Set("wait", "stable")
	}
	err = c.call(ctx, http.MethodPost, "/v1/broadcast", query, data, &r)
	return r, err
}

// Send sends to one member.
func (c *Client) Send(ctx context.Context, to string, data []byte, timeout time.Duration) (s api.Sent, err error) {
	query := withTimeout(timeout)
	query.Set("to", to)
	err = c.call(ctx, http.MethodPost, "/v1/send", query, data, &s)
	return s, err
}

// Query asks all members, of the fleet or of the agent's group.
func (c *Client) Query(ctx context.Context, name string, data []byte, fleet bool,
	timeout time.Duration,
) (a api.Answers, err error) {
	query := withTimeout(timeout)
	query.Set("name", name)
	if fleet {
		query.Set("fleet", "true")
	}
	err = c.call(ctx, http.MethodPost, "/v1/query", query, data, &a)
	return a, err
}

// Status returns what the agent knows of its group.
func (c *Client) Status(ctx context.Context) (s api.Status, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/status", nil, nil, &s)
	return s, err
}

// Fleet returns what the agent knows of its fleet.
func (c *Client) Fleet(ctx context.Context) (f api.Fleet, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/fleet", nil, nil, &f)
	return f, err
}

// Members returns the members of the current view.
func (c *Client) Members(ctx context.Context) (m api.Members, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/members", nil, nil, &m)
	return m, err
}

// Views returns the views that the agent has seen.
func (c *Client) Views(ctx context.Context) (v api.Views, err error) {
	err = c.call(ctx, http.MethodGet, "/v1/views", nil, nil, &v)
	return v, err
}

// Healthy returns an error unless the agent serves requests.
func (c *Client) Healthy(ctx context.Context) error { return c.probe(ctx, "/healthz") }

// Ready returns an error unless the agent is a member of a group with a quorum.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "/readyz") }

func (c *Client) probe(ctx context.Context, path string) error {
	response, err := c.do(ctx, http.MethodGet, path, nil, nil, nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func withTimeout(timeout time.Duration) url.Values {
	query := url.Values{}
	if timeout > 0 {
		query.Set("timeout", timeout.String())
	}
	return query
}

// call makes a request, and decodes the reply.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	response, err := c.do(ctx, method, path, query, bytes.NewReader(body), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(io.LimitReader(response.Body, maxReply)).Decode(into)
}

// do makes a request that succeeds.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader,
	header http.Header,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	for key, value := range c.header {
		request.Header.Set(api.HeaderPrefix+key, value)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return nil, &NoAgentError{c.where, dial.Err}
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	refused := &RefusedError{Status: response.StatusCode}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxReply)).Decode(&refused.Reply); err != nil {
		refused.Reply.Error = fmt.Sprintf("the agent on %s answers %s", c.where, response.Status)
	}
	return nil, refused
}
