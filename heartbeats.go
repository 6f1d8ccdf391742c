package pleach

import (
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/heartbeat"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Defaults of Config.HeartbeatInterval and Config.SuspicionTimeout.
const (
	heartbeatInterval = 300 * time.Millisecond
	suspicionTimeout  = 1500 * time.Millisecond
)

// heartbeatConfig is how this member exchanges heartbeats. Members that decide without
// a majority suspect no member for its silence unless asked to: a short silence of the
// network would split them.
func (c *Config) heartbeatConfig() heartbeat.Config {
	interval, timeout := c.HeartbeatInterval, c.SuspicionTimeout
	if timeout == 0 && !c.AllowMinority {
		timeout = max(suspicionTimeout, 5*interval)
	}
	if interval == 0 {
		interval = heartbeatInterval
		if timeout > 0 {
			interval = min(interval, timeout/5)
		}
	}
	return heartbeat.Config{Interval: protocol.Time(interval), Timeout: protocol.Time(max(timeout, 0))}
}

// startHeartbeats makes the machine that exchanges heartbeats, and the detector that
// passes on what it finds.
func (g *Group) startHeartbeats() {
	g.silent = detect.NewTracker()
	c := g.config.heartbeatConfig()
	c.Report = g.handleSilence
	g.stack.heart = heartbeat.New(c)
}

// handleSilence takes a report of the heartbeats, within node.Do.
func (g *Group) handleSilence(r protocol.Rank, silent bool) {
	switch peer, ok := g.silent.Watched(r); {
	case ok && silent:
		g.silent.Suspect(peer, detect.ErrSilent, nil)
	case ok:
		g.silent.Trust(peer)
	}
}

// watchNeighbors exchanges heartbeats with the members before and after this one on the
// ring, however large the group is. All members of a view after the first have started:
// they have agreed on it, or have asked to join.
func (g *Group) watchNeighbors(v *membership.View, self int) {
	var neighbors []heartbeat.Neighbor
	for _, i := range []int{self + 1, self - 1 + len(v.Members)} {
		m := v.Members[i%len(v.Members)]
		if n := (heartbeat.Neighbor{Rank: m.Rank, Incarnation: m.Incarnation, Started: v.Number > 1}); m.Rank != g.self.Rank &&
			(len(neighbors) == 0 || neighbors[0] != n) {
			neighbors = append(neighbors, n)
		}
	}
	g.stack.heart.Watch(g.stack.now, neighbors)
}
