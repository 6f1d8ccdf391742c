package fleet

import (
	"fmt"
	"time"
)

// Config says what to measure.
type Config struct {
	// Zones and Members of each are started.
	Zones, Members int
	// Delay is that of links between zones, one way.
	Delay time.Duration
	// Time is how long broadcasts are made, Rate of them in a second, of Size bytes. If Rate
	// is 0, all members broadcast as fast as they can, and then do so in one group.
	Time time.Duration
	Rate float64
	Size int
	// Kill is how often a delegate is killed. If zero, none is.
	Kill time.Duration
	// Cut is how long a zone is cut off, and Down how long another one is dead. If zero,
	// that does not happen.
	Cut, Down time.Duration
	// Seed chooses origins and victims.
	Seed uint64
	// Progress, if not nil, is called with the number of steps done, and the next one.
	Progress func(done int, what string)
}

// Limits of what one process can be asked.
const (
	maxZones   = 200
	maxMembers = 2048
	minSize    = 8
	maxSize    = 1 << 16
)

// Steps is how many steps Run takes.
func (c *Config) Steps() int {
	if c.full() {
		return 5
	}
	return 4
}

// full reports whether all members broadcast as fast as they can.
func (c *Config) full() bool { return c.Rate == 0 }

// Check says what is wrong with a value, in the words of the command's flags.
func (c *Config) Check() error {
	switch {
	case c.Zones < 2 || c.Zones > maxZones:
		return fmt.Errorf("--zones %d: choose a number between 2 and %d", c.Zones, maxZones)
	case c.Members < 3 || c.Zones*c.Members > maxMembers:
		return fmt.Errorf("--members %d: choose at least 3, and at most %d in all zones", c.Members, maxMembers)
	case c.Delay < 0 || c.Delay > time.Second:
		return fmt.Errorf("--delay %v: choose a time up to 1s", c.Delay)
	case c.Time <= 0 || c.Rate < 0:
		return fmt.Errorf("--time %v, --rate %v: choose positive numbers", c.Time, c.Rate)
	case c.Size < minSize || c.Size > maxSize:
		return fmt.Errorf("--size %d: choose a number between %d and %d", c.Size, minSize, maxSize)
	case c.Kill < 0 || c.Cut < 0 || c.Down < 0:
		return fmt.Errorf("--kill %v, --cut %v, --down %v: choose times that are not negative", c.Kill, c.Cut, c.Down)
	case c.Cut+c.Down > 0 && c.Zones < 3:
		return fmt.Errorf("--zones %d: cutting zones off takes at least 3", c.Zones)
	}
	return nil
}

// Result is what became of the broadcasts. Times are those until a member of another zone
// has a broadcast, over all members and broadcasts.
type Result struct {
	Zones      int     `json:"zones"`
	Members    int     `json:"members"`
	DelayMS    float64 `json:"delay_ms"`
	Broadcasts int     `json:"broadcasts"`
	Deliveries int     `json:"deliveries"`
	Lost       int     `json:"lost"`
	Twice      int     `json:"twice"`
	OutOfOrder int     `json:"out_of_order"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	// ZoneP50 is the median of broadcasts within a zone, by pleach.Group. BoundMS is the
	// delay and twice that, and Ratio that of P50 to it.
	ZoneP50 float64 `json:"zone_p50_ms"`
	BoundMS float64 `json:"bound_ms"`
	Ratio   float64 `json:"ratio"`
	// WANMessages are those between zones for each broadcast: its copies, acknowledgments
	// and exchanges of positions. WANBytes are all bytes on these links for each second,
	// those of views and heartbeats included.
	WANMessages float64 `json:"wan_messages_per_broadcast"`
	WANCopies   float64 `json:"wan_copies_per_broadcast"`
	WANAcks     float64 `json:"wan_acks_per_broadcast"`
	WANSyncs    float64 `json:"wan_syncs_per_broadcast"`
	WANBytes    float64 `json:"wan_bytes_per_second"`
	// PerOrigin is how many broadcasts a member has made in a second, and GroupPerOrigin how
	// many when the same members are one group, at full rate. RateRatio is the first by the
	// second.
	PerOrigin      float64 `json:"per_origin_per_second"`
	GroupPerOrigin float64 `json:"group_per_origin_per_second,omitempty"`
	RateRatio      float64 `json:"rate_ratio,omitempty"`
	// Kills counts delegates, Restarted processes that have joined afterwards, and Evicted
	// live ones that their zone has removed: the host is too busy then.
	Kills     int     `json:"kills"`
	Restarted int     `json:"restarted"`
	Evicted   int     `json:"evicted"`
	CutS      float64 `json:"cut_s"`
	DownS     float64 `json:"down_s"`
	// DrainMS is how long it took until every member had everything, after the last
	// broadcast.
	DrainMS float64 `json:"drain_ms"`
}
