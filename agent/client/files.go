package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/transfer"
)

// Copy sends a file to a directory of every member. Report is called from time to time, after
// the agent has the file. The result is there after an error, too, if the agent has told it.
func (c *Client) Copy(ctx context.Context, u api.Upload,
	report func(transfer.Progress),
) (r transfer.Result, err error) {
	query := url.Values{"dir": {u.Dir}, "name": {u.Name}, "mode": {strconv.FormatUint(uint64(u.Mode.Perm()), 8)}}
	if u.Rate > 0 {
		query.Set("rate", strconv.FormatInt(u.Rate, 10))
	}
	if u.Fleet {
		query.Set("fleet", "true")
	}
	response, err := c.do(ctx, http.MethodPost, "/v1/files", query, u.Content, nil)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	for lines := json.NewDecoder(io.LimitReader(response.Body, maxReply)); ; {
		var e api.CopyEvent
		if err := lines.Decode(&e); err != nil {
			return r, errors.Join(errors.New("the agent has ended in the middle of the copy"), err)
		}
		switch {
		case e.Progress != nil:
			report(*e.Progress)
		case e.Result != nil && e.Error != "":
			return *e.Result, errors.New(e.Error)
		case e.Result != nil:
			return *e.Result, nil
		}
	}
}
