package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
)

// joinTimeout is how long the others may take to let this process in, and
// leaveTimeout to let it go.
const (
	joinTimeout  = 30 * time.Second
	leaveTimeout = 5 * time.Second
)

// joinCommand is a member of a group in a shell.
type joinCommand struct {
	groupFlags
	listen, advertise, id, domain string
	dataDir                       string
	create, replace, observer     bool
	json, verbose                 bool
	expect                        int
}

func newJoin() *cobra.Command {
	var j joinCommand
	cmd := &cobra.Command{
		Use:   "join ADDRESS...",
		Short: "Join a group, broadcast the standard input, and print messages and views",
		Long: `Join the group of the members at these addresses; one that is alive is enough. Or,
with --create, create a group that others join.

With --expect N, the same command starts every member: if none of the addresses is of
a running group, N such processes begin one together, by agreement. The process waits
for them as long as it takes. Its own address may be among the addresses.

With --observer, this process gets and sends everything and does not count for the quorum:
any number of observers may fail at once. It joins a group that others have begun.

Each line of the standard input is broadcast to all other members. The messages of
others are printed with the sender's rank before them, and every new view is printed.
When the input ends, the process stays a member. Ctrl-C and SIGTERM make it leave, so
that the others install a view without it at once. A second Ctrl-C does not wait for
that.`,
		Example: `  pleach join --create --listen 127.0.0.1:7000
  pleach join 127.0.0.1:7000
  pleach join --expect 3 --listen db1:7000 db1:7000 db2:7000 db3:7000
  pleach join db1:7000 db2:7000 --group orders --id db3 --failure-domain rack-2
  pleach join db1:7000 db2:7000 db3:7000 --observer
  tail -f events.log | pleach join 127.0.0.1:7000 --json`,
		Args: func(_ *cobra.Command, args []string) error { return j.check(args) },
		RunE: func(cmd *cobra.Command, args []string) error { return j.run(cmd, args) },
	}
	j.addFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&j.create, "create", false, "create a group, unless one is found at the addresses")
	f.IntVar(&j.expect, "expect", 0, "begin a group with this `number` of processes, started alike, if there is none yet")
	f.StringVar(&j.listen, "listen", "", "`host:port` that this member listens on (default a free port)")
	f.StringVar(&j.advertise, "advertise", "", "`host:port` that other members dial (default that of --listen)")
	f.StringVar(&j.id, "id", "",
		"`name` of this member across restarts: a member that rejoins with it gets its old rank if that is free (default its address)")
	f.BoolVar(&j.replace, "replace", false,
		"take the place of a live member with the same --id, which ends; a member that is gone is replaced in any case")
	f.BoolVar(&j.observer, "observer", false,
		"be a member that does not count for the quorum, so that any number of them may fail at once")
	f.StringVar(&j.dataDir, "data-dir", "",
		"`directory` in which this member keeps its vote, so that it counts again after a restart")
	f.StringVar(&j.domain, "failure-domain", "", "failure `domain` of this member, such as its rack or zone")
	// The names of these flags before 0.2.
	for old, name := range map[string]string{
		"found": "create", "address": "listen", "identity": "id",
		"domain": "failure-domain",
	} {
		alias := *f.Lookup(name)
		alias.Name, alias.Hidden = old, true
		f.AddFlag(&alias)
	}
	f.BoolVarP(&j.verbose, "verbose", "v", false, "log what this member does and waits for to the standard error")
	f.BoolVar(&j.json, "json", false, "print JSON, an object on each line")
	return cmd
}

func (j *joinCommand) check(args []string) error {
	switch {
	case j.create && j.replace:
		return errors.New("--create creates a group, and --replace takes a member's place in one: choose")
	case j.create && j.expect != 0:
		return errors.New("--create creates a group at once, and --expect begins one together with others: choose")
	case j.create && j.observer:
		return errors.New("--create creates a group, and --observer joins one that voters have begun: choose")
	case j.expect < 0:
		return fmt.Errorf("--expect %d: write how many processes begin the group", j.expect)
	case !j.create && len(args) == 0 && j.expect == 0:
		return errors.New("write a member's address, as in pleach join 127.0.0.1:7000, or --create to create a group")
	case j.listen != "":
		args = append([]string{j.listen}, args...)
	}
	for _, address := range args {
		if err := checkAddress(address); err != nil {
			return err
		}
	}
	return nil
}

