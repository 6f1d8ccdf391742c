package collective

import (
	"time"

	"github.com/pleach-go/pleach/internal/collective/loggp"
)

// Network is what messages cost in a job, by which calls select their algorithms (LogGP,
// Alexandrov and others 1995). Figures that are zero are those of two virtual machines in a
// data center. pleach-lab tune --calibrate measures a network, and prints its figures.
//
// All processes of a job must have the same Network. Calls of processes that differ do not
// complete: they end with a [*MismatchError], or with their contexts.
type Network struct {
	// Inside is between processes of one host, and Between between processes of different
	// hosts.
	Inside, Between Link
}

// Link is what a message between two processes costs: one of n bytes takes
// 2·Overhead + Latency + n/Bandwidth.
type Link struct {
	// Overhead is how long either process is busy with a message, and Latency how long the
	// message is on its way.
	Latency, Overhead time.Duration
	// Bandwidth is in bytes per second.
	Bandwidth float64
}

// model returns the network as the model has it.
func (n Network) model() loggp.Network {
	return loggp.Network{Inside: loggp.Link(n.Inside), Between: loggp.Link(n.Between)}.WithDefaults()
}
