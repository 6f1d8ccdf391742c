// Command verify checks Pleach from outside: it runs groups of processes on hosts of their
// own (network namespaces), disturbs them, and checks what they and their clients have seen.
//
//	verify run --time 10m --seed 1     # groups under faults, round after round
//	verify mutants --time 2m           # the same on code that is wrong on purpose
//
// The members are this program, too, and use nothing but the public API. It needs Linux, root
// and the ip command.
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
		_ = flags.Parse(os.Args[2:])
		program, err := os.Executable()
		fail(err)
		c.program = program
		summary, err := c.run()
		fmt.Println(summary)
		fail(err)
	case "mutants":
		var c config
		c.flags(flags)
		only := flags.String("only", "", "the `name` of one mutant")
		root := flags.String("root", "..", "the `folder` of the code")
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
	seed        uint64
	members     int
	dir         string
	program     string // of the members
}

func (c *config) flags(f *flag.FlagSet) {
	f.DurationVar(&c.time, "time", time.Minute, "how long to run groups")
	f.DurationVar(&c.round, "round", 40*time.Second, "how long one group is disturbed")
	f.Uint64Var(&c.seed, "seed", 1, "the `seed` of the first round; each further one has the next")
	f.IntVar(&c.members, "members", 5, "the `number` of members")
	f.StringVar(&c.dir, "dir", filepath.Join(os.TempDir(), "pleach-verify"), "the `folder` of histories; those of rounds that were right are removed")
}
