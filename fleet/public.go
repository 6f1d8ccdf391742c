package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pleach-go/pleach/internal/machine/backbone"
)

// Processes outside a zone see the meta of its members: the meta of the program and, for a
// delegate, one more word, by which other zones find the backbone.

// metaWord begins the word.
const metaWord = "backbone="

// public is what this process tells others about itself, and where it looks for them.
type public struct {
	telling sync.Mutex // held while the meta changes
	mu      sync.Mutex // guards the rest
	meta    string     // the program's
	address string     // in the backbone, or empty
	seeds   map[string][]string
}

// SetMeta changes what this process tells the members of its zone about itself, as
// [pleach.Group.SetMeta] does. A program uses this one, which keeps what the fleet adds.
func (f *Fleet) SetMeta(ctx context.Context, meta string) error {
	f.public.mu.Lock()
	f.public.meta = meta
	f.public.mu.Unlock()
	return f.update(ctx)
}

// tell tells the members of the zone the address of this process in the backbone.
func (f *Fleet) tell(ctx context.Context, address string) error {
	f.public.mu.Lock()
	f.public.address = address
	f.public.mu.Unlock()
	return f.update(ctx)
}

// update makes the meta what it should be.
func (f *Fleet) update(ctx context.Context) error {
	f.public.telling.Lock()
	defer f.public.telling.Unlock()
	f.public.mu.Lock()
	meta := f.public.meta
	if f.public.address != "" {
		meta = strings.TrimLeft(meta+" "+metaWord+f.public.address, " ")
	}
	f.public.mu.Unlock()
	if meta == f.zone.Self().Meta {
		return nil
	}
	return f.zone.SetMeta(ctx, meta)
}

// backboneOf returns the address in the backbone that a meta tells, or "".
func backboneOf(meta string) string {
	_, address, _ := strings.Cut(" "+meta, " "+metaWord)
	address, _, _ = strings.Cut(address, " ")
	return address
}

// ProgramMeta returns what a program has told by its meta, without what the fleet has added.
func ProgramMeta(meta string) string {
	if address := backboneOf(meta); address != "" {
		meta = strings.Replace(" "+meta, " "+metaWord+address, "", 1)
	}
	return strings.TrimLeft(meta, " ")
}

// SetSeeds replaces the addresses of members of a zone, for a program whose seeds have moved.
// Those of this process's own zone are for [pleach.Group.SetSeeds].
func (f *Fleet) SetSeeds(zone string, seeds ...string) {
	f.setSeeds(zone, seeds)
	f.delegation.step(func(m *backbone.Machine, _ backbone.Time) { m.SetSeeds(f.seededZones()) })
}

func (f *Fleet) setSeeds(zone string, seeds []string) {
	f.public.mu.Lock()
	defer f.public.mu.Unlock()
	all := maps.Clone(f.public.seeds)
	if all == nil {
		all = make(map[string][]string)
	}
	all[zone] = slices.Clone(seeds)
	f.public.seeds = all
}

func (f *Fleet) seedsOf(zone string) []string {
	f.public.mu.Lock()
	defer f.public.mu.Unlock()
	return f.public.seeds[zone]
}

// seededZones are those that have seeds.
func (f *Fleet) seededZones() []string {
	f.public.mu.Lock()
	defer f.public.mu.Unlock()
	return slices.Sorted(maps.Keys(f.public.seeds))
}
