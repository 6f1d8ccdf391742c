package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/lab/draw"
	"github.com/pleach-go/pleach/lab/experiments"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// simCommand are the flags of pleach-lab sim.
type simCommand struct {
	layout
	dissemination, correction, start, early string
	gossipTime, drain                       string
	gossipRounds                            int32
	faults                                  string
	stretch, lateness                       float64
	die                                     []string
	runs                                    int
	seed                                    uint64
	engine                                  string
	json                                    bool
	trace, timeline                         string
}

// The words of the flags that take one of a few.
var (
	disseminations = []string{"tree", "gossip", "ack", "big", "bfb"}
	starts         = []string{"synchronized", "overlapped"}
	earlies        = []string{"correct", "relay"}
	engines        = []string{experiments.EngineAuto, experiments.EngineEvents, experiments.EngineSparse}
)

const (
	// randomRuns is how many runs there are if --runs is not given and something
	// is random.
	randomRuns = 100
	// randomProcesses bounds how many processes these have in all, so that a
	// billion of them are simulated once.
	randomProcesses = 1 << 28
	// maxRuns is how many results fit into the memory of an ordinary machine.
	maxRuns = 10_000_000
	// maxStretch keeps times within what is simulated.
	maxStretch = 10_000.0
)

func (s *simCommand) addFlags(cmd *cobra.Command) {
	s.layout.addFlags(cmd, 1024)
	f := cmd.Flags()
	f.StringVar(&s.dissemination, "dissemination", "tree", "how the message first spreads: "+words(disseminations))
	f.StringVar(&s.correction, "correction", "checked", "how gaps are closed; none for ack, big and bfb")
	f.StringVar(&s.start, "start", "synchronized",
		"when correction starts: synchronized, or overlapped, the default of --gossip-rounds")
	f.StringVar(&s.early, "early", "correct",
		"what processes do that an overlapped correction reaches before the tree: correct, or only relay")
	f.StringVar(&s.gossipTime, "gossip-time", "auto",
		"how long to gossip, a `time` or auto: by the formulas of Corrected Gossip")
	f.Int32Var(&s.gossipRounds, "gossip-rounds", 0, "gossip for a `number` of rounds instead of a time")
	f.StringVar(&s.drain, "drain", "auto", "`time` from the end of gossip to the start of correction; auto is L+o")
	f.StringVar(&s.faults, "faults", "0", "how many random processes are dead in each run, a `number` or a share as in 1%")
	f.StringArrayVar(&s.die, "die", nil,
		"a `death` on the way, as in 5@12, 5@correction or 5#3 (after three sends); repeatable")
	f.Float64Var(&s.stretch, "stretch", 1,
		"overload: `factor` by which sends and receives of a process take longer than o, a random one for each process, with this mean")
	f.Float64Var(&s.lateness, "lateness", 0,
		"mean `time` by which processes wake up late from waits, as timers of real hosts fire late")
	f.IntVar(&s.runs, "runs", 0,
		fmt.Sprintf("`number` of runs (default 1, or %d if anything is random; fewer from 2^22 processes on)", randomRuns))
	f.Uint64Var(&s.seed, "seed", 1, "`seed` of all randomness")
	f.StringVar(&s.engine, "engine", experiments.EngineAuto, "how to simulate: "+words(engines)+
		"; the figures are the same")
	f.BoolVar(&s.json, "json", false, "write one JSON object")
	f.StringVar(&s.trace, "trace", "",
		"write the events of the first run as JSON lines into this `file`; - is stdout, and the report goes to stderr")
	f.StringVar(&s.timeline, "timeline", "", fmt.Sprintf("draw the first run as SVG into this `file` (up to %d processes)",
		draw.MaxTimelineSize))
	cli.Complete(cmd, "dissemination", disseminations...)
	cli.Complete(cmd, "correction", "none", "checked", "throttled", "opportunistic:2", "optimized:2", "safe:2",
		"failure-proof:1", "delayed:8", "paced:8", "patient:8")
	cli.Complete(cmd, "start", starts...)
	cli.Complete(cmd, "early", earlies...)
	cli.Complete(cmd, "engine", engines...)
}

// scenario makes a scenario of the flags. Everything that is wrong with them
// shows here, before any work is done.
func (s *simCommand) scenario(cmd *cobra.Command) (*experiments.Scenario, error) {
	if err := s.checkWords(cmd); err != nil {
		return nil, err
	}
	s.settleDefaults(cmd)
	var c experiments.Scenario
	var err error
	c.Size, c.Root, c.L, c.O, err = s.network()
	if err != nil {
		return nil, err
	}
	c.Shape, c.Order, err = s.form()
	if err != nil {
		return nil, err
	}
	if err := s.takeProtocol(&c); err != nil {
		return nil, err
	}
	if err := s.takeGossip(&c); err != nil {
		return nil, err
	}
	if err := s.takeFaults(&c); err != nil {
		return nil, err
	}
	if err := s.takeRuns(cmd, &c); err != nil {
		return nil, err
	}
	if c.Dissemination == "gossip" && c.GossipRounds == 0 && c.GossipTime == 0 {
		c.GossipTime, err = c.BestGossipTime()
		if err != nil {
			return nil, errors.New(cli.ShellText(err))
		}
	}
	if err := c.Check(); err != nil {
		return nil, errors.New(cli.ShellText(err))
	}
	return &c, nil
}

