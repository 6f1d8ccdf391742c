package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/pleach-go/pleach/internal/agent/retain"
)

// keepAlive is how often a stream without messages has a comment, so that both sides notice
// that the other is gone. writeTimeout is how long a subscriber may read nothing.
const (
	keepAlive    = 15 * time.Second
	writeTimeout = 30 * time.Second
)

// messages streams messages as server-sent events. A subscriber that was cut comes back
// with the ID of the last message that it has, as browsers do by themselves.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	filter := retain.Filter{ByTopic: query.Has("topic"), Topic: query.Get("topic"), Direct: query.Get("direct") == "true", Fleet: query.Get("fleet") == "true"}
	if filter.ByTopic && filter.Direct {
		return badRequest("topic and direct: a message to one member has no topic")
	}
	if filter.Fleet && filter.Direct {
		return badRequest("fleet and direct: a message to one member is not for the fleet")
	}
	return s.stream(w, r, s.agent.Messages(), filter)
}

// stream streams what a log has for a filter.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, log *retain.Log, filter retain.Filter) error {
	cursor, err := log.Subscribe(filter, cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	if err != nil {
		return BadRequest(err)
	}
	if err := s.subscribe(w); err != nil {
		return err
	}
	defer s.subscribers.Add(-1)
	control := http.NewResponseController(w)
	for r.Context().Err() == nil {
		if err := s.writeEvent(r.Context(), w, control, cursor, log == s.agent.Events()); err != nil {
			return nil // the client is gone
		}
	}
	return nil
}

// subscribe begins a stream, if there are not too many.
func (s *Server) subscribe(w http.ResponseWriter) error {
	if s.subscribers.Add(1) > maxSubscribers {
		s.subscribers.Add(-1)
		return &statusError{http.StatusTooManyRequests, fmt.Errorf("there are %d subscribers already", maxSubscribers)}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).Flush() // the client knows that it is subscribed
	return nil
}

// send writes to a subscriber, which may take its time, but not for ever.
func send(control *http.ResponseController, write func() error) error {
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	return errors.Join(write(), control.Flush())
}

// writeEvent waits for the next event and writes it.
func (s *Server) writeEvent(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, c *retain.Cursor, ofGroup bool) error {
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
func encodeEvent(w http.ResponseWriter, e *retain.Event, ofGroup bool) error {
	name, data := EventMessage, any(nil)
	switch m := e.Message; {
	case m == nil:
		name, data = EventMissed, e.Missed
	case m.Gap != "":
		name, data = EventGap, Gap{m.Gap, m.Time}
	case ofGroup:
		name, data = m.Topic, eventData(m)
	default:
		data = Message{m.Topic, m.Zone, MemberRef{m.From, m.FromID}, m.View, m.Time, m.Direct, NewPayload(m.Data)}
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
