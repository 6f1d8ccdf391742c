package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/pleach-go/pleach/agent/api"
)

// rolloutsPath is the route of rollouts.
const rolloutsPath = "/v1/rollouts"

// Rollouts returns the rollouts that the group keeps, oldest first.
func (c *Client) Rollouts(ctx context.Context) (l api.RolloutList, err error) {
	err = c.call(ctx, http.MethodGet, rolloutsPath, nil, nil, &l)
	return l, err
}

// Rollout returns the state of a rollout.
func (c *Client) Rollout(ctx context.Context, id string) (r api.Rollout, err error) {
	err = c.call(ctx, http.MethodGet, rolloutsPath+"/"+url.PathEscape(id), nil, nil, &r)
	return r, err
}

// StartRollout begins to release a message in waves.
func (c *Client) StartRollout(ctx context.Context, s *api.RolloutSpec) (r api.Rollout, err error) {
	body, err := json.Marshal(s)
	if err == nil {
		err = c.call(ctx, http.MethodPost, rolloutsPath, nil, body, &r)
	}
	return r, err
}

// ChangeRollout pauses, resumes, stops or reverts a rollout.
func (c *Client) ChangeRollout(ctx context.Context, id string, change api.RolloutChange) (r api.Rollout, err error) {
	err = c.call(ctx, http.MethodPut, rolloutsPath+"/"+url.PathEscape(id), url.Values{"do": {string(change)}}, nil, &r)
	return r, err
}
