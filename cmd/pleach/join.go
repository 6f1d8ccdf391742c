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
	address, identity, domain string
	found, json               bool
}

func newJoin() *cobra.Command {
	var j joinCommand
	cmd := &cobra.Command{
		Use:   "join ADDRESS...",
		Short: "Become a member of a group, and talk to it",
		Long: `Become a member of the group that the members at these addresses are in, of which
one that is alive will do; or, with --found, begin a group that others join.

Each line of the standard input is broadcast to all other members. What they
broadcast is printed with their rank before it, and views as they change. When the
input ends, the process goes on as a member; Ctrl-C and SIGTERM make it leave, so
that the others know at once. A second Ctrl-C does not wait for them.`,
		Example: `  pleach join --found --address 127.0.0.1:7000
  pleach join 127.0.0.1:7000
  pleach join db1:7000 db2:7000 --group orders --identity db3 --domain rack-2
  tail -f events.log | pleach join 127.0.0.1:7000 --json`,
		Args: func(_ *cobra.Command, args []string) error { return j.check(args) },
		RunE: func(cmd *cobra.Command, args []string) error { return j.run(cmd, args) },
	}
	j.addFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&j.found, "found", false, "begin a group")
	f.StringVar(&j.address, "address", "", "`host:port` where this member listens (default a free port)")
	f.StringVar(&j.identity, "identity", "", "who this member is: who comes back gets its old rank (default its address)")
	f.StringVar(&j.domain, "domain", "", "what this member fails with, as a rack or a zone")
	f.BoolVar(&j.json, "json", false, "print JSON, an object on each line")
	return cmd
}

func (j *joinCommand) check(args []string) error {
	switch {
	case j.found && len(args) > 0:
		return fmt.Errorf("--found begins a group, and %s is to join one: choose", args[0])
	case !j.found && len(args) == 0:
		return errors.New("write a member's address, as in pleach join 127.0.0.1:7000, or --found to begin a group")
	case j.address != "":
		args = append([]string{j.address}, args...)
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
	c.Seeds, c.Found, c.Address, c.Identity, c.Domain = seeds, j.found, j.address, j.identity, j.domain
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	timed, cancel := context.WithTimeout(ctx, joinTimeout)
	group, err := pleach.Join(timed, c)
	cancel()
	switch {
	case err != nil && ctx.Err() != nil:
		return joinInterruption{}
	case err != nil:
		return nobodyAnswers(err, c.Group)
	}
	defer group.Close()
	t := &talk{group: group, name: c.Group, out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), json: j.json}
	return t.run(ctx, cmd.InOrStdin())
}

// talk is what goes on between the shell and the group.
type talk struct {
	group *pleach.Group
	name  string
	json  bool

	mu          sync.Mutex // one line at a time
	out, errOut io.Writer
}

// run talks until ctx ends, and then leaves.
func (t *talk) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	listening.Go(func() { t.views(ctx, cancel) })
	listening.Go(func() { t.messages(ctx, cancel) })
	go t.speak(ctx, in) // it may wait for a line for ever
	listening.Wait()
	if err := t.group.Err(); err != nil {
		return failure{fmt.Errorf("%s: start pleach join again", withoutPackage(err))}
	}
	timed, done := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer done()
	if err := t.group.Leave(timed); err != nil {
		return failure{fmt.Errorf("%s: the others will find that this member is gone", withoutPackage(err))}
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return failure{err} // nobody reads any more
	}
	if err := t.print(map[string]any{"event": "left"}, "left the group"); err != nil {
		return failure{err}
	}
	return nil
}

// views prints them. When they end, so does everything.
func (t *talk) views(ctx context.Context, cancel context.CancelCauseFunc) {
	var last pleach.View
	for view := range t.group.Views(ctx) {
		text := viewChange(last, view)
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

// welcome says who this is, and how others get here.
func (t *talk) welcome(view pleach.View) string {
	text := fmt.Sprintf("%s; this is rank %d", viewTitle(view), t.group.Rank())
	for _, m := range view.Members {
		if m.Rank == t.group.Rank() {
			text += fmt.Sprintf(", others join it by: pleach join %s", m.Address)
		}
	}
	if t.name != "" {
		text += " --group " + t.name
	}
	return text
}

// messages prints them.
func (t *talk) messages(ctx context.Context, cancel context.CancelCauseFunc) {
	for m := range t.group.Messages(ctx) {
		if m.Lost > 0 {
			t.complain("lost", fmt.Errorf("%d pieces of messages of rank %d", m.Lost, m.Root))
			continue
		}
		event := struct {
			Event string `json:"event"`
			Root  int    `json:"root"`
			View  uint64 `json:"view"`
			Text  string `json:"text"`
		}{"message", m.Root, m.View, string(m.Data)}
		if err := t.print(event, fmt.Sprintf("[%d] %s", m.Root, printable(string(m.Data)))); err != nil {
			cancel(err)
		}
	}
}

// speak broadcasts the lines of the input.
func (t *talk) speak(ctx context.Context, in io.Reader) {
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
func (t *talk) print(event any, text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		return json.NewEncoder(t.out).Encode(event)
	}
	_, err := fmt.Fprintln(t.out, text)
	return err
}

func (t *talk) complain(what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.errOut, "pleach: %s: %v\n", what, err)
}

// joinInterruption is Ctrl-C before this process has become a member.
type joinInterruption struct{}

func (joinInterruption) Error() string { return "interrupted before the others let this process in" }

// Unwrap makes the exit code that of an interruption.
func (joinInterruption) Unwrap() error { return interruption{} }
