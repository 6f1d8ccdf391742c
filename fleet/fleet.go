package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/header"
	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// topicName is the topic of the zone's group that carries the frames of the fleet, and the
// name of the requests.
const topicName = Topic

// forwardName is the name of requests by which members forward messages to the lead.
const forwardName = topicName + ".forward"

// Times of the protocol.
const (
	ackDelay       = 2 * time.Second
	watermarkDelay = 500 * time.Millisecond
	stallTimeout   = 5 * time.Second
	gapDelay       = 500 * time.Millisecond
	forwardDelay   = 5 * time.Millisecond
	forwardTimeout = time.Second
	retryDelay     = 20 * time.Millisecond
	pollTimeout    = 10 * time.Second
	tableTimeout   = 5 * time.Second
	helloInterval  = time.Second
	linkWindow     = 4 << 20
	ackBytes       = 32 << 10
	maxBatch       = 32 << 10 // frames that are sent together
)

// Fleet is this process's membership in a fleet. Its methods are safe for concurrent use.
type Fleet struct {
	config Config
	zone   *pleach.Group
	since  uint64 // broadcasts of the zone's Group before this fleet; its receipts do not cover them
	topic  *pleach.Subscription
	origin relay.Origin
	began  time.Time
	life   context.Context // ends with this membership; its cause is Err
	end    context.CancelCauseFunc

	inbox      *queue[relay.Message]
	casts      *queue[cast]
	window     chan struct{} // Broadcast may be possible
	delegation *delegation
	running    sync.WaitGroup
	closing    sync.Once

	forwarding atomic.Bool // a message is on its way to the lead
	attached   bool        // the zone's group is the program's, which leaves it itself

	asking asking
	public public

	mu       sync.Mutex // guards the rest
	machine  *relay.Machine
	timer    *time.Timer
	tick     relay.Time // when the timer fires, or noTick
	waiting  int        // calls of Broadcast that wait for window
	size     int        // of the zone
	backbone *session
}

// cast is what the casting goroutine does next: broadcast a frame, or wait until the frames
// before are stable.
type cast struct {
	frame []byte
	poll  bool
	done  chan struct{} // closed when the frame is broadcast, if not nil
}

// Join makes this process a member of a zone and, with it, of the fleet: it returns when the
// zone has installed a view with this process in it, and has told it where the messages of
// all origins begin. From then on it receives every broadcast of every zone. ctx bounds the
// call, not the membership. Its errors are those of [pleach.Join].
//
// The other zones need not be reachable. What is broadcast meanwhile is kept for them.
func Join(ctx context.Context, c Config) (*Fleet, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	var zone *pleach.Group
	var err error
	if seeds := c.Seeds[c.Zone]; len(seeds) == 0 && c.Group.Expect == 0 {
		zone, err = pleach.Create(ctx, c.Group)
	} else {
		zone, err = pleach.Join(ctx, c.Group, seeds...)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: zone %q: %w", c.Zone, err)
	}
	f, err := newFleet(c, zone)
	if err == nil {
		err = f.enter(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fleet: zone %q: %w", c.Zone, err), zone.Close())
	}
	return f, nil
}

func newFleet(c Config, zone *pleach.Group) (*Fleet, error) {
	f := &Fleet{
		config: c, zone: zone, since: zone.Sent(), began: time.Now().Add(-time.Second), // so that the time is never 0
		origin: relay.Origin{Zone: c.Zone, ID: zone.Self().ID, Incarnation: zone.Self().Incarnation},
		window: make(chan struct{}, 1),
	}
	if len(f.origin.ID) > relay.MaxName {
		return nil, &pleach.ConfigError{Field: "Group.ID", Reason: fmt.Sprintf("has %d bytes: choose at most %d",
			len(f.origin.ID), relay.MaxName)}
	}
	f.public.meta, f.public.seeds = c.Group.Meta, c.Seeds
	if b := &f.config.Backbone; b.Listen == "" && b.Advertise == "" {
		host, _, _ := net.SplitHostPort(zone.Self().Address)
		b.Listen = net.JoinHostPort(host, "0")
	}
	f.life, f.end = context.WithCancelCause(context.Background())
	f.delegation = newDelegation(f)
	f.inbox = newQueue(f.life, c.KeepBytes, func(m relay.Message) int { return len(m.Header) + len(m.Data) })
	f.casts = newQueue(f.life, c.KeepBytes, func(c cast) int { return len(c.frame) })
	window := min(linkWindow, c.KeepBytes/2)
	f.machine = relay.New(relay.Config{
		Self: f.origin, Born: uint64(time.Now().UnixNano()), KeepBytes: c.KeepBytes, MaxOrigins: maxOrigins, Window: window,
		AckBytes: min(ackBytes, window/4),
		AckDelay: relay.Time(ackDelay), WatermarkDelay: relay.Time(watermarkDelay), Stall: relay.Time(stallTimeout),
		GapDelay: relay.Time(gapDelay),
		Patience: relay.Time(c.Patience), Zones: f.seededZones(),
		ForwardDelay: relay.Time(forwardDelay), Echo: c.Echo,
	})
	f.tick = noTick
	f.timer = time.AfterFunc(time.Hour, func() {
		f.step(func(now relay.Time) {
			f.tick = noTick
			f.machine.Tick(now)
		})
	})
	var err error
	f.topic, err = zone.Subscribe(topicName)
	return f, err
}

// enter starts this member, and waits until it has the positions of its zone.
func (f *Fleet) enter(ctx context.Context) error {
	f.zone.Handle(topicName, f.serve)
	f.zone.Handle(forwardName, f.takeForward)
	f.zone.Handle(requestName, f.passOn)
	f.running.Go(f.receive)
	f.running.Go(f.cast)
	f.running.Go(f.watchZone)
	if err := f.begin(ctx); err != nil {
		f.end(err)
		f.running.Wait()
		return err
	}
	f.running.Go(f.delegation.run)
	return nil
}

// begin waits until this member has the positions of its zone: another one has told them
// or, if none can, it is the oldest.
func (f *Fleet) begin(ctx context.Context) error {
	var helloAt time.Time
	for {
		if time.Since(helloAt) > helloInterval {
			helloAt = time.Now()
			_ = f.zone.BroadcastTopic(ctx, topicName, f.machine.Hello())
		}
		order := byAge(f.zone.View().Members())
		for _, m := range order[:min(len(order), f.config.Delegates)] {
			if m.Rank != f.zone.Rank() && f.joinBy(ctx, m.Rank) {
				return nil
			}
		}
		if len(order) > 0 && order[0].Rank == f.zone.Rank() {
			f.step(f.machine.Begin)
			return nil
		}
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
			return ctx.Err()
		case <-f.life.Done():
			return f.Err()
		}
	}
}

