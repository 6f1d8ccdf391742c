package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/internal/cli"
	"github.com/pleach-go/pleach/internal/experiments/zones"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// zonesFlags are the flags of pleach-lab sim that make zones.
type zonesFlags struct {
	zones, delegates        int64
	wanLatency, wanOverhead int64
	takeover                string
	deadZones, deadLeads    int
	compare                 string
}

var comparisons = []string{zones.Flat, zones.Gossip}

func (z *zonesFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int64Var(&z.zones, "zones", 0, "`number` of zones of equal size; 0: none")
	f.Int64Var(&z.delegates, "delegates", 3, "`number` of delegates of a zone")
	f.Int64Var(&z.wanLatency, "wan-latency", 200, "latency `L` between zones, in steps")
	f.Int64Var(&z.wanOverhead, "wan-overhead", 1, "overhead `o` between zones, in steps")
	f.StringVar(&z.takeover, "takeover", "auto", "`time` that a delegate waits for the one before it; auto: what the backbone and a zone take if none is dead")
	f.IntVar(&z.deadZones, "dead-zones", 0, "`number` of random zones that are dead in each run")
	f.IntVar(&z.deadLeads, "dead-leads", 0, "`number` of random zones whose lead delegate is dead in each run")
	f.StringVar(&z.compare, "compare", "flat,gossip", "`systems` to simulate beside zones: flat, gossip, both or none")
	cli.Complete(cmd, "compare", "flat", "gossip", "flat,gossip", "none")
}

// zonesFlagNames are the flags that need --zones, and flatFlagNames those that do not go
// with it.
var (
	zonesFlagNames = []string{"delegates", "wan-latency", "wan-overhead", "takeover", "dead-zones", "dead-leads", "compare"}
	flatFlagNames  = []string{"dissemination", "order", "early", "gossip-time", "gossip-rounds", "drain", "stretch", "lateness", "trace", "timeline"}
)

// check refuses flags that do not go together.
func (z *zonesFlags) check(cmd *cobra.Command) error {
	names, rule := zonesFlagNames, "only goes with --zones"
	if z.zones != 0 {
		names, rule = flatFlagNames, "does not go with --zones"
	}
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s %s", name, rule)
		}
	}
	return nil
}

// systems are the systems to simulate.
func (z *zonesFlags) systems() ([]string, error) {
	systems := []string{zones.Fleet}
	if z.compare == "none" {
		return systems, nil
	}
	for name := range strings.SplitSeq(z.compare, ",") {
		if err := oneOf("compare", name, comparisons); err != nil {
			return nil, err
		}
		systems = append(systems, name)
	}
	return systems, nil
}

// runZones simulates a fleet of zones, and what it is compared with.
func (s *simCommand) runZones(cmd *cobra.Command) error {
	scenario, err := s.fleet(cmd)
	if err != nil {
		return err
	}
	systems, err := s.systems()
	if err != nil {
		return err
	}
	var reports []*zones.Report
	bar := newProgress(cmd.ErrOrStderr(), len(systems)*scenario.Runs)
	for i, system := range systems {
		report, err := scenario.Run(cmd.Context(), system, func(done int) { bar.update(i*scenario.Runs + done) })
		if err != nil {
			done := bar.stop()
			if cmd.Context().Err() != nil {
				return cli.InterruptedAfter(done, len(systems)*scenario.Runs, "runs")
			}
			return cli.Failure(err)
		}
		reports = append(reports, report)
	}
	bar.stop()
	if s.json {
		return s.writeZonesJSON(cmd.OutOrStdout(), scenario, reports)
	}
	return s.writeZones(cmd.OutOrStdout(), scenario, reports)
}

// fleet makes a scenario of the flags. Everything that is wrong with them shows here.
func (s *simCommand) fleet(cmd *cobra.Command) (*zones.Scenario, error) {
	size, origin, l, o, err := s.network()
	switch {
	case err != nil:
		return nil, err
	case s.zones < 1 || int64(size)%s.zones != 0:
		return nil, fmt.Errorf("--zones %d: choose a number that divides %d processes", s.zones, size)
	case s.wanLatency < 0 || s.wanLatency > timeLimit || s.wanOverhead < 1 || s.wanOverhead > timeLimit:
		return nil, fmt.Errorf("--wan-latency %d, --wan-overhead %d: choose a latency from 0 and an overhead from 1 on, up to %d", s.wanLatency, s.wanOverhead, timeLimit)
	case s.deadZones < 0 || s.deadLeads < 0:
		return nil, errors.New("--dead-zones and --dead-leads: choose numbers from 0 on")
	}
	if !cmd.Flags().Changed("shape") {
		s.shape = "optimal"
	}
	if !cmd.Flags().Changed("start") && !cmd.Flags().Changed("correction") {
		s.start, s.correction = broadcast.Overlapped.String(), ""
	}
	c := &zones.Scenario{
		Layout: zones.Layout{Zones: protocol.Rank(s.zones), Members: size / protocol.Rank(s.zones)},
		Origin: origin, L: l, O: o, FarL: protocol.Time(s.wanLatency), FarO: protocol.Time(s.wanOverhead),
		BackboneShape: topology.Optimal(protocol.Time(s.wanLatency), protocol.Time(s.wanOverhead)),
		Correction:    s.correction, Seed: s.seed, Engine: s.engine,
	}
	c.Delegates = min(protocol.Rank(s.delegates), c.Members)
	c.DeadZones, c.DeadLeads = s.deadZones, s.deadLeads
	if s.start == broadcast.Synchronized.String() {
		c.Start = broadcast.Synchronized
	}
	if err := s.fillFleet(cmd, c); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, errors.New(cli.ShellText(err))
	}
	return c, nil
}

