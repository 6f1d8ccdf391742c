package loggp

import "time"

// Link is what a message between two processes costs.
type Link struct {
	Latency, Overhead time.Duration // L, o
	Bandwidth         float64       // 1/G, in bytes per second
}

// hop returns how long a message of so many bytes takes if so many processes of a host
// send one at once, in nanoseconds.
func (l Link) hop(bytes float64, senders int) float64 {
	return float64(l.Latency+2*l.Overhead) + float64(senders-1)*float64(l.Overhead)/2 + float64(senders)*l.transfer(bytes)
}

// busy returns how long a process that forwards a message is busy with it.
func (l Link) busy(bytes float64) float64 { return 2*float64(l.Overhead) + l.transfer(bytes) }

func (l Link) transfer(bytes float64) float64 { return bytes / l.Bandwidth * 1e9 }

// orElse returns the link with other figures in place of zeros.
func (l Link) orElse(other Link) Link {
	if l.Latency == 0 && l.Overhead == 0 {
		l.Latency, l.Overhead = other.Latency, other.Overhead
	}
	if l.Bandwidth <= 0 {
		l.Bandwidth = other.Bandwidth
	}
	return l
}

// Network is what messages cost inside a host and between hosts.
type Network struct{ Inside, Between Link }

// HostsAreFar reports whether a short message between hosts takes longer than inside one.
func (n Network) HostsAreFar() bool { return n.Between.hop(0, 1) > n.Inside.hop(0, 1) }

// Standard has what pleach-lab tune --calibrate has measured on a virtual machine with two busy
// processors: inside a host through shared memory; between hosts over TCP on loopback, with
// the latency and the bandwidth of a network of 10 Gbit/s.
func Standard() Network {
	return Network{
		Inside:  Link{Latency: 500 * time.Nanosecond, Overhead: 2 * time.Microsecond, Bandwidth: 3e9},
		Between: Link{Latency: 10 * time.Microsecond, Overhead: 7 * time.Microsecond, Bandwidth: 1.2e9},
	}
}

// WithDefaults returns the network with the figures of [Standard] in place of zeros.
func (n Network) WithDefaults() Network {
	s := Standard()
	return Network{n.Inside.orElse(s.Inside), n.Between.orElse(s.Between)}
}

// Layout is how the tasks of a job are spread over hosts.
type Layout struct {
	Tasks, Hosts int
	PerHost      int  // the most tasks that a host has
	Blocks       bool // the tasks of each host follow each other
}

// Even returns the layout of tasks that are spread evenly, in blocks.
func Even(tasks, hosts int) Layout { return Layout{tasks, hosts, (tasks + hosts - 1) / hosts, true} }

// TwoLevels reports whether there are several hosts, and several tasks on one.
func (y Layout) TwoLevels() bool { return y.Hosts > 1 && y.PerHost > 1 }
