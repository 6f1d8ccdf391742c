package fleet

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// A delegate is in the backbone as long as it is a delegate. The backbone keeps nothing: a
// delegate that is removed from it, that has no quorum in it, or that finds a larger one
// leaves it, enters another one, and exchanges positions there. So two backbones, as they
// come from a partition, become one.
//
// Delegates tell their addresses in the backbone by their meta in the zone, where processes
// of other zones find them by [pleach.Inspect]: see public.go.

const (
	inspectTimeout = 5 * time.Second
	inspectStagger = 250 * time.Millisecond
	siblingTimeout = time.Second // of an inspection within the zone
	enterTimeout   = 15 * time.Second
	quorumTimeout  = 3 * time.Second
	createDelay    = 5 * time.Second        // after which a lead that finds no backbone begins one
	searchInterval = 2 * time.Second        // for zones that are missing
	maxSeeds       = 8                      // seeds of the backbone that a delegate gets before it joins
	maxFound       = 3                      // times that a smaller backbone is found before it is entered
	enterDelay     = 100 * time.Millisecond // the first; it doubles
)

// session is one membership in the backbone.
type session struct {
	fleet *Fleet
	group *pleach.Group
	life  context.Context
	end   context.CancelFunc

	mu    sync.Mutex
	lanes map[int]*lane       // to other delegates
	zones map[string]bool     // in its view
	known map[string][]string // addresses of delegates, by zone, that are or were in it
}

// keepBackbone keeps this process in the backbone while it is a delegate.
func (f *Fleet) keepBackbone() {
	var better []string // addresses of a backbone that is larger than the last one
	for f.life.Err() == nil {
		if !f.delegate() {
			_ = f.await(f.life, f.promoted)
			continue
		}
		g := f.enterBackbone(better)
		if g == nil {
			sleep(f.life, enterDelay)
			better = nil
			continue
		}
		better = f.serveBackbone(g)
	}
}

func (f *Fleet) delegate() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index >= 0 && f.index < f.config.Delegates
}

// enterBackbone joins the backbone, or begins one if there is none. It returns nil if this
// process is no longer a delegate. The lead looks for the backbone in other zones; the
// other delegates follow the lead, unless it makes no progress. So one process of each zone
// asks around.
func (f *Fleet) enterBackbone(seeds []string) *pleach.Group {
	c := f.config.Backbone
	c.ID = f.config.Zone + "/" + f.origin.ID
	c.Meta = f.describe()
	if f.listening != "" {
		c.Listen = f.listening // others know it
	}
	began, pause := time.Now(), enterDelay // since when there is no backbone
	for f.life.Err() == nil && f.delegate() {
		first := false // no zone before this one in the order of names is reachable
		switch {
		case len(seeds) > 0:
			seeds = f.inspectBackbone(f.life, seeds).seeds()
		case f.oldest() || time.Since(began) > createDelay:
			seeds, first = f.findBackbone()
			pause = min(2*pause, searchInterval)
		default:
			seeds = f.findInZone(f.life).seeds()
		}
		switch {
		case len(seeds) > 0:
			ctx, cancel := context.WithTimeout(f.life, enterTimeout)
			g, err := pleach.Join(ctx, c, seeds...)
			cancel()
			if err == nil {
				return g
			}
			seeds, began = nil, time.Now()
			c.Listen = f.config.Backbone.Listen // another process may have the port
		case f.oldest() && (first || time.Since(began) > createDelay):
			if g, err := pleach.Create(f.life, c); err == nil {
				return g
			}
		}
		sleep(f.life, pause)
	}
	return nil
}

// found is a backbone that some addresses are in, as one of them sees it.
type found struct {
	pleach.View
	addresses []string
	reachable bool // the zone that was asked for the addresses has answered
	announced bool // and has told some
}

// seeds returns addresses to join a backbone by: those that were asked, and further ones,
// since members may die while this process joins. There are none if the addresses have left
// the backbone, or if it has no quorum: Join would wait for them.
func (b found) seeds() (seeds []string) {
	if b.Size() == 0 || b.Err != nil {
		return nil
	}
	for _, a := range b.addresses {
		if has(b.View, a) {
			seeds = append(seeds, a)
		}
	}
	for _, m := range b.Members()[:min(b.Size(), maxSeeds)] {
		if !slices.Contains(seeds, m.Address) {
			seeds = append(seeds, m.Address)
		}
	}
	return seeds
}

// findInZone returns the backbone that other delegates of this zone are in. They are near, and
// may have left it just now.
func (f *Fleet) findInZone(ctx context.Context) found {
	ctx, cancel := context.WithTimeout(ctx, siblingTimeout)
	defer cancel()
	b := f.inspectBackbone(ctx, delegatesOf(f.zone.View(), f.zone.Rank()))
	b.announced = len(b.addresses) > 0
	return b
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

func (f *Fleet) oldest() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index == 0
}

