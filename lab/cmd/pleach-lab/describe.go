package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/protocol"
)

// describeProtocol says what is simulated.
func (s *simCommand) describeProtocol(c *experiments.Scenario) string {
	protocol := s.describeDissemination(c)
	if s.correction != "none" {
		protocol += fmt.Sprintf(", %s %s correction", s.start, s.correction)
	}
	if c.EarlyOnlyRelay {
		protocol += ", early ones only relay"
	}
	return protocol
}

// describeGroup says on which processes, with which faults.
func (s *simCommand) describeGroup(c *experiments.Scenario) string {
	parts := []string{fmt.Sprintf("P=%d, L=%d, o=%d", c.Size, c.L, c.O)}
	if c.Root != 0 {
		parts = append(parts, fmt.Sprintf("root %d", c.Root))
	}
	if c.Dead > 0 {
		parts = append(parts, fmt.Sprintf("%d random dead", c.Dead))
	}
	if c.Stretch > 1 {
		parts = append(parts, fmt.Sprintf("stretched by %g", c.Stretch))
	}
	if c.Lateness > 0 {
		parts = append(parts, fmt.Sprintf("timers late by %g", c.Lateness))
	}
	if s.fail != "" {
		parts = append(parts, "dead "+s.fail)
	}
	if len(s.die) > 0 {
		parts = append(parts, "dying "+strings.Join(s.die, " "))
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", c.Seed)), ", ")
}

func (s *simCommand) describeDissemination(c *experiments.Scenario) string {
	switch {
	case s.dissemination == "tree":
		return fmt.Sprintf("%s %s tree", s.order, s.shape)
	case s.dissemination == "ack":
		return fmt.Sprintf("%s %s tree with acknowledgments", s.order, s.shape)
	case s.dissemination == "big":
		return "binomial graph"
	case s.dissemination == "bfb":
		return "restarting tree"
	case c.GossipRounds > 0:
		return fmt.Sprintf("gossip for %d rounds", c.GossipRounds)
	default:
		return fmt.Sprintf("gossip until %d", c.GossipTime)
	}
}

// scenarioJSON echoes the parameters in the words of the flags, with defaults
// filled in, so that a file of results says what it is about. What the
// dissemination has no use for is left out.
type scenarioJSON struct {
	Dissemination string          `json:"dissemination"`
	Shape         string          `json:"shape,omitempty"`
	Order         string          `json:"order,omitempty"`
	GossipTime    protocol.Time   `json:"gossip_time,omitempty"`
	GossipRounds  int32           `json:"gossip_rounds,omitempty"`
	Drain         string          `json:"drain,omitempty"`
	Correction    string          `json:"correction"`
	Start         string          `json:"start,omitempty"`
	Early         string          `json:"early,omitempty"`
	Processes     protocol.Rank   `json:"processes"`
	Root          protocol.Rank   `json:"root"`
	Latency       protocol.Time   `json:"latency"`
	Overhead      protocol.Time   `json:"overhead"`
	Faults        int             `json:"faults"`
	Stretch       float64         `json:"stretch,omitempty"`
	Lateness      float64         `json:"lateness,omitempty"`
	Fail          []protocol.Rank `json:"fail,omitempty"`
	Die           []string        `json:"die,omitempty"`
	Runs          int             `json:"runs"`
	Seed          uint64          `json:"seed"`
}

func (s *simCommand) echo(c *experiments.Scenario) scenarioJSON {
	e := scenarioJSON{
		Dissemination: c.Dissemination, Correction: c.Correction,
		Processes: c.Size, Root: c.Root, Latency: c.L, Overhead: c.O,
		Faults: c.Dead, Fail: c.Fixed.Dead, Die: s.die,
		Lateness: c.Lateness, Runs: c.Runs, Seed: c.Seed,
	}
	if c.Stretch > 1 {
		e.Stretch = c.Stretch
	}
	switch {
	case c.Dissemination == "tree" || c.Dissemination == "ack":
		e.Shape, e.Order = s.shape, s.order
	case c.GossipRounds > 0:
		e.GossipRounds = c.GossipRounds
	case c.Dissemination == "gossip":
		e.GossipTime, e.Drain = c.GossipTime, s.drain
	}
	if c.Correction != "none" {
		e.Start = s.start
	}
	if s.start == "overlapped" && c.Correction != "none" {
		e.Early = s.early
	}
	return e
}

// writeJSON writes scenario and report as one object.
func (s *simCommand) writeJSON(w io.Writer, c *experiments.Scenario, report *experiments.Report) error {
	err := json.NewEncoder(w).Encode(struct {
		Scenario scenarioJSON `json:"scenario"`
		*experiments.Report
	}{s.echo(c), report})
	return cli.Failure(err)
}
