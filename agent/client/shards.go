package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pleach-go/pleach/agent/api"
)

func shardsPath(name string) string { return "/v1/shards/" + url.PathEscape(name) }

// PutShards has all agents take part in shards.
func (c *Client) PutShards(ctx context.Context, name string, partitions int) (r api.Changed, err error) {
	err = c.call(ctx, http.MethodPut, shardsPath(name), url.Values{"partitions": {strconv.Itoa(partitions)}}, nil, &r)
	return r, err
}

// ShardOf returns the partition of a key.
func (c *Client) ShardOf(ctx context.Context, name, key string) (s api.Shard, err error) {
	err = c.call(ctx, http.MethodGet, shardsPath(name), url.Values{"key": {key}}, nil, &s)
	return s, err
}

// Owners returns the owners of partitions.
func (c *Client) Owners(ctx context.Context, name string) (o api.Owners, err error) {
	err = c.call(ctx, http.MethodGet, shardsPath(name), nil, nil, &o)
	return o, err
}
