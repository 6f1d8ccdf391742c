package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/lab/experiments/calibrate"
)

// collectiveCalibration is what collective calls pay for messages, and what they choose.
type collectiveCalibration struct {
	inside, between calibrate.Network
	tasks, hosts    int
}

func (c *collectiveCalibration) network() collective.Network {
	return collective.Network{Inside: c.inside.Link(), Between: c.between.Link()}
}

// String is the calibration for people.
func (c *collectiveCalibration) String() string {
	var b strings.Builder
	b.WriteString("collective calls, in LogGP's parameters:\n")
	for _, link := range []struct {
		name string
		n    *calibrate.Network
	}{{"inside a host", &c.inside}, {"between hosts", &c.between}} {
		l := link.n.Link()
		fmt.Fprintf(&b, "  %s: 2o + L = %s, o = %v, so L = %v; %.2f GB/s\n", link.name, spreadText(link.n.Hop),
			cli.Micro(l.Overhead), cli.Micro(l.Latency), l.Bandwidth/1e9)
	}
	fmt.Fprintf(&b, "for %d tasks on %d hosts they choose:\n", c.tasks, c.hosts)
	fmt.Fprintf(&b, "  %-10s %8s %12s %12s  %s\n", "", "bytes", "predicted", "one level", "algorithm")
	for _, choice := range calibrate.Choices(c.network(), c.tasks, c.hosts) {
		fmt.Fprintf(&b, "  %-10s %8d %12v %12v  %s\n", choice.Collective, choice.Bytes, cli.Micro(choice.Predicted),
			cli.Micro(choice.OneLevel), choice.Algorithm)
	}
	fmt.Fprintf(&b, "in a program, the same on all processes: pleach.Config{Job: pleach.Job{Network: %s}}\n\n",
		networkText(c.network()))
	return b.String()
}

// networkText is a network as Go has it.
func networkText(n collective.Network) string {
	link := func(l collective.Link) string {
		return fmt.Sprintf("collective.Link{Latency: %d, Overhead: %d, Bandwidth: %.2e}", l.Latency, l.Overhead, l.Bandwidth)
	}
	return fmt.Sprintf("collective.Network{Inside: %s, Between: %s}", link(n.Inside), link(n.Between))
}

// linkJSON is a link for programs.
type linkJSON struct {
	Latency   time.Duration `json:"latency_ns"`
	Overhead  time.Duration `json:"overhead_ns"`
	Bandwidth float64       `json:"bytes_per_second"`
}

// collectiveCalibrationJSON is the calibration for programs.
type collectiveCalibrationJSON struct {
	Tasks   int                `json:"tasks"`
	Hosts   int                `json:"hosts"`
	Inside  linkJSON           `json:"inside"`
	Between linkJSON           `json:"between"`
	Choices []calibrate.Choice `json:"choices"`
}

func (c *collectiveCalibration) json() collectiveCalibrationJSON {
	n := c.network()
	return collectiveCalibrationJSON{
		c.tasks, c.hosts, linkJSON(n.Inside), linkJSON(n.Between),
		calibrate.Choices(n, c.tasks, c.hosts),
	}
}
