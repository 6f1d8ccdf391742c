package heartbeat

import "github.com/pleach-go/pleach/protocol"

// The defaults.
const (
	defaultInterval protocol.Time = 300e6
	defaultTimeout  protocol.Time = 1500e6
)

// Times is how members exchange heartbeats, by what a program sets; zero is the default.
// Members that decide without a quorum suspect no member for its silence unless asked to: a
// short silence of the network would split them.
func Times(interval, timeout protocol.Time, quorum bool) Config {
	if timeout == 0 && quorum {
		timeout = max(defaultTimeout, 5*interval)
	}
	if interval == 0 {
		interval = defaultInterval
		if timeout > 0 {
			interval = min(interval, timeout/5)
		}
	}
	return Config{Interval: interval, Timeout: max(timeout, 0)}
}