// zonesProcesses is for fleets what randomProcesses is for others: three systems are
// simulated message by message.
const zonesProcesses = 1 << 21

// fillFleet takes what zones have in common with other scenarios.
func (s *simCommand) fillFleet(cmd *cobra.Command, c *zones.Scenario) (err error) {
	if err := cmp.Or(oneOf("start", s.start, starts), oneOf("engine", s.engine, engines)); err != nil {
		return err
	}
	if c.Shape, _, err = s.form(); err != nil {
		return err
	}
	if c.FlatShape, err = topology.ParseShape(s.shape, c.FarL, c.FarO); err != nil {
		return cli.FlagError("shape", err)
	}
	if c.Takeover, err = parseAuto("takeover", s.takeover, 1, 0); err != nil {
		return err
	}
	if c.Dead, err = parseFaults(s.faults, c.Size()); err != nil {
		return err
	}
	if c.Fixed, err = s.failed(); err != nil {
		return err
	}
	if c.Deaths, err = s.deaths(c.Size()); err != nil {
		return err
	}
	c.Runs, err = s.howOften(cmd, c.Size(), zonesProcesses, c.Dead+c.DeadZones+c.DeadLeads > 0 || strings.Contains(s.compare, zones.Gossip))
	return err
}

// fleetJSON echoes the parameters in the words of the flags.
type fleetJSON struct {
	Processes   protocol.Rank   `json:"processes"`
	Zones       protocol.Rank   `json:"zones"`
	Delegates   protocol.Rank   `json:"delegates"`
	Root        protocol.Rank   `json:"root"`
	Shape       string          `json:"shape"`
	Correction  string          `json:"correction"`
	Start       string          `json:"start"`
	Latency     protocol.Time   `json:"latency"`
	Overhead    protocol.Time   `json:"overhead"`
	WANLatency  protocol.Time   `json:"wan_latency"`
	WANOverhead protocol.Time   `json:"wan_overhead"`
	Takeover    protocol.Time   `json:"takeover"`
	Faults      int             `json:"faults"`
	DeadZones   int             `json:"dead_zones"`
	DeadLeads   int             `json:"dead_leads"`
	Fail        []protocol.Rank `json:"fail,omitempty"`
	Die         []string        `json:"die,omitempty"`
	Runs        int             `json:"runs"`
	Seed        uint64          `json:"seed"`
}

func (s *simCommand) writeZonesJSON(w io.Writer, c *zones.Scenario, reports []*zones.Report) error {
	err := json.NewEncoder(w).Encode(struct {
		Scenario fleetJSON       `json:"scenario"`
		Results  []*zones.Report `json:"results"`
	}{fleetJSON{
		Processes: c.Size(), Zones: c.Zones, Delegates: c.Delegates, Root: c.Origin,
		Shape: s.shape, Correction: cmp.Or(c.Correction, "paced"), Start: s.start,
		Latency: c.L, Overhead: c.O, WANLatency: c.FarL, WANOverhead: c.FarO, Takeover: c.Takeover,
		Faults: c.Dead, DeadZones: c.DeadZones, DeadLeads: c.DeadLeads, Fail: c.Fixed, Die: s.die,
		Runs: c.Runs, Seed: c.Seed,
	}, reports})
	if err != nil {
		return cli.Failure(err)
	}
	return nil
}

// writeZones writes the reports for people.
func (s *simCommand) writeZones(w io.Writer, c *zones.Scenario, reports []*zones.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d zones of %d, %d delegates each; %s trees, %s %s correction; L=%d, o=%d, between zones L=%d, o=%d; ",
		c.Zones, c.Members, c.Delegates, s.shape, s.start, cmp.Or(c.Correction, "paced"), c.L, c.O, c.FarL, c.FarO)
	fmt.Fprintf(&b, "%d random dead, %d leads, %d zones; seed %d\n\n", c.Dead, c.DeadLeads, c.DeadZones, c.Seed)
	fmt.Fprintf(&b, "%-7s %-7s %10s %10s %10s %14s %12s %10s\n", "", "engine", "coloring", "max", "quiescence", "WAN messages", "messages/P", "unreached")
	for _, r := range reports {
		fmt.Fprintf(&b, "%-7s %-7s %10.1f %10.0f %10.1f %14.1f %12.4f %10d\n",
			r.System, r.Engine, r.Coloring.Mean, r.Coloring.Max, r.Quiescence.Mean, r.WANMessages.Mean, r.MessagesPerProcess.Mean, r.Unreached.Processes)
	}
	b.WriteString("\n")
	for _, r := range reports {
		if r.CutOff > 0 {
			fmt.Fprintf(&b, "%s: %d of the unreached have no live delegate in their zone.\n", r.System, r.CutOff)
		}
		switch {
		case r.Engine != zones.EngineModel:
			fmt.Fprintf(&b, "%s: %s in %.3g s\n", r.System, cli.Count(r.Runs, "run"), r.Seconds)
		case r.System == zones.Flat:
			fmt.Fprintf(&b, "%s: too large to simulate; by formulas, as if no process were dead\n", r.System)
		default:
			fmt.Fprintf(&b, "%s: too large to simulate; by formulas\n", r.System)
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return cli.Failure(err)
	}
	return nil
}
