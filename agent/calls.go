package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/agent/transfer"
	"github.com/pleach-go/pleach/fleet"
)

// Messages implements [api.Agent].
func (a *Agent) Messages() *retention.Log { return a.store.log }

// Broadcast implements [api.Agent]. Subscribers of this agent get the message as those of
// the others do: a program does not have to know which agent another program uses.
func (a *Agent) Broadcast(ctx context.Context, topic string, data []byte, stable bool) (*api.Receipt, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	if err := checkTopic(topic); err != nil {
		return nil, err
	}
	before := g.Sent()
	if err := a.broadcast(ctx, g, topic, data); err != nil {
		return nil, err
	}
	if !stable {
		return &api.Receipt{View: g.View().Number, Members: []api.MemberRef{}}, nil
	}
	proof, err := g.WaitStable(ctx, pleach.Since(before))
	if err != nil {
		return nil, err
	}
	return &api.Receipt{View: proof.View, Stable: true, Members: refs(proof.Members), Joined: refs(proof.Joined)}, nil
}

// checkTopic refuses topics that the agents use themselves.
func checkTopic(topic string) error {
	if strings.HasPrefix(topic, config.ReservedTopics) {
		return api.BadRequest(fmt.Errorf("topics that begin with %s are those of the agents", config.ReservedTopics))
	}
	switch topic {
	case transfer.Topic:
		return api.BadRequest(fmt.Errorf("the topic %s is that of copies: use POST /v1/files", topic))
	case servicesTopic:
		return api.BadRequest(fmt.Errorf("the topic %s is that of keys and locks: use /v1/kv and /v1/locks", topic))
	case fleet.Topic:
		return api.BadRequest(fmt.Errorf("the topic %s is that of the fleet: use POST /v1/broadcast?fleet=true", topic))
	}
	return nil
}

// refs names members.
func refs(members []pleach.Member) []api.MemberRef {
	list := make([]api.MemberRef, len(members))
	for i, m := range members {
		list[i] = api.MemberRef{Rank: m.Rank, ID: m.ID}
	}
	return list
}

// broadcast sends to the others and to the subscribers of this agent, which get it as a message
// of the group (Config.Delivery.Echo).
func (a *Agent) broadcast(ctx context.Context, g *pleach.Group, topic string, data []byte) error {
	select {
	case a.sendLock <- struct{}{}:
		defer func() { <-a.sendLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if topic == "" {
		return g.Broadcast(ctx, data)
	}
	return g.BroadcastTopic(ctx, topic, data)
}

// Send implements [api.Agent].
func (a *Agent) Send(ctx context.Context, to string, data []byte) (*api.Sent, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	view := g.View()
	m, err := find(view, to)
	if err != nil {
		return nil, err
	}
	if err := g.Send(ctx, m, data); err != nil {
		return nil, err
	}
	return &api.Sent{View: view.Number, To: api.MemberRef{Rank: m.Rank, ID: m.ID}}, nil
}

// find returns the member with an ID, or else with a rank.
func find(view pleach.View, to string) (pleach.Member, error) {
	for _, m := range view.Members() {
		if m.ID == to {
			return m, nil
		}
	}
	if rank, err := strconv.Atoi(to); err == nil {
		if m, ok := view.Member(rank); ok {
			return m, nil
		}
	}
	return pleach.Member{}, fmt.Errorf("%w: no member of view %d has the ID or rank %q", pleach.ErrGone, view.Number, to)
}
