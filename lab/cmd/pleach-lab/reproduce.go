package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/experiments/reproduce"
)

// reproduceCommand does the papers' evaluations again.
type reproduceCommand struct {
	out                      string
	list, quick, force, json bool
}

func newReproduce() *cobra.Command {
	var r reproduceCommand
	cmd := &cobra.Command{
		Use:   "reproduce [NAME...]",
		Short: "Repeat the figures and tables of the papers, and compare the numbers",
		Long: `Repeat the evaluations of the papers behind Pleach. Every figure and table is an
experiment with a name and a seed (--list). Without names, all experiments are run.

The directory of --out gets
  report.html   one page that needs no network: the numbers that the papers state
                next to those measured here, and the pictures
  claims.json   the same claims for programs
  *.csv         the measurements
  *.svg, *.png  the pictures

Measurements of the same version that are in the directory are not repeated: an
interrupted reproduction continues, and the report covers everything in the directory.
--force repeats the experiments that are named.

--quick is enough for most claims and takes two or three minutes on two cores. Without
it there are as many runs as fit half an hour, and two million for Table 1 of Corrected
Trees as in the paper. A claim agrees, differs (then the report says why), or cannot be
shown with so few runs.`,
		Example: `  pleach-lab reproduce --list
  pleach-lab reproduce --quick --out reproduction
  pleach-lab reproduce ct-table-1 ct-figure-8 --out reproduction
  pleach-lab reproduce --quick --json`,
		RunE: func(cmd *cobra.Command, names []string) error { return r.run(cmd, names) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return reproduceNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.out, "out", "reproduction", "`directory` for everything")
	f.BoolVar(&r.list, "list", false, "list the experiments and do nothing")
	f.BoolVar(&r.quick, "quick", false, "do fewer runs")
	f.BoolVar(&r.force, "force", false, "repeat existing measurements")
	f.BoolVar(&r.json, "json", false, "print the claims as JSON")
	return cmd
}

func reproduceNames() (names []string) {
	for _, e := range reproduce.Catalog() {
		names = append(names, e.Name)
	}
	return names
}

func (r *reproduceCommand) run(cmd *cobra.Command, names []string) error {
	experiments, err := chooseExperiments(names)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if r.list {
		return listExperiments(out, experiments)
	}
	size := reproduce.Full
	if r.quick {
		size = reproduce.Quick
	}
	bar := newShareProgress(cmd.ErrOrStderr())
	bar.lines = cmd.ErrOrStderr()
	session := reproduce.Session{
		Dir: r.out, Version: cli.Version(), Force: r.force, Now: bar.update,
		Options: reproduce.Options{
			Size: size, Member: workerCommand("broadcast"), Survivor: workerCommand("stabilization"),
			Task: workerCommand("task"),
		},
	}
	outcome, err := session.Run(cmd.Context(), experiments)
	bar.stop()
	if err != nil {
		return cli.Failure(err)
	}
	if err := r.write(out, outcome); err != nil {
		return cli.Failure(err)
	}
	if cmd.Context().Err() != nil {
		return reproduceInterrupted(outcome.Done, outcome.Left)
	}
	return nil
}

// chooseExperiments finds those that are named, or all.
func chooseExperiments(names []string) ([]reproduce.Experiment, error) {
	all := reproduce.Catalog()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(e reproduce.Experiment) bool { return e.Name == name }) {
			return nil, fmt.Errorf("experiment %q is unknown: choose some of those that pleach-lab reproduce --list shows", name)
		}
	}
	return slices.DeleteFunc(all, func(e reproduce.Experiment) bool { return !slices.Contains(names, e.Name) }), nil
}

func listExperiments(w io.Writer, experiments []reproduce.Experiment) error {
	var b strings.Builder
	for _, e := range experiments {
		fmt.Fprintf(&b, "%-17s %-35s %s\n", e.Name, e.Paper, e.Title)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return cli.Failure(err)
	}
	return nil
}

// write says how it went: in short, and what differs in full.
func (r *reproduceCommand) write(w io.Writer, o *reproduce.Outcome) error {
	if r.json {
		return reproduce.WriteClaims(w, o.Claims)
	}
	var b strings.Builder
	count := func(v reproduce.Verdict) int { return reproduce.Count(o.Claims, v) }
	fmt.Fprintf(&b, "%d claims: %d agree, %d differ, %d could not be shown\n", len(o.Claims)-count(reproduce.Answered),
		count(reproduce.Agrees), count(reproduce.Differs), count(reproduce.NotShown))
	if answers := count(reproduce.Answered); answers > 0 {
		fmt.Fprintf(&b, "%d answers to what the papers leave open: see the report\n", answers)
	}
	for _, c := range o.Claims {
		if c.Verdict == reproduce.Agrees || c.Verdict == reproduce.Answered {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s\n  stated %s, measured %s (%s)\n", c.Verdict, c.Claim, c.Stated, c.Measured, c.Experiment)
		if c.Note != "" {
			fmt.Fprintf(&b, "  %s\n", c.Note)
		}
	}
	fmt.Fprintf(&b, "\nreport: %s\n", o.Report)
	_, err := io.WriteString(w, b.String())
	return err
}

// reproduceInterrupted says what is done, and what is left.
func reproduceInterrupted(done, left []string) error {
	text := "nothing is done"
	if len(done) > 0 {
		text = "done: " + strings.Join(done, ", ")
	}
	return cli.Interruption(fmt.Sprintf("interrupted; %s; the same command continues with: %s", text,
		strings.Join(left, ", ")))
}