// joinBy asks a member for the positions of the zone. It reports whether that has them.
func (f *Fleet) joinBy(ctx context.Context, rank int) bool {
	ctx, cancel := context.WithTimeout(ctx, tableTimeout)
	defer cancel()
	table, err := f.zone.Request(ctx, pleach.Member{Rank: rank}, topicName, f.machine.TableRequest())
	if err == nil {
		f.step(func(now relay.Time) { err = f.machine.Join(now, table) })
	}
	return err == nil
}

// byAge orders members: those that have been in the zone for longest come first. A process
// that joins gets the lowest free rank, but knows least, so ranks order only members that
// have joined together.
func byAge(members []pleach.Member) []pleach.Member {
	return slices.SortedFunc(slices.Values(members), func(a, b pleach.Member) int { return cmp.Compare(age(a), age(b)) })
}

func age(m pleach.Member) uint64 { return m.Incarnation<<20 | uint64(m.Rank) }

// step has the machine take an input, and does what follows.
func (f *Fleet) step(input func(now relay.Time)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.life.Err() != nil {
		return
	}
	input(f.now())
	f.inbox.add(f.machine.Delivered()...)
	for _, a := range f.machine.Actions() {
		f.perform(a)
	}
	if d := f.machine.Deadline(); d >= 0 && d < f.tick { // an earlier tick does no harm
		f.tick = d
		f.timer.Reset(max(time.Duration(d-f.now()), time.Millisecond))
	}
	if f.waiting > 0 && f.open() {
		signal(f.window)
	}
}

// noTick is later than any tick.
const noTick = relay.Time(1<<63 - 1)

func (f *Fleet) now() relay.Time { return relay.Time(time.Since(f.began)) }

// perform does what the machine asks for, without waiting.
func (f *Fleet) perform(a relay.Action) {
	switch a := a.(type) {
	case relay.Cast:
		f.casts.add(cast{frame: a.Frame})
	case relay.Poll:
		f.casts.add(cast{poll: true})
	case relay.Forward:
		f.forward(a.Rank, a.Frame)
	case relay.Send:
		if f.backbone != nil {
			f.backbone.send(a)
		}
	case relay.Fetch:
		f.running.Go(func() {
			if reply, err := f.zone.Request(f.life, pleach.Member{Rank: a.Rank}, topicName, a.Frame); err == nil {
				f.step(func(now relay.Time) { _ = f.machine.Fetched(now, reply) })
			}
		})
	}
}

