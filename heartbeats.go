package pleach

import (
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/heartbeat"
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

// handleSilence takes a report of the heartbeats, within node.Do.
func (g *Group) handleSilence(r protocol.Rank, silent bool) {
	switch peer, ok := g.silent.Watched(r); {
	case ok && silent:
		g.silent.Suspect(peer, detect.ErrSilent, nil)
	case ok:
		g.silent.Trust(peer)
	}
}
