package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/machine/relay"
)

// Config configures [Join].
type Config struct {
	// Name is the fleet's name. Fleets of different names do not talk to each other. If
	// empty, "fleet".
	Name string
	// Zone is the zone that this process is a member of. It is required, and has at most
	// 200 bytes.
	Zone string
	// Seeds are addresses of members, by zone, of which one alive in each zone is enough.
	// All processes may be given the same. A process whose own zone has no seeds, and no
	// Group.Expect, is its first member. A zone that is not in them is found if its
	// members have this zone in theirs.
	Seeds map[string][]string
	// Group is the config of the zone: Listen, Advertise, ID, DataDir, Expect, TLS, Secret,
	// Limits and so on. Its Group, State, OnMessage and Transport must be empty. With Overflow
	// Drop, messages of the fleet are lost where those of the zone are. To its Meta, a delegate
	// adds a word, "backbone=" and its address in the backbone.
	Group pleach.Config
	// Backbone is the config of the backbone, for a member that is a delegate. TLS, Secret,
	// Limits, HeartbeatInterval, SuspicionTimeout, Dial and Logger are those of Group if
	// they are zero. Its ID, Group, FailureDomain, Meta, State, OnMessage and Transport must
	// be empty.
	Backbone pleach.Config
	// Delegates is how many members of a zone are in the backbone. If zero, 3. All members
	// use the same.
	Delegates int
	// KeepBytes is how much a member keeps of the last messages of the fleet, for zones that
	// were cut off and for delegates that take over. Messages of its own zone that another
	// zone lacks are not counted. If zero, 16 MiB. Half of it, divided by the number of members of
	// the zone, is how much of a process's messages may be on its way to other zones;
	// Broadcast blocks beyond it, but not for less than 64 KiB.
	KeepBytes int
	// Patience is how long a zone that is cut off, or dead, is waited for as those are that
	// can be reached: what it lacks is kept, and Broadcast blocks when that is as much as
	// KeepBytes says. After that it may lose messages, and Messages yields a [*LostError]. A
	// zone that begins waits in the same way for those in Seeds. If zero, 30 s; if negative,
	// zones are not waited for.
	Patience time.Duration
	// Echo has Messages yield this process's own broadcasts, too, each at its place, for a
	// program that keeps a log. If false, it yields those of others only.
	Echo bool
}

const (
	defaultName      = "fleet"
	defaultDelegates = 3
	defaultKeepBytes = 16 << 20
	defaultPatience  = 30 * time.Second
	minWindow        = 64 << 10
	maxZone          = 200
	maxOrigins       = 1 << 16
)

// complete checks a config and fills in the defaults.
func (c *Config) complete() error {
	for _, check := range []struct {
		field  string
		wrong  bool
		reason string
	}{
		{"Zone", c.Zone == "" || len(c.Zone) > maxZone, fmt.Sprintf("is %.32q: write a name of 1 to %d bytes", c.Zone,
			maxZone)},
		{"Name", len(c.Name) > relay.MaxName-maxZone-2, "is too long"},
		{"Delegates", c.Delegates < 0, "is negative"},
		{"KeepBytes", c.KeepBytes < 0, "is negative"},
		{"Group.Group", c.Group.Group != "", "must be empty: Name and Zone say what the group is called"},
		{"Group.State", c.Group.State != nil, "must be nil: messages of the fleet are no part of it"},
		{"Group.OnMessage", c.Group.OnMessage != nil, "must be nil: receive by Messages"},
		{"Group.Transport", c.Group.Network.Transport != nil, "must be nil: processes join over TCP"},
		{"Backbone.Group", c.Backbone.Group != "", "must be empty: Name says what the group is called"},
		{"Backbone.ID", c.Backbone.ID != "", "must be empty: it follows from Group.ID"},
		{"Backbone.FailureDomain", c.Backbone.FailureDomain != "", "must be empty: it is the zone"},
		{"Backbone.Meta", c.Backbone.Meta != "", "must be empty: the fleet uses it"},
		{"Backbone.State", c.Backbone.State != nil, "must be nil"},
		{"Backbone.OnMessage", c.Backbone.OnMessage != nil, "must be nil"},
		{"Backbone.Observer", c.Backbone.Observer, "must be false: delegates vote there"},
		{"Backbone.Expect", c.Backbone.Expect != 0, "must be zero: delegates come and go"},
		{"Backbone.Transport", c.Backbone.Network.Transport != nil, "must be nil: processes join over TCP"},
	} {
		if check.wrong {
			return &pleach.ConfigError{Field: check.field, Reason: check.reason}
		}
	}
	c.Name = cmp.Or(c.Name, defaultName)
	if c.Delegates == 0 {
		c.Delegates = defaultDelegates
	}
	if c.KeepBytes == 0 {
		c.KeepBytes = defaultKeepBytes
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	c.Group.Group = groupName(c.Name, c.Zone)
	c.Seeds = maps.Clone(c.Seeds)
	c.inherit()
	return nil
}

// inherit completes the config of the backbone with that of the zone.
func (c *Config) inherit() {
	g, b := &c.Group, &c.Backbone
	b.Group = groupName(c.Name, "")
	if b.Security.TLS == nil {
		b.Security.TLS = g.Security.TLS
	}
	if len(b.Security.Secret) == 0 && b.Security.SecretFile == "" {
		b.Security.Secret, b.Security.SecretFile = g.Security.Secret, g.Security.SecretFile
	}
	if b.Security.DenyFile == "" {
		b.Security.DenyFile = g.Security.DenyFile
	}
	if b.Limits == (pleach.Limits{}) {
		b.Limits = g.Limits
	}
	if b.Detection.HeartbeatInterval == 0 {
		b.Detection.HeartbeatInterval = g.Detection.HeartbeatInterval
	}
	if b.Detection.SuspicionTimeout == 0 {
		b.Detection.SuspicionTimeout = g.Detection.SuspicionTimeout
	}
	if b.Network.Dial == nil {
		b.Network.Dial = g.Network.Dial
	}
	if b.Logger == nil {
		b.Logger = g.Logger
	}
	b.FailureDomain = c.Zone
}

// GroupName returns the name of the zone's group.
func (c Config) GroupName() string { return groupName(cmp.Or(c.Name, defaultName), c.Zone) }

// groupName is the name of a zone's group, or of the backbone's.
func groupName(fleet, zone string) string { return fleet + "/" + zone }
