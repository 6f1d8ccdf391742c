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
	if s.subscribers.Add(1) > maxSubscribers {
		s.subscribers.Add(-1)
		return &statusError{http.StatusTooManyRequests, fmt.Errorf("there are %d subscribers already", maxSubscribers)}
	}
	defer s.subscribers.Add(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	_ = control.Flush() // the client knows that it is subscribed
	for r.Context().Err() == nil {
		if err := s.writeEvent(r.Context(), w, control, cursor, log == s.agent.Events()); err != nil {
			return nil // the client is gone
		}
	}
	return nil
}

// writeEvent waits for the next event and writes it.
func (s *Server) writeEvent(ctx context.Context, w http.ResponseWriter, control *http.ResponseController, c *retain.Cursor, ofGroup bool) error {
	timed, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	event, err := c.Next(timed)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		_, err = fmt.Fprint(w, ": keep-alive\n\n")
	case err == nil:
		err = encodeEvent(w, &event, ofGroup)
	}
	return errors.Join(err, control.Flush())
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
	if e.ID != "" {
		if _, err := fmt.Fprintf(w, "id: %s\n", e.ID); err != nil {
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
