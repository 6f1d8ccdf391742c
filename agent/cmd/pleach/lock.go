package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
)

// Exit codes of pleach lock other than those of its command, as sysexits.h has them for what may
// succeed later.
const (
	exitNotLocked = 75
	exitLost      = 76
)

// lockCommand runs a command while it holds a lock.
type lockCommand struct {
	agentFlags
	ttl, wait time.Duration
	try       bool
	warn      string
	holder    string
	out       io.Writer // what happens to the lock; standard output is the command's
}

func newLock() *cobra.Command {
	var l lockCommand
	cmd := &cobra.Command{
		Use:   "lock NAME -- COMMAND [ARGUMENT...]",
		Short: "Run a command while no other host runs one under the same lock",
		Long: `Take a lock in the group of the agent of this host, run a command, and release the lock.
Others wait until it is free, or is not renewed any more because its holder or agent is dead.

The command has PLEACH_LOCK and PLEACH_LOCK_TOKEN in its environment. The token is a fencing
token: it rises from holder to holder. The store that the command writes to should refuse tokens below
one that it has seen.

If the lock cannot be renewed, the command gets SIGTERM when a fifth of --ttl is left, and
SIGKILL before another process can have the lock. With --warn, it gets the signal of that name
instead, once, and continues. The command runs in a separate process group, which gets these
signals, and SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 of this process. A supervisor
kills the command and all its descendants if this process is killed, or stopped (Ctrl-Z) until the
lock has ended. A process that the command leaves in the background is killed when the command ends. If
processes of other users cannot be killed, the lock is not released, and expires.

When all agents were started again, their locks are lost. They grant no lock until --ttl, and at
least 10 seconds, have passed, so that commands from before have ended. Use the same --ttl for a
lock on all hosts.

In a fleet, a lock is that of the zone of the agent: each zone has its own lock of a name.

The exit code is that of the command, 128 and its number if a signal has ended it, 75 if
the lock could not be acquired (--try, --wait), 76 if it was lost, 126 or 127 if the command
cannot be run, 1 if the agent does not answer, and 130 if the wait was interrupted. With --json,
what happens to the lock goes to the standard error.`,
		Example: `  pleach lock nightly-report -- /usr/local/bin/report
  pleach lock deploy --try -- ./deploy.sh web
  pleach lock import --wait 10m --ttl 30s -- sh -c 'psql -v token=$PLEACH_LOCK_TOKEN -f import.sql'
  pleach lock leader --warn USR1 --json -- ./serve`,
		Args: func(cmd *cobra.Command, args []string) error { return l.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args[0], args[1:]) },
	}
	l.addFlags(cmd)
	f := cmd.Flags()
	f.DurationVar(&l.ttl, "ttl", api.DefaultTTL, "how long the lock is held without a renewal, from 1s to 1h")
	f.DurationVar(&l.wait, "wait", 0, "how long to wait for the lock (default until it is free)")
	f.BoolVar(&l.try, "try", false, "do not wait for the lock")
	f.StringVar(&l.warn,
		"warn", "", "`signal` that the command gets when the lock is about to be lost, instead of its end: USR1, TERM …")
	f.StringVar(&l.holder, "holder", "", "`name` of this holder, for others to see (default host and process)")
	cmd.MarkFlagsMutuallyExclusive("wait", "try")
	return cmd
}

func (l *lockCommand) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) < 2 || args[0] == "" || cmd.ArgsLenAtDash() != 1:
		return errors.New("write a name and a command, as in pleach lock deploy -- ./deploy.sh")
	case l.ttl < api.MinTTL || l.ttl > api.MaxTTL:
		return fmt.Errorf("--ttl is %v: write a time from %v to %v", l.ttl, api.MinTTL, api.MaxTTL)
	case l.wait < 0:
		return fmt.Errorf("--wait is %v", l.wait)
	}
	_, err := signalNamed(cmp.Or(l.warn, "TERM"))
	return err
}

// lockJSON is what --json writes when something happens to the lock.
type lockJSON struct {
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	Name  string    `json:"name"`
	Token uint64    `json:"token,omitempty"`
	// Reason says who holds the lock, and why it is lost or not released.
	Reason string `json:"reason,omitempty"`
	// ExitCode is that of the command, when the lock is released.
	ExitCode int `json:"exit_code,omitempty"`
}

// tell writes what has happened to the lock. Without --json, that is only what went wrong.
func (l *lockCommand) tell(e lockJSON, text string) {
	e.Time = time.Now()
	if l.json {
		_ = json.NewEncoder(l.out).Encode(e)
	} else if text != "" {
		fmt.Fprintf(l.out, "pleach: %s\n", cli.Printable(text))
	}
}

