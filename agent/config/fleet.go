package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/discover"
	"github.com/pleach-go/pleach/fleet"
)

// Fleet is where an agent is in a fleet, as in [fleet.Config]. An agent without a Zone is in
// none.
type Fleet struct {
	Zone string `yaml:"zone"`
	// Zones are the seeds of zones, by name. Those of this agent's own zone count if Seeds are
	// empty, so all agents may have the same.
	Zones map[string][]string `yaml:"zones"`

	BackboneListen    string        `yaml:"backbone-listen"`
	BackboneAdvertise string        `yaml:"backbone-advertise"`
	Delegates         int           `yaml:"delegates"`
	KeepBytes         int           `yaml:"keep-bytes"`
	Patience          time.Duration `yaml:"patience"`
}

// check refuses settings that have no effect, and names that flags could not have.
func (f *Fleet) check() error {
	if f.Zone == "" {
		if len(f.Zones) > 0 || f.BackboneListen != "" || f.BackboneAdvertise != "" || f.Delegates != 0 || f.KeepBytes != 0 ||
			f.Patience != 0 {
			return errors.New("zones, backbone-listen, backbone-advertise, delegates, keep-bytes and patience have no effect without zone: write the zone of this agent")
		}
		return nil
	}
	if err := checkZone(f.Zone); err != nil {
		return err
	}
	for zone, seeds := range f.Zones {
		if err := checkZone(zone); err != nil {
			return err
		}
		for _, seed := range seeds {
			if err := discover.Check(seed); err != nil {
				return fmt.Errorf("zones: %s: %w", zone, err)
			}
		}
	}
	return nil
}

func checkZone(zone string) error {
	if zone == "" || !utf8.ValidString(zone) || strings.ContainsAny(zone, "=/,") ||
		strings.ContainsFunc(zone, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("%q is not the name of a zone: write one in UTF-8 without spaces, =, / and commas", zone)
	}
	return nil
}

// FleetConfig returns the config of the fleet without its seeds, by that of the group.
func (c *Config) FleetConfig(group pleach.Config) fleet.Config {
	group.Group, group.OnMessage, group.OnView = "", nil, nil
	return fleet.Config{
		Name: c.Group, Zone: c.Zone, Group: group, Delegates: c.Delegates, KeepBytes: c.KeepBytes, Patience: c.Patience,
		Echo:     true,
		Backbone: pleach.Config{Listen: c.BackboneListen, Advertise: c.BackboneAdvertise},
	}
}

// GroupName returns the name of the group that this agent is a member of: in a fleet, that of
// its zone.
func (c *Config) GroupName() string {
	if c.Zone == "" {
		return c.Group
	}
	return fleet.Config{Name: c.Group, Zone: c.Zone}.GroupName()
}