// findBackbone returns addresses of a backbone that has a quorum. It asks this zone's
// delegates and all other zones at the same time, since some may not answer: after a
// partition, this zone's delegates have left theirs. If there is no backbone, it reports
// whether this zone is the first of those that can be reached.
func (f *Fleet) findBackbone() (seeds []string, first bool) {
	first = true
	for zone, b := range f.askZones(f.life, f.allZones(f.known), f.known) {
		seeds = b.seeds()
		if len(seeds) > 0 {
			return seeds, false
		}
		if b.announced || b.reachable && zone < f.config.Zone {
			first = false
		}
	}
	return nil, first
}

// allZones returns the zones that this process knows, by its config or from a backbone.
func (f *Fleet) allZones(known map[string][]string) []string {
	zones := slices.Concat(f.seededZones(), slices.Collect(maps.Keys(known)), []string{f.config.Zone})
	slices.Sort(zones)
	return slices.Compact(zones)
}

// findIn returns the backbone that the delegates of a zone are in. If it does not know them,
// it takes those that were known before.
func (f *Fleet) findIn(ctx context.Context, zone string, known []string) found {
	if zone == f.config.Zone {
		return f.findInZone(ctx)
	}
	v := f.inspectZone(ctx, zone)
	addresses := delegatesOf(v, -1)
	announced := len(addresses) > 0
	if !announced {
		addresses = known
	}
	b := f.inspectBackbone(ctx, addresses)
	b.reachable, b.announced = v.Size() > 0, announced
	return b
}

