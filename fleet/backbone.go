package fleet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// A delegate is in the backbone as long as it is a delegate. The backbone keeps nothing: a
// delegate that is removed from it, that has no quorum in it, or that finds a larger one
// leaves it, enters another one, and exchanges positions there. So two backbones, as they
// come from a partition, become one. [backbone.Machine] decides all of it.
//
// Delegates announce their addresses in the backbone by their meta in the zone, where processes
// of other zones find them by [pleach.Inspect]: see public.go.

// retractTimeout bounds the announcement that this process is no longer in the backbone.
const retractTimeout = 5 * time.Second

// delegation carries out what a backbone.Machine decides.
type delegation struct {
	fleet *Fleet
	news  chan struct{} // the machine may have something to do

	mu      sync.Mutex // guards machine
	machine *backbone.Machine

	// The rest is used by run only.
	address string   // of this process in the last backbone
	session *session // the last one
	round   uint64   // of the last questions
	asking  context.Context
	cancel  context.CancelFunc // ends them
}

func newDelegation(f *Fleet) *delegation {
	d := &delegation{fleet: f, news: make(chan struct{}, 1)}
	d.machine = backbone.New(backbone.Config{Zone: f.config.Zone, Delegates: f.config.Delegates})
	d.machine.SetSeeds(f.seededZones())
	d.asking, d.cancel = context.WithCancel(f.life)
	return d
}

// step has the machine take an input.
func (d *delegation) step(input func(m *backbone.Machine, now backbone.Time)) {
	d.mu.Lock()
	input(d.machine, d.fleet.now())
	d.mu.Unlock()
	signal(d.news)
}

// next returns what the machine has decided or, if that is nothing, how long it waits.
func (d *delegation) next() (backbone.Action, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.fleet.now()
	if a := d.machine.Next(now); a != nil {
		return a, 0
	}
	return nil, max(time.Duration(d.machine.Deadline()-now), 0)
}

// run carries out actions until the membership in the fleet ends.
func (d *delegation) run() {
	life := d.fleet.life
	for life.Err() == nil {
		action, wait := d.next()
		if action != nil {
			d.perform(action)
			continue
		}
		select {
		case <-d.news:
		case <-time.After(wait):
		case <-life.Done():
		}
	}
	d.cancel()
}

func (d *delegation) perform(action backbone.Action) {
	life := d.fleet.life
	switch a := action.(type) {
	case backbone.AskZone:
		d.ask(a.Round, func(ctx context.Context) backbone.Found { return d.fleet.findIn(ctx, &a) })
	case backbone.AskDelegates:
		d.ask(a.Round, func(ctx context.Context) backbone.Found { return d.fleet.findAt(ctx, a.Addresses, a.Timeout) })
	case backbone.Join:
		d.cancel()
		ctx, cancel := context.WithTimeout(life, time.Duration(a.Timeout))
		g, err := pleach.Join(ctx, d.config(a.SameAddress), a.Seeds...)
		cancel()
		d.entered(g, err)
	case backbone.Create:
		d.cancel()
		d.entered(pleach.Create(life, d.config(a.SameAddress)))
	case backbone.Leave:
		d.cancel()
		d.session.end()
	case backbone.Announce:
		if a.Address != "" {
			d.session.announce(a.Address)
			return
		}
		ctx, cancel := context.WithTimeout(life, retractTimeout)
		_ = d.fleet.tell(ctx, "")
		cancel()
	}
}

// ask asks a question of a round. The questions of the round before are canceled.
func (d *delegation) ask(round uint64, find func(context.Context) backbone.Found) {
	if round != d.round {
		d.cancel()
		d.asking, d.cancel = context.WithCancel(d.fleet.life)
		d.round = round
	}
	ctx := d.asking
	d.fleet.running.Go(func() {
		found := find(ctx)
		d.step(func(m *backbone.Machine, now backbone.Time) { m.Found(now, round, found) })
	})
}

// config is that of a group that this process joins or creates.
func (d *delegation) config(sameAddress bool) pleach.Config {
	f := d.fleet
	c := f.config.Backbone
	c.ID = f.config.Zone + "/" + f.origin.ID
	c.Meta = f.describe()
	if sameAddress && d.address != "" {
		c.Listen = d.address // others know it
	}
	return c
}

// entered begins a session in a group that this process has joined or created.
func (d *delegation) entered(g *pleach.Group, err error) {
	if err != nil {
		d.step((*backbone.Machine).Failed)
		return
	}
	f := d.fleet
	d.address = g.Self().Address
	d.session = newSession(d, g)
	f.mu.Lock()
	f.backbone = d.session
	f.mu.Unlock()
	d.step(func(m *backbone.Machine, now backbone.Time) { m.Entered(now, d.address) })
	f.running.Go(d.session.serve)
}

// describe is the meta of this process in the backbone: its age in its zone, and the birth
// of the zone.
func (f *Fleet) describe() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("%d %d", age(f.zone.Self()), f.machine.Born())
}

// peerOf reads a delegate, and what it tells of itself.
func peerOf(m pleach.Member) relay.Peer {
	p := relay.Peer{Rank: m.Rank, Incarnation: m.Incarnation, Zone: m.FailureDomain}
	age, born, _ := strings.Cut(m.Meta, " ")
	p.Age, _ = strconv.ParseUint(age, 10, 64) // another text would be a delegate of age 0
	p.Born, _ = strconv.ParseUint(born, 10, 64)
	return p
}
