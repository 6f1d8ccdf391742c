package client

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/pleach-go/pleach/agent/api"
)

const (
	startPoll     = 50 * time.Millisecond // pause between two probes of an agent that is starting
	startPatience = time.Second           // time until the user is notified of the wait
	probeTimeout  = time.Second           // an agent that answers no probe hangs
)

// AwaitStart blocks while the agent is starting: until it accepts connections and, if member is true,
// is a member of its group. It returns at once if the agent cannot be reached for another reason, and
// at the end of ctx. It returns no error: the call that follows does. Notify is called once if the
// wait is long.
func (c *Client) AwaitStart(ctx context.Context, member bool, notify func()) {
	for began := time.Now(); starting(c.probeStart(ctx), member); {
		if notify != nil && time.Since(began) > startPatience {
			notify()
			notify = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(startPoll):
		}
	}
}

func (c *Client) probeStart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return c.Ready(ctx)
}

// starting reports whether a failed probe is that of an agent that is not there yet, or not a member yet.
func starting(err error, member bool) bool {
	if errors.As(err, new(*NoAgentError)) {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
	}
	var refused *RefusedError
	return member && errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable &&
		strings.HasPrefix(refused.Reply.Error, api.ErrNotMember.Error())
}