// delegatesOf returns the addresses in the backbone of a zone's delegates, but one.
func delegatesOf(v pleach.View, but int) (addresses []string) {
	for _, m := range v.Members() {
		if a := backboneOf(m.Meta); a != "" && m.Rank != but {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// askZones asks zones for their backbones at the same time, and yields these as they come.
// known has addresses of delegates for zones that do not answer.
func (f *Fleet) askZones(ctx context.Context, zones []string, known map[string][]string) iter.Seq2[string, found] {
	return func(yield func(string, found) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		type answer struct {
			zone     string
			backbone found
		}
		answers := make(chan answer, len(zones))
		for _, zone := range zones {
			go func() { answers <- answer{zone, f.findIn(ctx, zone, known[zone])} }()
		}
		for range zones {
			if a := <-answers; !yield(a.zone, a.backbone) {
				return
			}
		}
	}
}

// inspectZone returns the view of a zone, by its seeds, or one of no member.
func (f *Fleet) inspectZone(ctx context.Context, zone string) pleach.View {
	return f.inspectAny(ctx, groupName(f.config.Name, zone), f.seedsOf(zone))
}

// inspectBackbone returns the backbone that some addresses are in.
func (f *Fleet) inspectBackbone(ctx context.Context, addresses []string) found {
	return found{View: f.inspectAny(ctx, f.config.Backbone.Group, addresses), addresses: addresses}
}

// inspectAny returns the view of a group, of the first member that answers. It asks one
// after the other, and does not wait for long before it asks the next (RFC 8305, "Happy
// Eyeballs").
func (f *Fleet) inspectAny(ctx context.Context, group string, addresses []string) (view pleach.View) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	answers := make(chan pleach.View, len(addresses))
	b := &f.config.Backbone
	ask := func(address string) {
		var v pleach.View // of no member, if it does not answer
		c := pleach.Config{Group: group, Security: b.Security, Network: pleach.Network{Dial: b.Network.Dial}}
		c.Security.OnOperator = nil // nobody makes requests to this process
		if i, err := pleach.Inspect(ctx, c, address); err == nil {
			v = i.View
		}
		answers <- v
	}
	for asked, answered := 0, 0; answered < len(addresses); {
		var late <-chan time.Time
		if asked < len(addresses) {
			go ask(addresses[asked])
			asked++
			late = time.After(inspectStagger)
		}
		select {
		case view = <-answers:
			answered++
			if view.Size() > 0 {
				return view
			}
		case <-late:
		}
	}
	return view
}

// serveBackbone takes part in the backbone until this process is no longer in it, or there
// is a larger one, whose addresses it returns.
func (f *Fleet) serveBackbone(g *pleach.Group) (better []string) {
	s := &session{fleet: f, group: g, lanes: make(map[int]*lane), zones: make(map[string]bool), known: maps.Clone(f.known)}
	s.life, s.end = context.WithCancel(f.life)
	f.listening = g.Self().Address
	f.mu.Lock()
	f.backbone = s
	f.mu.Unlock()
	var running sync.WaitGroup
	g.Handle(requestName, f.answer)
	running.Go(s.watch)
	running.Go(s.receive)
	running.Go(func() { better = s.search() })
	_ = f.tell(s.life, g.Self().Address)
	<-s.life.Done()
	_ = g.Abort()
	running.Wait()
	f.known = s.known
	f.step(func(now relay.Time) {
		f.backbone = nil
		f.machine.SetBackbone(now, nil)
	})
	if f.life.Err() == nil {
		ctx, cancel := context.WithTimeout(f.life, inspectTimeout)
		_ = f.tell(ctx, "")
		cancel()
	}
	return better
}

// watch takes in views of the backbone. A delegate that has no quorum in it for long leaves.
func (s *session) watch() {
	defer s.end()
	var alone *time.Timer
	for v := range s.group.Views(s.life) {
		if alone != nil {
			alone.Stop()
		}
		if v.Err != nil {
			alone = time.AfterFunc(quorumTimeout, s.end)
		}
		peers := []relay.Peer{}
		zones := make(map[string]bool)
		for _, m := range v.Members() {
			peers = append(peers, peerOf(m))
			zones[m.FailureDomain] = true
		}
		s.mu.Lock()
		if v.Err == nil {
			s.remember(v)
		}
		s.zones = zones
		for rank, l := range s.lanes {
			if !v.Has(rank) {
				delete(s.lanes, rank)
				l.end()
			}
		}
		s.mu.Unlock()
		s.fleet.step(func(now relay.Time) { s.fleet.machine.SetBackbone(now, peers) })
	}
}

// remember notes the addresses of delegates of other zones.
func (s *session) remember(v pleach.View) {
	known := make(map[string][]string)
	for _, m := range v.Members() {
		if m.FailureDomain != s.fleet.config.Zone {
			known[m.FailureDomain] = append(known[m.FailureDomain], m.Address)
		}
	}
	maps.Copy(s.known, known)
}

// receive takes in what other delegates send.
func (s *session) receive() {
	f := s.fleet
	for m, err := range s.group.Messages(s.life) {
		if err == nil && m.Direct { // the machine asks for what is lost
			f.step(func(now relay.Time) { _ = f.machine.FromPeer(now, m.From, bytes.Clone(m.Data)) })
			f.inbox.room()
			f.casts.room()
		}
	}
}

// search looks for zones that are not in this backbone, if this process is the oldest of
// its zone. If they have a larger one, this process leaves: search returns the addresses.
// The other delegates follow it to its backbone. A smaller one whose delegates do not come
// may not know where: this process enters it, so that they know its address.
func (s *session) search() []string {
	f := s.fleet
	apart := false // from the lead, in the last round
	found := 0     // rounds in which there was a smaller backbone
	for sleep(s.life, searchInterval); s.life.Err() == nil; sleep(s.life, searchInterval) {
		var elsewhere []string
		if f.oldest() {
			larger, smaller := s.findOthers()
			found++
			if len(smaller) == 0 {
				found = 0
			} else if found == maxFound && len(larger) == 0 {
				larger = smaller
			}
			elsewhere = larger
		} else if lead := backboneOf(delegateOrder(f.zone.View())[0].Meta); lead != "" && !has(s.group.View(), lead) {
			if apart {
				elsewhere = []string{lead}
			}
			apart = true
		} else {
			apart = false
		}
		if len(elsewhere) > 0 {
			s.end()
			return elsewhere
		}
	}
	return nil
}

// findOthers returns an address of a larger backbone than this one, and one of a smaller
// one, if zones that are not in this one know them.
func (s *session) findOthers() (larger, smaller []string) {
	f := s.fleet
	s.mu.Lock()
	present, known := s.zones, maps.Clone(s.known)
	s.mu.Unlock()
	zones := slices.DeleteFunc(f.allZones(known), func(zone string) bool { return present[zone] || zone == f.config.Zone })
	for _, b := range f.askZones(s.life, zones, known) {
		switch s.compare(b.View) {
		case 1:
			return []string{b.Leader().Address}, nil
		case -1:
			smaller = []string{b.Leader().Address}
		}
	}
	return nil, smaller
}

// has reports whether a view has a member at an address.
func has(v pleach.View, address string) bool {
	return slices.ContainsFunc(v.Members(), func(m pleach.Member) bool { return m.Address == address })
}

// compare returns 1 if a view is that of a larger backbone, -1 if of a smaller one, and 0 if
// of none that can be entered. Of two that have as many members, the larger one has a leader
// of a zone that is earlier in the order of names.
func (s *session) compare(other pleach.View) int {
	own := s.group.View()
	if other.Size() == 0 || other.Err != nil || has(other, s.group.Self().Address) {
		return 0
	}
	return cmp.Or(cmp.Compare(other.Size(), own.Size()), cmp.Compare(own.Leader().ID, other.Leader().ID))
}
