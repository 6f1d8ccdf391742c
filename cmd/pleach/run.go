package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// maxProcesses is how many processes one host is asked to bear.
const maxProcesses = 4096

// maxGrace and maxStrike bound what is waited for: longer is a typing error.
const (
	maxGrace  = time.Hour
	maxStrike = 24 * time.Hour
)

// runCommand starts processes on this host, and strikes some of them.
type runCommand struct {
	size                        int
	kill, stop, env             []string
	grace                       time.Duration
	noPrefix, timestamps, stdin bool
}

func newRun() *cobra.Command {
	var r runCommand
	cmd := &cobra.Command{
		Use:   "run -n N [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Start processes on this host, and kill or stop some to see what happens",
		Long: `Start N processes of a program on this host and show what they print, each line
with its rank before it. When one dies, the others go on.

Every process gets a socket that listens already (PLEACH_LISTEN_FD), so that all
addresses are known before the first one starts, and learns its rank, the size of
the group and all addresses from PLEACH_RANK, PLEACH_SIZE and PLEACH_ADDRESSES (or
PLEACH_ADDRESS_FILE if they are many). Package bootstrap reads all of that.

Ctrl-C and SIGTERM ask all processes to end by SIGTERM, and kill them after the
grace time; a second Ctrl-C kills them at once. Processes that a process leaves
behind are killed when it ends.

The exit code is 0 if every process ended with 0 but for those that were killed or
stopped on purpose, 1 if another one failed, 2 if the command line is wrong and
130 after Ctrl-C or SIGTERM.`,
		Example: `  pleach run -n 64 ./prog
  pleach run -n 4 -- sh -c 'echo $PLEACH_RANK of $PLEACH_SIZE'
  pleach run -n 8 --kill 3@2s --kill 5@2.5s ./prog --verbose
  pleach run -n 8 --stop 3@1s+500ms --timestamps ./prog
  pleach run -n 4 --env GOMAXPROCS=1 --env GODEBUG=netdns=go ./prog`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no program: write what to run, as in pleach run -n 4 ./prog")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args) },
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // what follows the program is the program's
	f.IntVarP(&r.size, "processes", "n", 0, "number `N` of processes")
	f.StringArrayVar(&r.kill, "kill", nil, "kill (SIGKILL) `RANK@DURATION` after the start, as in 3@2s; may be repeated")
	f.StringArrayVar(&r.stop, "stop", nil, "stop (SIGSTOP) `RANK@DURATION[+DURATION]` after the start, for the second duration or for good; may be repeated")
	f.DurationVar(&r.grace, "grace", 5*time.Second, "`time` to end after Ctrl-C or SIGTERM")
	f.BoolVar(&r.noPrefix, "no-prefix", false, "do not write ranks before lines")
	f.BoolVar(&r.timestamps, "timestamps", false, "write the seconds since the start before lines")
	f.BoolVar(&r.stdin, "stdin", false, "hand the standard input to rank 0")
	f.StringArrayVar(&r.env, "env", nil, "set a variable for all processes, as `NAME=VALUE`; may be repeated")
	return cmd
}

// jobConfig is what a job is to do.
type jobConfig struct {
	size    int
	program string   // where the program is
	args    []string // its name and its arguments
	strikes []strike // in order of time
	grace   time.Duration
	env     []string
	stdin   io.Reader // for rank 0, or nil
	output  *output
}

func (r *runCommand) run(cmd *cobra.Command, args []string) error {
	if err := r.check(); err != nil {
		return err
	}
	strikes, err := r.strikes()
	if err != nil {
		return err
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", args[0], errors.Unwrap(err))
	}
	c := jobConfig{
		size: r.size, program: program, args: args, strikes: strikes, grace: r.grace, env: r.env,
		output: newOutput(cmd.OutOrStdout(), cmd.ErrOrStderr(), !r.noPrefix, r.timestamps),
	}
	if r.stdin {
		c.stdin = os.Stdin
	}
	return runJob(c)
}

func (r *runCommand) check() error {
	switch {
	case r.size < 1 || r.size > maxProcesses:
		return fmt.Errorf("-n %d: choose a number of processes between 1 and %d", r.size, maxProcesses)
	case r.grace < 0 || r.grace > maxGrace:
		return fmt.Errorf("--grace %v: choose a time between 0s and %v", r.grace, maxGrace)
	}
	for _, v := range r.env {
		if strings.Index(v, "=") < 1 {
			return fmt.Errorf("--env %s: write NAME=VALUE", v)
		}
	}
	return nil
}

// strikes reads --kill and --stop, and returns what happens in order of time.
func (r *runCommand) strikes() ([]strike, error) {
	var all []strike
	for _, flag := range []struct {
		kind  strikeKind
		texts []string
	}{{strikeKill, r.kill}, {strikeStop, r.stop}} {
		for _, text := range flag.texts {
			s, err := parseStrike(flag.kind, text)
			if err != nil {
				return nil, err
			}
			if s.rank >= r.size {
				return nil, fmt.Errorf("%v: %d is not one of the ranks 0 to %d", s, s.rank, r.size-1)
			}
			all = append(all, s)
			if s.lasts > 0 {
				all = append(all, strike{kind: strikeContinue, rank: s.rank, at: s.at + s.lasts})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b strike) int { return cmp.Compare(a.at, b.at) })
	return all, nil
}