// forward sends a frame to the lead. One is on its way at a time: if the lead is slow, the
// broadcast is as fast.
func (f *Fleet) forward(rank int, frame []byte) {
	if !f.forwarding.CompareAndSwap(false, true) {
		return
	}
	f.running.Go(func() {
		defer f.forwarding.Store(false)
		ctx, cancel := context.WithTimeout(f.life, forwardTimeout)
		defer cancel()
		_, _ = f.zone.Request(ctx, pleach.Member{Rank: rank}, forwardName, frame) // the broadcast arrives in any case
	})
}

// takeForward takes in what a member of the zone forwards.
func (f *Fleet) takeForward(_ context.Context, r pleach.Request) (_ []byte, err error) {
	f.step(func(now relay.Time) { err = f.machine.Forwarded(now, r.From, bytes.Clone(r.Data)) })
	return nil, err
}

// serve answers other members of the zone.
func (f *Fleet) serve(_ context.Context, r pleach.Request) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.machine.Serve(r.Data)
}

// receive takes in what members of the zone broadcast. It waits for the program if that
// does not receive.
func (f *Fleet) receive() {
	for m, err := range f.topic.Messages(f.life) {
		if err != nil {
			continue // the next watermark shows what is missing
		}
		f.step(func(now relay.Time) { _ = f.machine.FromZone(now, m.From, bytes.Clone(m.Data)) })
		f.inbox.room()
	}
}

// cast broadcasts in the zone, frames that wait together as one message. Without a quorum it
// tries again: what it has to broadcast is numbered.
func (f *Fleet) cast() {
	room := make([]byte, 0, maxBatch)
	for c := range f.casts.all(f.life) {
		if c.poll {
			f.running.Go(f.poll)
			continue
		}
		batch, done := append(room, c.frame...), []chan struct{}{c.done}
		fits := func(next cast) bool { return !next.poll && len(batch)+len(next.frame) <= maxBatch }
		for next, ok := f.casts.more(fits); ok; next, ok = f.casts.more(fits) {
			batch = append(batch, next.frame...)
			done = append(done, next.done)
		}
		for f.zone.BroadcastTopic(f.life, topicName, batch) != nil && f.life.Err() == nil {
			sleep(f.life, retryDelay)
		}
		for _, d := range done {
			if d != nil {
				close(d)
			}
		}
	}
}

// poll waits until what was broadcast is stable.
func (f *Fleet) poll() {
	ctx, cancel := context.WithTimeout(f.life, pollTimeout)
	defer cancel()
	_, err := f.zone.WaitStable(ctx, pleach.Since(f.since))
	f.step(func(now relay.Time) { f.machine.Stable(now, err == nil) })
}