// checkWords refuses unknown words, and flags of gossip without it. A tree's
// flags are taken with any dissemination, so that one line of flags can be used
// to compare them.
func (s *simCommand) checkWords(cmd *cobra.Command) error {
	err := cmp.Or(
		oneOf("dissemination", s.dissemination, disseminations),
		oneOf("start", s.start, starts),
		oneOf("early", s.early, earlies),
		oneOf("engine", s.engine, engines))
	if err != nil {
		return err
	}
	for _, flag := range []string{"gossip-time", "gossip-rounds", "drain"} {
		if cmd.Flags().Changed(flag) && s.dissemination != "gossip" {
			return fmt.Errorf("--%s does not go with --dissemination %s: only with gossip", flag, s.dissemination)
		}
	}
	if cmd.Flags().Changed("early") && s.start != "overlapped" && s.gossipRounds == 0 {
		return errors.New("--early only goes with --start overlapped: no process is early when all start to correct at once")
	}
	if cmd.Flags().Changed("gossip-rounds") && (cmd.Flags().Changed("gossip-time") || cmd.Flags().Changed("drain")) {
		return errors.New("--gossip-rounds does not go with --gossip-time and --drain: choose rounds or a time")
	}
	return nil
}

// settleDefaults sets what is not given and depends on the dissemination.
func (s *simCommand) settleDefaults(cmd *cobra.Command) {
	switch s.dissemination {
	case "ack", "big", "bfb":
		if !cmd.Flags().Changed("correction") {
			s.correction = "none"
		}
	case "gossip":
		if s.gossipRounds > 0 && !cmd.Flags().Changed("start") {
			s.start = "overlapped"
		}
	}
}

func (s *simCommand) takeProtocol(c *experiments.Scenario) error {
	correction, err := experiments.ParseCorrection(s.correction, c.Size, c.L, c.O)
	switch {
	case err != nil:
		return cli.FlagError("correction", err)
	case correction == nil: // nothing to start
		s.correction = "none"
	case s.start == broadcast.Synchronized.String():
		c.Start = broadcast.Synchronized
	}
	c.Dissemination, c.Correction = s.dissemination, s.correction
	c.EarlyOnlyRelay = s.early == "relay"
	return nil
}

func (s *simCommand) takeGossip(c *experiments.Scenario) (err error) {
	if s.gossipRounds < 0 {
		return fmt.Errorf("--gossip-rounds %d: choose a number from 1 on", s.gossipRounds)
	}
	c.GossipRounds = s.gossipRounds
	c.GossipTime, err = parseAuto("gossip-time", s.gossipTime, 1, 0)
	if err != nil {
		return err
	}
	c.Drain, err = parseAuto("drain", s.drain, 0, -1)
	return err
}

func (s *simCommand) takeFaults(c *experiments.Scenario) (err error) {
	c.Stretch = s.stretch
	if c.Stretch < 1 || c.Stretch > maxStretch {
		return fmt.Errorf("--stretch %g: choose a number between 1 and %g", s.stretch, maxStretch)
	}
	c.Lateness = s.lateness
	if c.Lateness < 0 || c.Lateness > maxStretch {
		return fmt.Errorf("--lateness %g: choose a time between 0 and %g", s.lateness, maxStretch)
	}
	c.Dead, err = parseFaults(s.faults, c.Size)
	if err != nil {
		return err
	}
	c.Fixed.Dead, err = s.failed()
	if err != nil {
		return err
	}
	c.Fixed.Deaths, err = s.deaths(c.Size)
	return err
}

// deaths parses --die.
func (s *simCommand) deaths(size protocol.Rank) (deaths []logp.Death, err error) {
	for _, text := range s.die {
		death, err := logp.ParseDeath(text)
		if err != nil {
			return nil, cli.FlagError("die", err)
		}
		if death.Rank >= size {
			return nil, fmt.Errorf("--die %s: %d is not one of the ranks 0 to %d", text, death.Rank, size-1)
		}
		deaths = append(deaths, death)
	}
	return deaths, nil
}

func (s *simCommand) takeRuns(cmd *cobra.Command, c *experiments.Scenario) (err error) {
	c.Runs, err = s.howOften(cmd, c.Size, c.Dead > 0 || c.Stretch > 1 || c.Lateness > 0 || c.Dissemination == "gossip")
	if err != nil {
		return err
	}
	c.Seed, c.Engine = s.seed, s.engine
	if s.timeline != "" && c.Size > draw.MaxTimelineSize {
		return fmt.Errorf("--timeline: a picture of %d processes cannot be read: choose -P %d or less", c.Size,
			draw.MaxTimelineSize)
	}
	return nil
}

// howOften is the number of runs: as given, or one, or as many as random choices need.
func (s *simCommand) howOften(cmd *cobra.Command, size protocol.Rank, random bool) (int, error) {
	switch {
	case cmd.Flags().Changed("runs") && (s.runs < 1 || s.runs > maxRuns):
		return 0, fmt.Errorf("--runs %d: choose a number between 1 and %d", s.runs, maxRuns)
	case cmd.Flags().Changed("runs"):
		return s.runs, nil
	case random:
		return max(1, min(randomRuns, int(randomProcesses/size))), nil
	default:
		return 1, nil
	}
}
