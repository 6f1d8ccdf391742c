package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/backfill"
	"github.com/pleach-go/pleach/agent/retention"
)

// An agent that becomes a member again gets what it has missed from the logs of others, as
// package backfill decides, before it takes in the messages of its new membership.

// Names of requests: for what an agent has missed, and for the last message of a topic.
const (
	logName  = "agent/log"
	lastName = "agent/last"
)

const (
	fillTimeout = 30 * time.Second // for everything
	pageTimeout = 10 * time.Second // for a reply
	pageBytes   = 1 << 20          // of messages in a reply, and one more
	maxLast     = 3                // agents that are asked for the last message of a topic
)

// follow has a group that is about to be joined tell the store all that it needs, and answer
// other agents from the first view on.
func (s *store) follow(c *pleach.Config) {
	c.Delivery.Echo = true
	if c.Delivery.Handlers == nil {
		c.Delivery.Handlers = make(map[string]func(context.Context, pleach.Request) ([]byte, error))
	}
	handlers := c.Delivery.Handlers
	handlers[logName] = func(ctx context.Context, r pleach.Request) ([]byte, error) { return s.answer(ctx, r.Data) }
	handlers[fleetLogName] = func(_ context.Context, r pleach.Request) ([]byte, error) { return s.answerFleet(r.Data) }
	handlers[lastName] = func(_ context.Context, r pleach.Request) ([]byte, error) { return s.answerLast(r.Data) }
}

// enter fills what was missed before the first view of a membership. It reports false if ctx
// ends before.
func (s *store) enter(ctx context.Context, g *pleach.Group, v *pleach.View, rank int) bool {
	filling, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	s.mu.Lock()
	s.callOff, s.entering, s.reached = cancel, true, v.Number // nothing of the views before comes from the group any more
	s.mu.Unlock()
	s.taken.Notify()
	last, _ := s.positions.Last()
	fill := backfill.NewFill(&s.positions, v.Number, s.limits)
	if fill != nil {
		s.fill(filling, g, fill, rank)
	}
	if ctx.Err() != nil {
		return false
	}
	if fill != nil {
		s.filled(fill.Result(), last.Number, v.Number)
	}
	return true
}

// agentsOf are the other members of a view, those first that have been members for longest:
// they know most.
func agentsOf(v *pleach.View, self int) []pleach.Member {
	members := slices.DeleteFunc(slices.Clone(v.Members()), func(m pleach.Member) bool { return m.Rank == self })
	slices.SortStableFunc(members, func(a, b pleach.Member) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
	return members
}

// fill asks other agents, as the machine decides.
func (s *store) fill(ctx context.Context, g *pleach.Group, fill *backfill.Fill, self int) {
	known := make(map[process]bool)
	look := func() {
		v := g.View()
		for _, m := range agentsOf(&v, self) {
			if p := (process{m.ID, m.Incarnation}); !known[p] {
				known[p] = true
				fill.Add(m.Rank)
			}
		}
	}
	drive(ctx, s.logger, fill, look, func(rank int) error {
		reply, err := askLog(ctx, g, rank, fill.Request())
		if err == nil {
			fill.Answer(reply)
		}
		return err
	})
}

// filling is a machine that has agents asked.
type filling[T any] interface {
	Next(now time.Duration) backfill.Step[T]
	Pass()
	Failed(now time.Duration, gone bool) (givenUp bool)
}

// drive drives a machine until it is over, or ctx ends. look adds agents to it, and ask asks one
// and gives it the answer.
func drive[T any](ctx context.Context, log *slog.Logger, f filling[T], look func(), ask func(T) error) {
	for began := time.Now(); ctx.Err() == nil; {
		look()
		step := f.Next(time.Since(began))
		switch {
		case step.Wait > 0:
			pause(ctx, step.Wait)
			continue
		case !step.Ask:
			return
		}
		switch err := ask(step.Agent); {
		case err == nil:
		case errors.Is(err, pleach.ErrNoHandler):
			f.Pass() // a program, or an agent of an earlier version
		case f.Failed(time.Since(began), errors.Is(err, pleach.ErrGone)):
			log.Warn("an agent does not tell what was missed", "peer", step.Agent, "cause", err)
		}
	}
}

// askLog asks an agent for a page.
func askLog(ctx context.Context, g *pleach.Group, rank int, r *backfill.Request) (*backfill.Reply, error) {
	question, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	b, err := g.Request(ctx, pleach.Member{Rank: rank}, logName, question)
	if err != nil {
		return nil, err
	}
	reply := new(backfill.Reply)
	return reply, json.Unmarshal(b, reply)
}

// filled publishes what was got, behind a notice of what was not.
func (s *store) filled(r backfill.Result, from, until uint64) {
	var batch []retention.Message
	if r.Missing > 0 || r.Uncertain {
		reason := fmt.Sprintf("the agent was not a member between view %d and view %d, and no other agent has them any more",
			from, until)
		if r.Uncertain {
			reason = fmt.Sprintf(
				"the agent was not a member between view %d and view %d, and no agent that answers knows all that was sent", from,
				until)
		}
		batch = append(batch, retention.Message{Gap: reason, Missing: r.Missing, Time: time.Now()})
	}
	s.logger.Info("filled what was missed", "from", from, "until", until, "messages", len(r.Messages),
		"missing", r.Missing, "uncertain", r.Uncertain)
	s.publish(append(batch, r.Messages...))
	s.mu.Lock()
	s.positions.Filled(r, until)
	s.mu.Unlock()
	s.saveSnapshot()
}

// answer tells another agent what it has missed.
func (s *store) answer(ctx context.Context, question []byte) ([]byte, error) {
	r := new(backfill.Request)
	if err := json.Unmarshal(question, r); err != nil {
		return nil, err
	}
	reply, err := s.reply(ctx, r)
	if err != nil {
		return nil, err
	}
	if reply.Known {
		reply.Next = s.log.Select(r.After, retention.Limits{Messages: r.Messages, Bytes: r.Bytes}, r.Wants(),
			page(&reply.Coded))
	}
	return json.Marshal(reply)
}

// reply begins a reply, as soon as the log has everything of the views in question.
func (s *store) reply(ctx context.Context, r *backfill.Request) (*backfill.Reply, error) {
	for {
		taken := s.taken.Wait()
		s.mu.Lock()
		reached, reply := s.reached, s.positions.Reply(r)
		reply.Filling = s.entering
		s.mu.Unlock()
		if !reply.Known || reached >= r.Until {
			return reply, nil
		}
		select {
		case <-taken:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.stopped:
			return nil, errors.New("the agent ends")
		}
	}
}

// answerLast tells another agent the last message of a topic.
func (s *store) answerLast(topic []byte) ([]byte, error) {
	m, ok := s.log.Last(retention.Filter{ByTopic: true, Topic: string(topic)})
	if !ok || m.Index == 0 && !m.Fleet { // a rollout released it to this agent
		return nil, nil
	}
	return m.Append(nil), nil
}

// Last implements [api.Agent]. What was sent in this agent's time is in its own log.
func (a *Agent) Last(ctx context.Context, topic string) (retention.Message, bool) {
	g, err := a.current()
	if err != nil {
		return retention.Message{}, false
	}
	v := g.View()
	agents := agentsOf(&v, g.Rank())
	for _, m := range agents[:min(len(agents), maxLast)] {
		b, err := g.Request(ctx, m, lastName, []byte(topic))
		if err != nil || len(b) == 0 {
			continue
		}
		if m, err := retention.Decode(b); err == nil && m.View < g.Self().Incarnation && m.Gap == "" {
			return m, true
		}
	}
	return retention.Message{}, false
}