// watchZone takes in the views of the zone, until this process is no longer a member.
func (f *Fleet) watchZone() {
	for v := range f.zone.Views(f.life) {
		order := byAge(v.Members())
		index := slices.IndexFunc(order, func(m pleach.Member) bool { return m.Rank == f.zone.Rank() })
		if index < 0 {
			continue // it is evicted
		}
		var delegates []relay.Sibling
		for _, m := range order[:min(len(order), f.config.Delegates)] {
			delegates = append(delegates, relay.Sibling{Rank: m.Rank, Age: age(m)})
		}
		f.step(func(now relay.Time) {
			f.size = len(order)
			f.machine.SetZone(now, delegates, f.zone.Rank())
			f.machine.SetSummary(now, relay.Summary{
				Zone: f.config.Zone, Members: len(order), View: v.Number,
				Healthy: v.Err == nil, Version: uint16(v.Version),
			})
		})
		zone := backbone.Zone{Index: index, Lead: backboneOf(order[0].Meta), Others: announced(v, f.zone.Rank())}
		f.delegation.step(func(m *backbone.Machine, now backbone.Time) { m.SetZone(now, zone) })
	}
	f.end(f.zone.Err())
}

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Broadcast sends data to all other members of all zones. When it returns nil, the message
// is handed to the zone's group, and every live member of every zone receives it even if
// others die, also delegates. The caller may reuse data.
//
// The header of ctx ([pleach.WithHeader]) goes with the message. It needs protocol version
// [pleach.HeaderVersion] in this zone and in all zones that this process knows of: otherwise the
// error is a [*pleach.VersionError].
//
// Broadcast blocks while other zones lack too much of what this process has broadcast
// (Config.KeepBytes, Config.Patience), while its zone has no quorum and, with Config.Echo, while
// as much waits for Messages as KeepBytes says. If ctx ends meanwhile, the message may be sent
// nevertheless.
func (f *Fleet) Broadcast(ctx context.Context, data []byte) error {
	h, err := f.headerOf(ctx)
	if err != nil {
		return err
	}
	frame := f.tryBroadcast(h, data)
	for ; frame == nil; frame = f.tryBroadcast(h, data) {
		err := f.await(ctx, f.window)
		f.mu.Lock()
		f.waiting--
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if f.zone.BroadcastTopic(header.Without(ctx), topicName, frame) == nil {
		return nil
	}
	done := make(chan struct{}) // it is numbered, so it has to be broadcast some time
	f.casts.add(cast{frame: frame, done: done})
	return f.await(ctx, done)
}

// tryBroadcast has the machine broadcast, unless other zones lack too much. It returns the
// frame to broadcast in the zone, or nil. It counts the caller as waiting then.
func (f *Fleet) tryBroadcast(h header.Encoded, data []byte) (frame []byte) {
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	f.step(func(now relay.Time) {
		if f.open() {
			frame = f.machine.Broadcast(now, h, data)
			f.waiting--
		}
	})
	return frame
}

// open reports whether other zones lack so little that this process may broadcast, and its own
// message has a place.
func (f *Fleet) open() bool {
	return (!f.config.Echo || !f.inbox.full()) && f.machine.Window(max(minWindow, f.config.KeepBytes/2/max(f.size, 1)))
}

// await waits for a sign.
func (f *Fleet) await(ctx context.Context, sign <-chan struct{}) error {
	select {
	case <-sign:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fleet: broadcast of %q in zone %q: %w", f.origin.ID, f.origin.Zone, ctx.Err())
	case <-f.life.Done():
		return f.Err()
	}
}

// Zone returns the group of this process's zone. The fleet uses a topic of it and requests,
// both called "pleach.fleet", and its members' meta.
func (f *Fleet) Zone() *pleach.Group { return f.zone }

// Zones returns what this process knows of all zones, by name: see [ZoneSummary].
func (f *Fleet) Zones() []ZoneSummary {
	f.mu.Lock()
	defer f.mu.Unlock()
	var zones []ZoneSummary
	for _, s := range f.machine.Summaries() {
		z := ZoneSummary{
			Zone: s.Zone, Members: s.Members, View: s.View, Healthy: s.Healthy,
			Connected: f.machine.Connected(s.Zone),
		}
		if s.Heard > 0 {
			z.Age = time.Duration(f.now() - s.Heard)
		}
		zones = append(zones, z)
	}
	return zones
}

// Stats counts what this process has sent to other zones.
type Stats struct {
	// Messages are those of broadcasts, Acks acknowledge them, Syncs exchange positions with
	// a delegate that was not talked to before, and Summaries tell about zones.
	Messages  uint64 `json:"messages"`
	Acks      uint64 `json:"acks"`
	Syncs     uint64 `json:"syncs"`
	Summaries uint64 `json:"summaries"`
	// Delegate says that this process is in the backbone, and Lead that it sends the
	// broadcasts of its zone to others.
	Delegate bool `json:"delegate"`
	Lead     bool `json:"lead"`
}

// Stats returns the present counts.
func (f *Fleet) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.machine.Counts()
	return Stats{
		Messages: c.Data, Acks: c.Acks, Syncs: c.Syncs, Summaries: c.Summaries,
		Delegate: f.backbone != nil, Lead: f.machine.Lead(),
	}
}

// Err returns why this process is no longer a member, or nil. The errors are those of
// [pleach.Group.Err] for its zone: after [pleach.ErrEvicted], Join again.
func (f *Fleet) Err() error { return context.Cause(f.life) }

// Close leaves the zone and the backbone, and releases all resources. It returns within
// some seconds. After [Attach], the group of the zone stays as it is.
func (f *Fleet) Close() error { return f.close((*pleach.Group).Close) }

// Abort stops immediately without notifying the other members, which see a crash.
func (f *Fleet) Abort() error { return f.close((*pleach.Group).Abort) }

func (f *Fleet) close(leave func(*pleach.Group) error) (err error) {
	f.closing.Do(func() {
		f.mu.Lock()
		s := f.backbone
		f.mu.Unlock()
		if s != nil {
			err = leave(s.group)
		}
		if !f.attached {
			err = errors.Join(err, leave(f.zone))
		}
		f.end(cmp.Or(f.zone.Err(), pleach.ErrClosed))
		if f.attached {
			f.detach()
		}
		f.timer.Stop()
		f.running.Wait()
	})
	return err
}
