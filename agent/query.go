package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/fleet"
)

// A query asks all members by requests to each, so the one that asks knows which have
// answered. A request ends with the view that its receiver is no longer in: a dead member
// does not hold up a query until its timeout.

// queryName is the name of the request for a query: programs that are members themselves
// may use other names.
func queryName(name string) string { return "query/" + name }

// pingQuery is answered by every agent.
const pingQuery = "ping"

// maxAsked is how many members are asked at a time.
const maxAsked = 128

// Query implements [api.Agent].
func (a *Agent) Query(ctx context.Context, name string, data []byte) (*api.Answers, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	return queryZone(ctx, g, name, data), nil
}

// queryZone asks all members of a group.
func queryZone(ctx context.Context, g *pleach.Group, name string, data []byte) *api.Answers {
	view := g.View()
	members := view.Members()
	answers, reasons := make([]api.Answer, len(members)), make([]error, len(members))
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxAsked)
	for i, m := range members {
		slots <- struct{}{} // a slot is free again when ctx ends, at the latest
		asking.Go(func() {
			defer func() { <-slots }()
			answers[i], reasons[i] = ask(ctx, g, m, name, data)
		})
	}
	asking.Wait()
	result := &api.Answers{Name: name, View: view.Number, Answers: []api.Answer{}, Unanswered: []api.Unanswered{}}
	for i := range members {
		if reasons[i] != nil {
			result.Unanswered = append(result.Unanswered, api.Unanswered{
				MemberRef: answers[i].MemberRef,
				Reason:    reasonOf(reasons[i]),
			})
			continue
		}
		result.Answers = append(result.Answers, answers[i])
	}
	return result
}

// ask asks one member. An error says why it has not answered.
func ask(ctx context.Context, g *pleach.Group, m pleach.Member, name string, data []byte) (api.Answer, error) {
	answer := api.Answer{MemberRef: api.MemberRef{Rank: m.Rank, ID: m.ID}}
	began := time.Now()
	b, err := g.Request(ctx, m, queryName(name), data)
	answer.Seconds = time.Since(began).Seconds()
	answer.Payload = api.NewPayload(b)
	var refused *pleach.RequestError
	switch {
	case errors.Is(err, pleach.ErrNoHandler):
		answer.Error = fmt.Sprintf("it has no handler for the query %q", name)
	case errors.As(err, &refused):
		answer.Error = refused.Err.Error()
	case err != nil:
		return answer, err
	}
	return answer, nil
}

func reasonOf(err error) string {
	var quorum *pleach.QuorumError
	var zone *fleet.ZoneError
	switch {
	case errors.As(err, &zone):
		return zone.Err.Error()
	case errors.As(err, &quorum):
		return fmt.Sprintf("no quorum: %d of %d reachable, %d needed", quorum.Reachable, quorum.Members, quorum.Needed)
	case errors.Is(err, pleach.ErrGone):
		return "it is gone"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return err.Error()
}

// queries are the handlers of queries that a group has.
type queries struct {
	mu    sync.Mutex
	group *pleach.Group
	names []string
}

// registerQueries has a group answer the queries of the present settings, and no others.
func (a *Agent) registerQueries(g *pleach.Group) {
	q := &a.queries
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.group != g {
		q.group, q.names = g, nil
	}
	old := q.names
	q.names = nil
	g.Handle(queryName(pingQuery), func(context.Context, pleach.Request) ([]byte, error) { return []byte("pong"), nil })
	for _, h := range a.config.Load().Handlers {
		if h.Query != "" {
			g.Handle(queryName(h.Query), a.answerer(g, h))
			q.names = append(q.names, h.Query)
		}
	}
	for _, name := range old {
		if !slices.Contains(q.names, name) && name != pingQuery {
			g.Handle(queryName(name), nil)
		}
	}
}

// answerer answers a query by the output of a command.
func (a *Agent) answerer(g *pleach.Group, h config.Handler) func(context.Context, pleach.Request) ([]byte, error) {
	slots := make(chan struct{}, h.Concurrency)
	return func(ctx context.Context, r pleach.Request) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, h.Timeout)
		defer cancel()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		from, _ := g.View().Member(r.From)
		out, err := h.Run.Run(ctx, r.Data, append(a.variables(), "PLEACH_QUERY="+h.Query, "PLEACH_FROM="+from.ID,
			fmt.Sprint("PLEACH_FROM_RANK=", r.From))...)
		if err != nil {
			a.log.Warn("handler", "query", h.Query, "error", err)
		}
		return out, err
	}
}
