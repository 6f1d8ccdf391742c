package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pleach-go/pleach/agent/retention"
)

// keepAlive is how often a stream without messages has a comment, so that both sides notice
// that the other is gone.
const (
	keepAlive = 15 * time.Second
	// lastTimeout is how long other agents may take to tell the last message of a topic.
	lastTimeout = 5 * time.Second
)

// messages streams messages as server-sent events. A subscriber that was cut comes back
// with the ID of the last message that it has, as browsers do by themselves.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	filter := retention.Filter{
		ByTopic: query.Has("topic"), Topic: query.Get("topic"),
		Direct: query.Get("direct") == "true", Fleet: query.Get("fleet") == "true",
	}
	if filter.ByTopic && filter.Direct {
		return badRequest("topic and direct: a message to one member has no topic")
	}
	if filter.Fleet && filter.Direct {
		return badRequest("fleet and direct: a message to one member is not for the fleet")
	}
	if query.Get("last") == "true" && (!filter.ByTopic || filter.Direct) {
		return badRequest("last needs a topic: write topic=NAME&last=true")
	}
	return s.stream(w, r, s.agent.Messages(), filter)
}

// stream streams what a log has for a filter.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, log *retention.Log, filter retention.Filter) error {
	cursor, first, err := s.position(r, log, filter)
	if err != nil {
		return BadRequest(err)
	}
	subscribe(w)
	control := http.NewResponseController(w)
	if err := first(w); err != nil {
		return nil // the client is gone
	}
	_ = control.Flush() // the client knows that it is subscribed
	for r.Context().Err() == nil {
		if err := s.writeEvent(r.Context(), w, control, cursor, log != s.agent.Messages()); err != nil {
			return nil // the client is gone
		}
	}
	return nil
}

// subscribe begins a stream.
func subscribe(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).Flush() // the client knows that it is subscribed
}

// send writes to a subscriber at once.
func send(control *http.ResponseController, write func() error) error {
	return errors.Join(write(), control.Flush())
}

// position returns the position at which a stream begins, and what writes its beginning: an ID
// without an event for a subscriber that has none, so that it can come back before it has got
// anything, and the last message of the topic if it asks for that and another agent has it.
func (s *Server) position(r *http.Request, log *retention.Log,
	filter retention.Filter,
) (*retention.Cursor, func(http.ResponseWriter) error, error) {
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if after != "" {
		cursor, err := log.Subscribe(filter, after)
		return cursor, func(http.ResponseWriter) error { return nil }, err
	}
	if r.URL.Query().Get("last") != "true" {
		cursor, err := log.Subscribe(filter, "")
		return cursor, func(w http.ResponseWriter) error { return encodeID(w, cursor) }, err
	}
	cursor, found := log.SubscribeLast(filter)
	return cursor, func(w http.ResponseWriter) error {
		if !found && !filter.Fleet {
			ctx, cancel := context.WithTimeout(r.Context(), lastTimeout)
			defer cancel()
			if m, ok := s.agent.Last(ctx, filter.Topic); ok {
				return encodeEvent(w, &retention.Event{ID: cursor.ID(), Message: &m}, false)
			}
		}
		return encodeID(w, cursor)
	}, nil
}

// encodeID writes the ID of a position, without an event.
func encodeID(w io.Writer, c *retention.Cursor) error {
	_, err := fmt.Fprintf(w, "id: %s\n\n", c.ID())
	return err
}

// writeEvent waits for the next event and writes it.
func (s *Server) writeEvent(ctx context.Context, w http.ResponseWriter, control *http.ResponseController,
	c *retention.Cursor, ofGroup bool,
) error {
	timed, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	event, err := c.Next(timed)
	return send(control, func() error {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return encodeKeepAlive(w)
		case err == nil:
			return encodeEvent(w, &event, ofGroup)
		}
		return err
	})
}

func encodeKeepAlive(w io.Writer) error {
	_, err := io.WriteString(w, ": keep-alive\n\n")
	return err
}

// encodeEvent writes an event: a message, or what has happened to the group.
func encodeEvent(w http.ResponseWriter, e *retention.Event, ofGroup bool) error {
	name, data := EventMessage, any(nil)
	switch m := e.Message; {
	case m == nil:
		name, data = EventMissed, e.Missed
	case m.Gap != "":
		name, data = EventGap, Gap{m.Missing, m.Gap, m.Time}
	case ofGroup:
		name, data = m.Topic, eventData(m)
	default:
		data = Message{
			m.Topic, m.Zone,
			MemberRef{m.From, m.FromID},
			m.View, m.Time, m.Direct, m.Header,
			NewPayload(m.Data),
		}
	}
	return encodeSSE(w, e.ID, name, data)
}

// encodeSSE writes a server-sent event. If its ID is empty, it has none.
func encodeSSE(w io.Writer, id, name string, data any) error {
	if id != "" {
		if _, err := fmt.Fprintf(w, "id: %s\n", id); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: ", name); err != nil {
		return err
	}
	if err := encodeJSON(w, data); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