func (j *joinCommand) run(cmd *cobra.Command, seeds []string) error {
	c, err := j.config()
	if err != nil {
		return err
	}
	c.Listen, c.Advertise, c.ID, c.FailureDomain, c.Recovery.Replace = j.listen, j.advertise, j.id, j.domain, j.replace
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	c.Expect, c.Observer, c.Recovery.DataDir = j.expect, j.observer, j.dataDir
	if j.verbose {
		c.Logger = newLogger(cmd.ErrOrStderr())
	}
	timed, cancel := context.WithTimeout(ctx, joinTimeout)
	if j.expect > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"pleach: looking for the group, or for %d processes to begin it (--verbose says more)\n", j.expect)
		timed = ctx // the others may be started much later
	}
	group, err := j.begin(timed, c, seeds)
	cancel()
	switch {
	case err != nil && ctx.Err() != nil:
		return cli.Interruption("interrupted before this process became a member: " + cli.ShellText(err))
	case err != nil:
		return noAnswer(err, c.Group)
	}
	defer group.Close()
	t := &session{group: group, flags: j.arguments(), out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), json: j.json}
	return t.run(ctx, cmd.InOrStdin())
}

// begin creates a group or joins one.
func (j *joinCommand) begin(ctx context.Context, c pleach.Config, seeds []string) (*pleach.Group, error) {
	if j.create {
		return pleach.Create(ctx, c, seeds...)
	}
	return pleach.Join(ctx, c, seeds...)
}

// session connects the standard streams with the group.
type session struct {
	group *pleach.Group
	flags string // with which others join
	json  bool

	mu          sync.Mutex // one line at a time
	out, errOut io.Writer
}

// run copies messages both ways until ctx ends, and then leaves.
func (t *session) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { t.views(ctx, cancel) })
	listening.Go(func() { t.messages(ctx, cancel) })
	go t.speak(ctx, in) // it may wait for a line for ever
	listening.Wait()
	if err := t.group.Err(); errors.Is(err, pleach.ErrReplaced) {
		return cli.Failure(errors.New(cli.ShellText(err)))
	} else if err != nil {
		return cli.Failure(fmt.Errorf("%s: start pleach join again", cli.ShellText(err)))
	}
	timed, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer done()
	if err := t.group.Leave(timed); err != nil {
		return cli.Failure(fmt.Errorf("%s: the others will find that this member is gone", cli.ShellText(err)))
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return cli.Failure(err) // the reader is gone
	}
	return cli.Failure(t.print(map[string]any{"event": "left"}, "left the group"))
}

// views prints them. When they end, so does everything.
func (t *session) views(ctx context.Context, cancel context.CancelCauseFunc) {
	var last pleach.View
	for view := range t.group.Views(ctx) {
		text := viewChange(last, view) // or that the quorum is lost, or regained
		if last.Number == 0 {
			text = t.welcome(view)
		}
		last = view
		event := struct {
			Event string `json:"event"`
			Rank  int    `json:"rank"`
			viewJSON
		}{"view", t.group.Rank(), newViewJSON(view)}
		if err := t.print(event, text); err != nil {
			cancel(err)
		}
	}
	cancel(nil)
}

// welcome says which member this is, and how others join.
func (t *session) welcome(view pleach.View) string {
	text := fmt.Sprintf("%s; this is rank %d", viewTitle(view), t.group.Rank())
	for _, m := range view.Members() {
		if m.Rank == t.group.Rank() {
			text += fmt.Sprintf(", others join it by: pleach join %s%s", m.Address, t.flags)
		}
	}
	return text
}

// messages prints them.
func (t *session) messages(ctx context.Context, cancel context.CancelCauseFunc) {
	for m, err := range t.group.Messages(ctx) {
		if err != nil {
			t.complain("lost", err)
			continue
		}
		event := struct {
			Event string `json:"event"`
			Root  int    `json:"root"`
			View  uint64 `json:"view"`
			Text  string `json:"text"`
		}{"message", m.From, m.View, string(m.Data)}
		if err := t.print(event, fmt.Sprintf("[%d] %s", m.From, cli.Printable(string(m.Data)))); err != nil {
			cancel(err)
		}
	}
}

// maxLine bounds a line that is broadcast. A longer one ends the input.
const maxLine = 1 << 20

// speak broadcasts the lines of the input.
func (t *session) speak(ctx context.Context, in io.Reader) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if err := t.group.Broadcast(ctx, lines.Bytes()); err != nil && ctx.Err() == nil {
			t.complain("not sent", err)
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		t.complain("no more of the input is read", err)
	}
}

// print prints a line.
func (t *session) print(event any, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		return json.NewEncoder(t.out).Encode(event)
	}
	_, err := fmt.Fprintln(t.out, text)
	return err
}

func (t *session) complain(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.errOut, "pleach: %s: %v\n", what, err)
}
