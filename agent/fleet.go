package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/discover"
	"github.com/pleach-go/pleach/agent/retention"
	"github.com/pleach-go/pleach/fleet"
)

// An agent that has a zone is a member of a fleet besides: its group is the group of the
// zone, and the fleet is attached to each of its memberships.

// zones is the agent's part in a fleet.
type zones struct {
	current  atomic.Pointer[fleet.Fleet] // nil: it is in none
	sendLock chan struct{}               // held by the one broadcast to the fleet that is under way
	uploads  uploads
}

// attachTimeout bounds an attempt to enter the fleet.
const attachTimeout = 30 * time.Second

var errNoZone = errors.New(
	"the agent is in no fleet: write zone: NAME into its file, and the seeds of the other zones (zones)")

// inFleet returns the fleet.
func (a *Agent) inFleet() (*fleet.Fleet, error) {
	if f := a.fleet.current.Load(); f != nil {
		return f, nil
	}
	if a.config.Load().Zone == "" {
		return nil, api.BadRequest(errNoZone)
	}
	return nil, api.ErrNotInFleet
}

// keepFleet keeps the agent in its fleet, if it has a zone, until ctx ends.
func (a *Agent) keepFleet(ctx context.Context, g *pleach.Group) {
	c := a.config.Load()
	for c.Zone != "" && ctx.Err() == nil {
		f, err := a.attach(ctx, g, c)
		if err != nil {
			if ctx.Err() == nil {
				a.log.Warn("not in the fleet yet", "zone", c.Zone, "cause", err)
			}
			pause(ctx, time.Second)
			continue
		}
		a.fleet.current.Store(f)
		a.store.push(arrival{joined: &attached{fleet: f, name: c.Group, zone: c.Zone}})
		a.log.Info("in the fleet", "fleet", c.Group, "zone", c.Zone)
		following, stop := context.WithCancel(ctx)
		go a.followZones(following, f, c)
		a.receiveFleet(ctx, f)
		stop()
		a.fleet.current.Store(nil)
		_ = f.Close() // the zone's group tells how it has ended
	}
}

// attach makes the agent a member of its fleet.
func (a *Agent) attach(ctx context.Context, g *pleach.Group, c *config.Config) (*fleet.Fleet, error) {
	group, err := c.GroupConfig(a.options.Version)
	if err != nil {
		return nil, err
	}
	group.Logger = a.log
	fc := c.FleetConfig(group)
	fc.Backbone.Security.OnOperator = a.operated
	if b := &fc.Backbone; strings.HasPrefix(b.Listen, ":") {
		host, _, _ := net.SplitHostPort(g.Self().Address) // as Listen has to name one
		b.Listen = net.JoinHostPort(host, b.Listen[1:])
	}
	fc.Seeds = make(map[string][]string)
	for zone := range c.Zones {
		fc.Seeds[zone] = a.zoneSeeds(ctx, c, zone)
	}
	ctx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	f, err := fleet.Attach(ctx, g, fc)
	if err == nil {
		f.Handle(queryFleetName, a.answerQuery)
		f.Handle(statusFleetName, a.answerStatus)
		f.Handle(filesFleetName, a.answerFile)
		f.Handle(fleetLogName,
			func(_ context.Context, r fleet.Request) ([]byte, error) { return a.store.answerFleet(r.Data) })
		g.Handle(linksName, a.answerLinks)
	}
	return f, err
}

func (a *Agent) zoneSeeds(ctx context.Context, c *config.Config, zone string) []string {
	seeds, err := discover.Resolve(ctx, net.DefaultResolver, c.Zones[zone])
	if err != nil && ctx.Err() == nil {
		a.log.Warn("seeds", "zone", zone, "cause", err)
	}
	return seeds
}

// followZones resolves the seeds of other zones again while some zone is silent.
func (a *Agent) followZones(ctx context.Context, f *fleet.Fleet, c *config.Config) {
	for pause(ctx, discoverInterval) {
		heard := make(map[string]bool)
		for _, z := range f.Zones() {
			heard[z.Zone] = z.Age < 4*discoverInterval
		}
		for zone, seeds := range c.Zones {
			if heard[zone] || !discover.Dynamic(seeds) {
				continue
			}
			if now := a.zoneSeeds(ctx, c, zone); len(now) > 0 {
				f.SetSeeds(zone, now...)
			}
		}
	}
}

// receiveFleet retains what members of all zones send, until ctx or the membership ends.
func (a *Agent) receiveFleet(ctx context.Context, f *fleet.Fleet) {
	for m, err := range f.Messages(ctx) {
		var lost uint64
		if e, ok := errors.AsType[*fleet.LostError](err); ok { // the store fills what comes before the next message
			m = fleet.Message{Zone: e.Zone, ID: e.ID, Incarnation: e.Incarnation, Seq: e.Last + 1}
			lost = e.Last - e.First + 1
		}
		r := retention.Message{
			From: -1, FromID: m.ID, Fleet: true, Zone: m.Zone, Incarnation: m.Incarnation, Index: m.Seq,
			Time: time.Now(), Header: m.Header,
		}
		r.Topic, r.Data = openEnvelope(m.Data)
		a.store.push(arrival{message: r, lost: lost})
	}
}

// BroadcastFleet implements [api.Agent]. A message that every member of the zone has goes to the other
// zones even if this agent dies, or is cut off already and does not know it.
func (a *Agent) BroadcastFleet(ctx context.Context, topic string, data []byte, stable bool) (*api.Receipt, error) {
	g, err := a.current()
	if err != nil {
		return nil, err
	}
	f, err := a.inFleet()
	if err != nil {
		return nil, err
	}
	if err := checkTopic(topic); err != nil {
		return nil, err
	}
	select {
	case a.fleet.sendLock <- struct{}{}:
		defer func() { <-a.fleet.sendLock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := f.Broadcast(ctx, sealEnvelope(topic, data)); err != nil {
		return nil, err
	}
	zones := len(a.zoneNames(f))
	if !stable {
		return &api.Receipt{View: g.View().Number, Members: []api.MemberRef{}, Zones: zones}, nil
	}
	proof, err := g.WaitStable(ctx)
	if err != nil {
		return nil, err
	}
	return &api.Receipt{
		View: proof.View, Stable: true, Members: refs(proof.Members), Joined: refs(proof.Joined),
		Zones: zones,
	}, nil
}

// setMeta tells the others about this agent.
func (a *Agent) setMeta(ctx context.Context, g *pleach.Group, meta string) error {
	if f := a.fleet.current.Load(); f != nil {
		return f.SetMeta(ctx, meta)
	}
	return g.SetMeta(ctx, meta)
}

// A message of a fleet has no topic of its own. Agents put it before the data, behind a mark
// that no text begins with. What has no topic goes as it is, and so does what Go programs
// broadcast.
const envelopeMark = "\xff\xfe"

func sealEnvelope(topic string, data []byte) []byte {
	if topic == "" {
		return data
	}
	b := binary.AppendUvarint([]byte(envelopeMark), uint64(len(topic)))
	return append(append(b, topic...), data...)
}

// openEnvelope is the inverse of sealEnvelope.
func openEnvelope(b []byte) (topic string, data []byte) {
	if len(b) < len(envelopeMark) || string(b[:len(envelopeMark)]) != envelopeMark {
		return "", b
	}
	rest := b[len(envelopeMark):]
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return "", b
	}
	return string(rest[size : size+int(n)]), rest[size+int(n):]
}
