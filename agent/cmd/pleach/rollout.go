package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/client"
)

// rolloutCommand shows and changes rollouts through an agent.
type rolloutCommand struct{ agentFlags }

func newRollout() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "Rollouts in waves: show, pause, resume, stop and revert them",
		Long: `Show and change rollouts, which pleach send --waves and pleach cp --waves start. All agents keep them: any agent
answers, and the one that a rollout was started at may be dead. The last 16 are kept.`,
		Example: `  pleach send config --file new.json --revert-file old.json --waves 1,10%,100% --gate check-config
  pleach rollout status
  pleach rollout stop k7qm2xab`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRolloutList(), newRolloutStatus(),
		newRolloutChange(api.PauseRollout, "Have no other member begin, until resume",
			"Pause a rollout: members that have not begun do not begin until pleach rollout resume."),
		newRolloutChange(api.ResumeRollout, "Continue a rollout that has paused",
			`Continue a rollout that has paused. The hold of its wave begins again, then all members that have
the message are asked for their gates again. Members that died count no longer.`),
		newRolloutChange(api.StopRollout, "End a rollout",
			"End a rollout. Members that have the message keep it: use pleach rollout revert to take it back."),
		newRolloutChange(api.RevertRollout, "Have all members that got the message get the revert",
			`Have all members that got the message of a rollout get its revert, also after it has ended. A member
that is dead gets it when it is back, as long as the rollout is kept.`))
	return cmd
}

func (r *rolloutCommand) add(cmd *cobra.Command, arguments int,
	ask func(ctx context.Context, agent *client.Client, args []string) (any, func(io.Writer) error, error),
) *cobra.Command {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || len(args) < arguments {
			return fmt.Errorf("write %s", strings.TrimSpace(strings.SplitN(cmd.Example, "\n", 2)[0]))
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		agent, err := r.started(cmd, true, 0)
		if err != nil {
			return err
		}
		object, text, err := ask(cmd.Context(), agent, args)
		if err != nil {
			return refused(err)
		}
		return r.write(cmd.OutOrStdout(), object, text)
	}
	r.addFlags(cmd)
	return cmd
}

// write prints an object as JSON, or its text.
func (r *rolloutCommand) write(w io.Writer, object any, text func(io.Writer) error) error {
	if r.json {
		return r.print(w, object, "")
	}
	return cli.Failure(text(w))
}

func newRolloutList() *cobra.Command {
	var r rolloutCommand
	return r.add(&cobra.Command{
		Use: "list", Short: "List the rollouts that the group keeps", Long: "List the rollouts that the group keeps, oldest first.",
		Example: "  pleach rollout list\n  pleach rollout list --json | jq -r '.rollouts[] | select(.ended | not) | .id'",
	}, 0, func(ctx context.Context, agent *client.Client, _ []string) (any, func(io.Writer) error, error) {
		l, err := agent.Rollouts(ctx)
		return l, func(w io.Writer) error { return writeRollouts(w, l.Rollouts) }, err
	})
}

func newRolloutStatus() *cobra.Command {
	var r rolloutCommand
	return r.add(&cobra.Command{
		Use: "status [ID]", Short: "Show a rollout and its members",
		Long:    "Show a rollout and its members: that of an ID, or the newest one.",
		Example: "  pleach rollout status\n  pleach rollout status k7qm2xab --json",
	}, 0, func(ctx context.Context, agent *client.Client, args []string) (any, func(io.Writer) error, error) {
		o, err := findRollout(ctx, agent, args)
		return o, func(w io.Writer) error { return writeRollout(w, &o) }, err
	})
}

// findRollout returns the rollout of an ID, or the newest one.
func findRollout(ctx context.Context, agent *client.Client, args []string) (o api.Rollout, err error) {
	if len(args) > 0 {
		return agent.Rollout(ctx, args[0])
	}
	l, err := agent.Rollouts(ctx)
	if err == nil && len(l.Rollouts) == 0 {
		err = errors.New("there is no rollout: start one with pleach send --waves")
	}
	if err != nil {
		return o, err
	}
	return l.Rollouts[len(l.Rollouts)-1], nil
}

func newRolloutChange(change api.RolloutChange, short, long string) *cobra.Command {
	var r rolloutCommand
	return r.add(&cobra.Command{
		Use: string(change) + " ID", Short: short, Long: long,
		Example: fmt.Sprintf("  pleach rollout %s k7qm2xab", change),
	}, 1, func(ctx context.Context, agent *client.Client, args []string) (any, func(io.Writer) error, error) {
		o, err := agent.ChangeRollout(ctx, args[0], change)
		return o, func(w io.Writer) error { return cli.Failure(printLine(w, rolloutText(&o))) }, err
	})
}

func printLine(w io.Writer, text string) error {
	_, err := fmt.Fprintln(w, text)
	return err
}

// rolloutText says in a line where a rollout is.
func rolloutText(o *api.Rollout) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", o.ID, cli.Printable(o.Name))
	if o.Paused {
		b.WriteString("paused, ")
	}
	fmt.Fprintf(&b, "%s, wave %d of %d, %d of %s have got it", o.Phase, o.Wave, o.Waves, gotIt(o),
		cli.Count(len(o.Members), "member"))
	if o.Reason != "" {
		b.WriteString(": " + cli.Printable(o.Reason))
	}
	return b.String()
}

// gotIt counts the members that have got the message.
func gotIt(o *api.Rollout) (n int) {
	for _, m := range o.Members {
		if m.Has {
			n++
		}
	}
	return n
}

func writeRollouts(w io.Writer, all []api.Rollout) error {
	for i := range all {
		if err := printLine(w, rolloutText(&all[i])); err != nil {
			return err
		}
	}
	return nil
}

