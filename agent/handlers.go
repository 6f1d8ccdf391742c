package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/retention"
)

// A handler of a topic or an event is a subscriber of the agent itself: it reads the messages at its own
// pace. If it is too slow for the retention, it misses messages, and the log says so. A handler of a
// topic resumes where it was when the agent is started again (handler_cursors.go).

// drainTimeout is the time that running commands have to finish when the agent ends.
const drainTimeout = 5 * time.Second

// handlers are those of topics and events that run.
type handlers struct {
	life context.Context // of their commands
	kill context.CancelFunc
	done sync.WaitGroup

	positions positions

	mu      sync.Mutex
	running []*handler
}

type handler struct {
	config config.Handler
	stop   context.CancelFunc
}

// start starts the handlers that do not run yet, and stops those that are not wanted any
// more. A handler that stays is not interrupted.
func (h *handlers) start(ctx context.Context, a *Agent, wanted []config.Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running = slices.DeleteFunc(h.running, func(r *handler) bool {
		gone := !slices.ContainsFunc(wanted, func(c config.Handler) bool { return reflect.DeepEqual(c, r.config) })
		if gone {
			r.stop()
		}
		return gone
	})
	h.positions.keep(wanted)
	for _, c := range wanted {
		if c.Query != "" || slices.ContainsFunc(h.running, func(r *handler) bool { return reflect.DeepEqual(c, r.config) }) {
			continue
		}
		cursor, err := h.subscribe(a, &c)
		if err != nil {
			a.log.Error("handler", "on", c.On+c.Event, "error", err)
			continue
		}
		reading, stop := context.WithCancel(ctx)
		h.running = append(h.running, &handler{c, stop})
		h.done.Go(func() { a.handle(reading, c, cursor) })
	}
}

// subscribe returns the cursor of a handler. Events are retained for one start of the agent only.
func (h *handlers) subscribe(a *Agent, c *config.Handler) (*retention.Cursor, error) {
	name := c.On + c.Event
	f := retention.Filter{ByTopic: name != config.AllTopics, Topic: topicFilter(name)}
	if c.Event != "" {
		return a.events.Subscribe(f, "")
	}
	return h.resume(a.store.log, f, handlerName(c))
}

func topicFilter(on string) string {
	if on == config.AllTopics {
		return ""
	}
	return on
}

// stop stops all handlers. Commands that run have a little time to end.
func (h *handlers) stop() {
	h.mu.Lock()
	for _, r := range h.running {
		r.stop()
	}
	h.mu.Unlock()
	timer := time.AfterFunc(drainTimeout, h.kill)
	defer timer.Stop()
	h.done.Wait()
	h.kill()
}

// handle runs a command for each message until reading ends. Commands that run then have
// their time.
func (a *Agent) handle(reading context.Context, c config.Handler, cursor *retention.Cursor) {
	slots := make(chan struct{}, c.Concurrency)
	var commands sync.WaitGroup
	defer commands.Wait()
	at := progress{save: func(string) {}}
	if c.Event == "" {
		name := handlerName(&c)
		at.save = func(id string) { a.handlers.positions.set(name, id) }
	}
	for {
		e, err := cursor.Next(reading)
		switch {
		case err != nil:
			return
		case e.Missed != nil:
			a.log.Warn("handler is too slow", "on", c.On+c.Event, "missed", e.Missed.Count)
			continue
		case e.Message.Gap != "":
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-reading.Done():
			return
		}
		over := at.begin(e.ID)
		commands.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if a.handlers.life.Err() == nil { // otherwise it was killed: it runs again after a restart
					over()
				}
			}()
			if c.Event != "" {
				a.runEvent(a.handlers.life, &c, e.ID, e.Message)
			} else {
				a.runHandler(a.handlers.life, &c, e.ID, e.Message)
			}
		})
	}
}

func (a *Agent) runHandler(ctx context.Context, c *config.Handler, id string, m *retention.Message) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	variables := append(a.variables(), "PLEACH_TOPIC="+m.Topic, "PLEACH_FROM="+m.FromID, "PLEACH_FROM_ZONE="+m.Zone,
		fmt.Sprint("PLEACH_FROM_RANK=", m.From),
		fmt.Sprint("PLEACH_VIEW=", m.View), fmt.Sprint("PLEACH_DIRECT=", m.Direct), "PLEACH_MESSAGE_ID="+id)
	variables = append(variables, api.HeaderVariables(m.Header)...)
	if _, err := c.Run.Run(ctx, m.Data, variables...); err != nil {
		a.log.Warn("handler", "on", c.On, "topic", m.Topic, "from", m.FromID, "error", err)
	}
}

// variables are the environment of every command: the commands over the API find this agent
// by it.
func (a *Agent) variables() []string {
	c := a.config.Load()
	variables := []string{"PLEACH_SOCKET=" + c.Socket, "PLEACH_GROUP=" + c.Group, "PLEACH_ZONE=" + c.Zone}
	if g := a.group.Load(); g != nil {
		variables = append(variables, "PLEACH_ID="+g.Self().ID)
	}
	return variables
}
