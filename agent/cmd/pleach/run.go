package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/launch"
)

// maxProcesses is how many processes one host is asked to bear.
const maxProcesses = 4096

// maxGrace bounds the grace time: longer is a typing error.
const maxGrace = time.Hour

// runCommand starts processes on this host or on several, and injects faults into them.
type runCommand struct {
	size                        int
	hosts, hostfile             string
	ssh, pleach                 string
	kill, stop, env             []string
	grace                       time.Duration
	noPrefix, timestamps, stdin bool
	respawn, strict             bool
	progress, suspicion         time.Duration
}

func newRun() *cobra.Command {
	var r runCommand
	cmd := &cobra.Command{
		Use:   "run {-n N | --hosts HOST:N,...} [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Start processes on this host or on several, and inject faults into them",
		Long: `Start N processes of a program on this host and print their output, each line with
its rank before it. When a process dies, the others keep running.

--hosts and --hostfile start them on several hosts by ssh, which must ask for no
password. Each host needs the program, at the same path or in the same directory, and
pleach; nothing is copied. The hosts choose free ports themselves, at the address at
which ssh reaches them. Processes get the environment that ssh gives them, --env, and
the variables PLEACH_* of this command. A host that is cut off or dies is like its
processes: the others keep running as long as they have a quorum.

Every process inherits a listening socket (PLEACH_LISTEN_FD), so that all addresses
are known before the first process starts. It reads its rank, the size of the group
and all addresses from PLEACH_RANK, PLEACH_SIZE and PLEACH_ADDRESSES (or from the file
PLEACH_ADDRESS_FILE if there are more than 512). Package bootstrap does that.

--kill and --stop inject faults: they kill or stop the process of a rank some time
after the start, or when it prints a line that matches a regular expression, on
standard output or standard error. Only the first match acts.

--respawn restarts a process that a signal or a panic has ended, under its rank, as
long as others live. The program has to take it in: see World.Admit of package pleach.

Ctrl-C and SIGTERM send SIGTERM to all processes, and SIGKILL after the grace time. A
second Ctrl-C kills them at once. When a process ends, the processes that it started
are killed.

A process that the others have removed from the job, because it hangs
(--progress-timeout, --suspicion-timeout), has the grace time to end. Then it is
killed with the processes that it started.

The exit code is 0 if every process exited with 0, except those that were killed or
stopped on purpose, and if the job was completed without the processes that failed: all
others took over their work, agreed on the end (World.Finalize) and exited with 0. It is
1 if a process failed otherwise, or at all with --strict-exit; 2 if the command line is
wrong; 130 after Ctrl-C or SIGTERM.`,
		Example: `  pleach run -n 64 ./prog
  pleach run -n 4 -- sh -c 'echo $PLEACH_RANK of $PLEACH_SIZE'
  pleach run -n 8 --kill 3@2s --kill 5@2.5s ./prog --verbose
  pleach run -n 8 --stop 3@1s+500ms --timestamps ./prog
  pleach run -n 8 --kill '3@/^step 7 begins/' --stop '5@/checkpoint/+2s' ./prog
  pleach run -n 6 --respawn --kill 2@1s ./sgd
  pleach run --hosts node1:4,node2:4,node3:4 ./prog
  pleach run --hostfile hosts --ssh 'ssh -p 2222 -o BatchMode=yes' ./prog
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
	f.StringVar(&r.hosts, "hosts", "",
		"hosts to start the processes on by ssh, as `HOST:N,...`: N processes on each; -n may be less than their sum")
	f.StringVar(&r.hostfile, "hostfile", "", "`file` with a host on each line: HOST, HOST:N or HOST slots=N")
	f.StringVar(&r.ssh, "ssh", "ssh -o BatchMode=yes", "`command` that runs another one on a host")
	f.StringVar(&r.pleach, "remote-pleach", "pleach", "`path` of this program on the hosts")
	f.StringArrayVar(&r.kill, "kill", nil,
		"kill (SIGKILL) `RANK@WHEN`: a duration after the start, as in 3@2s, or the first line that matches, as in '3@/step 7/'; may be repeated")
	f.StringArrayVar(&r.stop, "stop", nil,
		"stop (SIGSTOP) `RANK@WHEN[+DURATION]`, for the duration or for good; may be repeated")
	f.BoolVar(&r.respawn, "respawn", false, "restart a process that has died, as a replacement of its rank")
	f.BoolVar(&r.strict, "strict-exit", false,
		"exit with 1 if a process failed, even if the others completed the job without it")
	f.DurationVar(&r.progress, "progress-timeout", 0,
		"`time` after which a process that is alive and makes no progress is removed from the job (PLEACH_PROGRESS_TIMEOUT); 0: never")
	f.DurationVar(&r.suspicion, "suspicion-timeout", 0,
		"`time` of silence after which a process is removed from the job (PLEACH_SUSPICION_TIMEOUT); 0: the program's")
	f.DurationVar(&r.grace, "grace", 5*time.Second, "`time` to end after Ctrl-C or SIGTERM")
	f.BoolVar(&r.noPrefix, "no-prefix", false, "do not write ranks before lines")
	f.BoolVar(&r.timestamps, "timestamps", false, "write the seconds since the start before lines")
	f.BoolVar(&r.stdin, "stdin", false, "hand the standard input to rank 0")
	f.StringArrayVar(&r.env, "env", nil, "set a variable for all processes, as `NAME=VALUE`; may be repeated")
	return cmd
}

func (r *runCommand) run(cmd *cobra.Command, args []string) error {
	hosts, err := r.jobHosts()
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	faults, err := launch.Schedule(r.size, r.kill, r.stop)
	if err != nil {
		return err
	}
	program := args[0] // other hosts look for it themselves
	if hosts == nil {
		program, err = exec.LookPath(args[0])
		if err != nil {
			return fmt.Errorf("cannot run %s: %w", args[0], errors.Unwrap(err))
		}
	}
	for variable, timeout := range map[string]time.Duration{
		"PLEACH_PROGRESS_TIMEOUT":  r.progress,
		"PLEACH_SUSPICION_TIMEOUT": r.suspicion,
	} {
		if timeout > 0 {
			r.env = append(r.env, variable+"="+timeout.String())
		}
	}
	stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	job := launch.Job{
		Size: r.size, Program: program, Args: args, Env: r.env, Hosts: hosts, Faults: faults, Respawn: r.respawn,
		Strict: r.strict, Grace: r.grace, Interactive: cli.IsTerminal(stderr),
		Output: &launch.Output{
			Stdout: launch.Stream{Writer: stdout, Color: cli.WantsColor(stdout)},
			Stderr: launch.Stream{Writer: stderr, Color: cli.WantsColor(stderr)},
			Prefix: !r.noPrefix, Timestamps: r.timestamps,
		},
	}
	if r.stdin {
		job.Stdin = os.Stdin
	}
	report, err := launch.Run(job)
	if err != nil {
		if _, ok := errors.AsType[*launch.OpenFilesError](err); ok {
			return err
		}
		return cli.Failure(err)
	}
	writeRunReport(stderr, report)
	return runError(report)
}

// jobHosts returns the hosts that flags name, or nil, and sets the number of processes.
func (r *runCommand) jobHosts() (*launch.Hosts, error) {
	if r.hosts == "" && r.hostfile == "" {
		return nil, nil
	}
	h := &launch.Hosts{SSH: strings.Fields(r.ssh), Pleach: r.pleach}
	if len(h.SSH) == 0 || r.pleach == "" {
		return nil, errors.New("--ssh and --remote-pleach need a command each")
	}
	var err error
	if r.hosts != "" {
		if r.hostfile != "" {
			return nil, errors.New("--hosts and --hostfile: choose one of them")
		}
		h.List, err = launch.ParseHosts(r.hosts)
	} else {
		h.List, err = launch.ReadHostfile(r.hostfile)
	}
	if err != nil {
		return nil, err
	}
	r.size, err = h.Fill(r.size)
	return h, err
}

// newHost is what ssh starts: see launch.Serve.
func newHost() *cobra.Command {
	return &cobra.Command{
		Use: "host", Hidden: true, Args: cobra.NoArgs,
		Short: "Be the end of a job on this host, for pleach run --hosts",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return launch.Serve(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// runError is what the exit code is about.
func runError(r *launch.Report) error {
	if _, ok := errors.AsType[*launch.InterruptedError](r.Interrupted); ok {
		return cli.Interruption(r.Interrupted.Error())
	}
	if r.Interrupted != nil {
		return cli.Failure(r.Interrupted)
	}
	if o, ok := r.FirstFailure(); ok {
		return cli.Failure(fmt.Errorf("rank %d failed first, after %v: %s", o.Rank, o.After, o.Text))
	}
	return nil
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
