// Command verify checks Pleach from outside: it runs groups of processes on hosts of their
// own (network namespaces), disturbs them, and checks what they and their clients have seen.
//
//	verify run --time 10m --seed 1     # groups under faults, round after round
//	verify run --seed 7 --plan plan.json --shrink 10m   # one round again, and without actions that it does not need
//	verify mutants --time 2m           # the same on code that is wrong on purpose
//
// The members are this program, too, and use nothing but the public API; it is built for them
// with a clock that can be shifted. It needs Linux, root, the ip command and Go, and is run in
// the directory of its source.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	runtime.LockOSThread() // its members die with this thread, and so not before
	if len(os.Args) < 2 {
		fail(fmt.Errorf("verify: choose run or mutants, as in verify run --time 10m --seed 1"))
	}
	flags := flag.NewFlagSet("verify "+os.Args[1], flag.ExitOnError)
	switch os.Args[1] {
	case "member":
		var m memberConfig
		m.flags(flags)
		_ = flags.Parse(os.Args[2:])
		fail(runMember(m))
	case "job":
		var j jobConfig
		j.flags(flags)
		_ = flags.Parse(os.Args[2:])
		fail(runJob(j))
	case "run":
		var c config
		c.flags(flags)
		plan := flags.String("plan", "", "the `file` of a plan to run instead of that of the seed")
		_ = flags.Parse(os.Args[2:])
		if *plan != "" {
			var err error
			c.plan, err = readPlan(*plan)
			fail(err)
			c.time = 1 // one round
		}
		fail(os.MkdirAll(c.dir, 0o700))
		c.program = filepath.Join(c.dir, "member")
		fail(buildMember(".", c.program, nil))
		c.agent = filepath.Join(c.dir, "agent")
		fail(buildAgent("../..", c.agent, nil))
		summary, err := c.run()
		fmt.Println(summary)
		fail(err)
	case "mutants":
		var c config
		c.flags(flags)
		only := flags.String("only", "", "the `name` of one mutant")
		root := flags.String("root", "../..", "the `directory` of the code")
		_ = flags.Parse(os.Args[2:])
		fail(runMutants(c, *root, *only))
	default:
		fail(fmt.Errorf("verify: %q: choose run or mutants", os.Args[1]))
	}
}

// fail ends the program if there is an error.
func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// config says what to run.
type config struct {
	time, round time.Duration
	shrinkFor   time.Duration
	seed        uint64
	members     int
	dir         string
	kind        string   // of the rounds; empty: all
	plan        []action // instead of the seed's; nil: that
	program     string   // of the members
	agent       string   // the pleach command
}

func (c *config) flags(f *flag.FlagSet) {
	f.DurationVar(&c.time, "time", time.Minute, "how long to run groups")
	f.DurationVar(&c.round, "round", 40*time.Second, "how long one group is disturbed")
	f.Uint64Var(&c.seed, "seed", 1, "the `seed` of the first round; each further one has the next")
	f.DurationVar(&c.shrinkFor, "shrink", 0, "how long to look for a shorter plan that violates the same rule")
	f.StringVar(&c.kind, "kind", "", "rounds of one `kind` alone: disks, memory or agents")
	f.IntVar(&c.members, "members", 5, "the `number` of members; rounds of agents have 3 to 5")
	f.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "pleach-verify"),
		"the `directory` of histories; those of rounds that were right are removed")
}
