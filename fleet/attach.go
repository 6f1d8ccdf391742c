package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach"
)

// Topic is the topic of the zone's group that carries the frames of the fleet. A program whose
// group has Config.OnMessage gets them, too, and ignores them.
const Topic = "pleach.fleet"

// Attach makes this process a member of a fleet by a group that it has joined itself, its
// zone: one of the name [Config.GroupName]. Of Config.Group, only Meta counts, and what the
// backbone takes from it (see Config.Backbone). The program may have set OnMessage and State
// of the group, leaves the group itself, and changes its meta by [Fleet.SetMeta] alone. When
// its membership ends, the fleet's does: after a [pleach.Group.Rejoin], the program closes the
// fleet and attaches it again. Attach returns as [Join] does.
func Attach(ctx context.Context, zone *pleach.Group, c Config) (*Fleet, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	if name := zone.Status().Group; name != c.Group.Group {
		return nil, &pleach.ConfigError{
			Field:  "Zone",
			Reason: fmt.Sprintf("is that of the group %q, and this one is called %q", c.Group.Group, name),
		}
	}
	f, err := newFleet(c, zone)
	if err != nil {
		return nil, fmt.Errorf("fleet: zone %q: %w", c.Zone, err)
	}
	f.attached = true
	if err = f.update(ctx); err == nil { // a membership before may have left its word
		err = f.enter(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fleet: zone %q: %w", c.Zone, err), f.Close())
	}
	return f, nil
}

// detach takes from the group what the fleet has added to it.
func (f *Fleet) detach() {
	for _, name := range []string{topicName, forwardName, requestName} {
		f.zone.Handle(name, nil)
	}
	_ = f.topic.Close() // it returns no error
}
