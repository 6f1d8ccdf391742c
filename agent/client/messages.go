package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/retention"
)

// Event is a server-sent event of the agent: one of its pointers is set.
type Event struct {
	ID      string
	Message *api.Message
	Missed  *retention.Missed
	Gap     *api.Gap
	Group   *api.Event // what has happened to the group
}

// maxEvent bounds an event. Base64 makes a message a third longer.
const maxEvent = 2*api.MaxBody + 1<<20

// Subscription chooses messages. The zero value chooses all from now on.
type Subscription struct {
	Topic  *string // nil: all topics
	Direct bool
	Fleet  bool   // only messages to all zones
	Events bool   // what happens to the group instead of messages
	After  string // the ID of the last message that the subscriber has
	Last   bool   // begin with the last message of Topic, unless there is an ID
	// Begins, if it is not nil, is called with the ID at which a subscription without one
	// begins.
	Begins func(id string)
}

// Messages subscribes, and calls f with each event until it returns an error, ctx ends or
// the agent does. Subscribed, if it is not nil, is called before.
func (c *Client) Messages(ctx context.Context, s Subscription, subscribed func(), f func(Event) error) error {
	query := url.Values{}
	if s.Topic != nil {
		query.Set("topic", *s.Topic)
	}
	if s.Last {
		query.Set("last", "true")
	}
	if s.Direct {
		query.Set("direct", "true")
	}
	if s.Fleet {
		query.Set("fleet", "true")
	}
	header := http.Header{}
	if s.After != "" {
		header.Set("Last-Event-ID", s.After)
	}
	path := "/v1/messages"
	if s.Events {
		path = "/v1/events"
	}
	response, err := c.do(ctx, http.MethodGet, path, query, nil, header)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if subscribed != nil {
		subscribed()
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	for {
		e, err := readEvent(lines)
		if err != nil {
			return err
		}
		if e.Message == nil && e.Missed == nil && e.Gap == nil && e.Group == nil {
			if s.Begins != nil {
				s.Begins(e.ID)
			}
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// readEvent reads the lines of an event.
func readEvent(lines *bufio.Scanner) (e Event, err error) {
	name, id, data, err := readLines(lines)
	if err != nil {
		return e, err
	}
	e.ID = id
	if name == "" {
		return e, nil // where the subscription begins
	}
	return e, e.decode(name, data)
}

// readLines reads the lines of a server-sent event.
func readLines(lines *bufio.Scanner) (name, id, data string, err error) {
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "" && name != "":
			return name, id, data, nil
		case lines.Text() == "" && id != "":
			return "", id, "", nil
		case field == "id":
			id = value
		case field == "event":
			name = value
		case field == "data":
			data = value
		}
	}
	if err := lines.Err(); err != nil {
		return "", "", "", err
	}
	return "", "", "", io.ErrUnexpectedEOF
}

func (e *Event) decode(name, data string) error {
	var into any
	switch name {
	case api.EventMessage:
		e.Message = new(api.Message)
		into = e.Message
	case api.EventMissed:
		e.Missed = new(retention.Missed)
		into = e.Missed
	case api.EventGap:
		e.Gap = new(api.Gap)
		into = e.Gap
	case api.EventJoin, api.EventLeave, api.EventFailed, api.EventUpdate, api.EventQuorumLost, api.EventQuorumRegained,
		api.EventKeysEmpty:
		e.Group = new(api.Event)
		into = e.Group
	default:
		return fmt.Errorf("the agent sends an event %q, which this program does not know", name)
	}
	return json.Unmarshal([]byte(data), into)
}