// writeRollout prints a rollout and a line for each member.
func writeRollout(w io.Writer, o *api.Rollout) error {
	if err := printLine(w, rolloutText(o)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "wave\tmember\tdomain\tstate\treason")
	for _, m := range o.Members {
		domain := "-"
		if m.FailureDomain != "" {
			domain = cli.Printable(m.FailureDomain)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", m.Wave, cli.Printable(m.ID), domain, m.State, cli.Printable(m.Reason))
	}
	return table.Flush()
}

// waveFlags are those of a message that is released in waves.
type waveFlags struct {
	waves, gate, revert, revertFile, stopOn string
	hold, step                              time.Duration
	byDomain, pause, detach                 bool
}

func (f *waveFlags) addFlags(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.waves, "waves", "", "release it in waves: how many `members` have it after each, as in 1,10%,50%,100%")
	s.StringVar(&f.gate, "gate", "", "`condition` that each agent with it has to meet after each wave: the name of a query whose handler "+
		"it runs, ready, or a threshold as in 'metric pleach_agent_keys_bytes < 1e6'")
	s.DurationVar(&f.hold, "hold", 0, "how long a wave runs before its gates are asked")
	s.DurationVar(&f.step, "step-timeout", time.Minute, "how long members have to take it, and to answer")
	s.StringVar(&f.stopOn, "stop-on", "gate", "`what` fails the rollout: gate, or death (of any member that may have it, too)")
	s.BoolVar(&f.pause, "pause", false, "pause a rollout that fails, for an operator to decide")
	s.BoolVar(&f.byDomain, "by-domain", false, "waves are of whole failure domains, and count those")
	s.BoolVar(&f.detach, "detach", false, "return when the rollout has begun")
}

// addRevert adds the flags of a message that reverts another one.
func (f *waveFlags) addRevert(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.revert, "revert", "", "`message` to the same topic for members that have got it, if the rollout fails")
	s.StringVar(&f.revertFile, "revert-file", "", "`file` with that message")
	cmd.MarkFlagsMutuallyExclusive("revert", "revert-file")
}

// check refuses flags that have no effect.
func (f *waveFlags) check(cmd *cobra.Command) error {
	if f.stopOn != "gate" && f.stopOn != "death" {
		return fmt.Errorf("--stop-on %s: write gate or death", f.stopOn)
	}
	if f.waves != "" {
		return nil
	}
	for _, name := range []string{
		"gate", "hold", "step-timeout", "revert", "revert-file", "stop-on", "pause", "by-domain", "detach",
	} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is for what is released with --waves", name)
		}
	}
	return nil
}

// rolloutPoll is how often a command asks how far a rollout is.
const rolloutPoll = 200 * time.Millisecond

// startMessage starts a rollout of a message, and waits until it has ended or paused.
func (f *waveFlags) startMessage(cmd *cobra.Command, a *agentFlags, agent *client.Client, topic string,
	data []byte,
) error {
	spec := api.RolloutSpec{Topic: topic, Payload: api.NewPayload(data)}
	if cmd.Flags().Changed("revert") || f.revertFile != "" {
		input := inputFlags{f.revertFile}
		var args []string
		if f.revertFile == "" {
			args = []string{f.revert}
		}
		data, err := input.read(cmd, args)
		if err != nil {
			return err
		}
		p := api.NewPayload(data)
		spec.Revert = &p
	}
	return f.start(cmd, a, agent, &spec)
}

// startFile starts a rollout of a file, and waits until it has ended or paused.
func (f *waveFlags) startFile(cmd *cobra.Command, a *agentFlags, agent *client.Client, file, dir string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > api.MaxRollout {
		return fmt.Errorf("%s is not a file of at most 700 KB: copy a longer one without --waves", file)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return f.start(cmd, a, agent, &api.RolloutSpec{
		File:    &api.RolloutFile{Dir: dir, Name: info.Name(), Mode: uint32(info.Mode().Perm())},
		Payload: api.NewPayload(data),
	})
}

func (f *waveFlags) start(cmd *cobra.Command, a *agentFlags, agent *client.Client, spec *api.RolloutSpec) error {
	spec.Waves, spec.Gate, spec.ByDomain = f.waves, f.gate, f.byDomain
	spec.Hold, spec.Timeout = f.hold.Seconds(), f.step.Seconds()
	spec.StopOnDeath, spec.PauseOnFailure = f.stopOn == "death", f.pause
	o, err := agent.StartRollout(cmd.Context(), spec)
	if err != nil {
		return refused(err)
	}
	return f.follow(cmd, a, agent, &o)
}

// follow waits until a rollout has ended or paused, and prints it. It returns an error if the rollout has
// not passed all waves.
func (f *waveFlags) follow(cmd *cobra.Command, a *agentFlags, agent *client.Client, o *api.Rollout) error {
	shown := ""
	for !f.detach && !o.Ended && !o.Paused {
		if text := rolloutText(o); text != shown && !a.json {
			shown = text
			fmt.Fprintln(cmd.ErrOrStderr(), text)
		}
		select {
		case <-time.After(rolloutPoll):
		case <-cmd.Context().Done():
			return cli.Interruption(fmt.Sprintf("the rollout %s continues: see pleach rollout status %[1]s", o.ID))
		}
		now, err := agent.Rollout(cmd.Context(), o.ID)
		if err != nil && cmd.Context().Err() == nil {
			return cli.Failure(fmt.Errorf("%s; the rollout %s continues: ask another agent for it", cli.ShellText(err), o.ID))
		}
		if err == nil {
			*o = now
		}
	}
	if err := a.print(cmd.OutOrStdout(), o, rolloutText(o)); err != nil {
		return err
	}
	if !f.detach && o.Phase != "done" {
		return cli.Failure(errors.New("the rollout has not reached all members"))
	}
	return nil
}