func (l *lockCommand) run(cmd *cobra.Command, name string, args []string) error {
	l.out = cmd.ErrOrStderr()
	program, err := exec.LookPath(args[0])
	if err != nil {
		return cli.Exit(commandCode(err), err)
	}
	agent, err := l.started(cmd, true, l.wait)
	if err != nil {
		return err
	}
	held, err := l.acquire(cmd.Context(), agent, name)
	if err != nil {
		return err
	}
	signals, stop := forwarded()
	defer stop()
	if cmd.Context().Err() != nil { // a signal that came before
		_ = held.Release()
		return cli.Interruption("interrupted")
	}
	l.tell(lockJSON{Event: "held", Name: name, Token: held.Token}, "")
	c := exec.Command(program, args[1:]...)
	c.Args[0] = args[0]
	c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.Env = append(os.Environ(), "PLEACH_LOCK="+name, fmt.Sprint("PLEACH_LOCK_TOKEN=", held.Token))
	ended, err := l.supervise(c, held, signals)
	e := lockJSON{Event: "released", Name: name, Token: held.Token, ExitCode: ended.code}
	var releaseErr error
	if len(ended.left) > 0 {
		releaseErr = fmt.Errorf("processes of the command cannot be ended: %v", ended.left)
	} else {
		releaseErr = held.Release()
	}
	if releaseErr != nil && (!ended.lost || len(ended.left) > 0) {
		e.Event, e.Reason = "expiring", releaseErr.Error()
		l.tell(e, fmt.Sprintf("the lock %s is not released, and others wait until it expires: %v", name, releaseErr))
	} else if !ended.lost {
		l.tell(e, "")
	}
	switch {
	case err != nil:
		return cli.Exit(commandCode(err), err)
	case ended.lost && l.warn == "":
		return cli.Exit(exitLost, fmt.Errorf("the lock %s was lost", name))
	case ended.code != 0:
		return cli.Exit(ended.code, nil)
	}
	return nil
}

// ending says how a command under a lock has ended.
type ending struct {
	code int
	lost bool  // the lock was about to be lost, or was
	left []int // processes of the command that could not be ended
}

// supervise runs the command, and signals it when the lock is about to be lost.
func (l *lockCommand) supervise(c *exec.Cmd, held *client.Holding, signals <-chan os.Signal) (ending, error) {
	var warning os.Signal // nil: the supervisor ends the command
	if l.warn != "" {
		warning, _ = signalNamed(l.warn) // it was checked
	}
	group, err := startSupervised(c, held.Until(), warning)
	if err != nil {
		return ending{}, err
	}
	lost, late, gone := false, held.Ending(), held.Lost()
	for {
		select {
		case <-group.ended:
			return ending{group.code(), lost || !time.Now().Before(held.Until()), group.left}, nil
		case <-held.Renewed():
			group.hold(held.Until())
		case s := <-signals:
			group.signal(s)
		case <-late:
			late, lost = nil, true
			l.tell(lockJSON{Event: "ending", Name: held.Name, Token: held.Token, Reason: "it cannot be renewed"},
				fmt.Sprintf("the lock %s cannot be renewed", held.Name))
			switch {
			case warning == nil:
				group.terminate()
			case time.Now().Before(held.Until()): // later, the supervisor has sent it
				group.signal(warning)
				group.hold(time.Now().Add(forever))
			}
		case <-gone:
			gone = nil
			l.tell(lockJSON{Event: "lost", Name: held.Name, Token: held.Token}, "")
			if warning == nil {
				group.kill()
			}
		}
	}
}

// forever is longer than any command runs.
const forever = 100 * 365 * 24 * time.Hour

// lockPoll is how long one request waits for a lock, and lockPause how long until the next if the
// agent does not answer.
const (
	lockPoll  = time.Minute
	lockPause = time.Second
)

// acquire takes the lock, as long as the caller waits.
func (l *lockCommand) acquire(ctx context.Context, agent *client.Client, name string) (*client.Holding, error) {
	host, _ := os.Hostname() // a holder without it has its process
	r := client.LockRequest{
		Name: name, Holder: cmp.Or(l.holder, fmt.Sprintf("%s pid %d", host, os.Getpid())), TTL: l.ttl,
		Timeout: lockPoll,
	}
	waiting := ctx // it ends by an interrupt
	if l.wait > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, l.wait)
		defer cancel()
	}
	for first := true; ; first = false {
		held, err := agent.Hold(waiting, r)
		var answer *client.RefusedError
		answered := errors.As(err, &answer)
		early := answered && answer.Status == http.StatusTooEarly
		isHeld := early || answered && (answer.Status == http.StatusConflict || answer.Status == http.StatusGatewayTimeout)
		switch {
		case err == nil:
			return held, nil
		case ctx.Err() != nil:
			return nil, cli.Interruption("interrupted")
		case waiting.Err() != nil, l.try && isHeld:
			return nil, cli.Exit(exitNotLocked, fmt.Errorf("the lock %s could not be acquired: %w", name, err))
		case l.try, first && !answered, answered && answer.Status == http.StatusBadRequest:
			return nil, refused(err)
		case isHeld && first:
			text := ""
			if early {
				text = fmt.Sprintf("waiting: %v", err)
			}
			l.tell(lockJSON{Event: "waiting", Name: name, Reason: err.Error()}, text)
		case !isHeld: // the agent is started again, or its group has no quorum
			select {
			case <-waiting.Done():
			case <-time.After(lockPause):
			}
		}
		r.Wait = true
	}
}
