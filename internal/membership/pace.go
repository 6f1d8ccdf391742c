package membership

import "github.com/pleach-go/pleach/protocol"

// Timeouts follow what members were measured to take, as retransmission timeouts do
// (Jacobson 1988). On an overloaded host every answer waits in queues. Fixed timeouts then
// give up attempts that would succeed, and what follows from that, further attempts,
// retransmissions and pings, adds to the load: a metastable failure (Bronson et al.,
// "Metastable Failures in Distributed Systems", HotOS 2021). So a coordinator that has
// waited longer for an answer has more patience from then on, and asks less often. Each
// view halves that again.

// observe notes how long an answer has taken.
func (m *Machine) observe(took protocol.Time) { m.pace = max(m.pace, took) }

// traversals is how many ways along the tree a change has, at least.
const traversals = 5

// retryInterval is the first retransmission timeout.
func (m *Machine) retryInterval() protocol.Time { return max(m.config.RetryInterval, m.pace) }

// ackTimeout is how long a member may hold up a change by not answering.
func (m *Machine) ackTimeout() protocol.Time { return max(m.config.AckTimeout, 8*m.pace) }

// stuckTimeout is how long a member may be frozen before it asks for help.
func (m *Machine) stuckTimeout() protocol.Time {
	return max(2*m.config.AttemptTimeout, 2*traversals*m.pace)
}
