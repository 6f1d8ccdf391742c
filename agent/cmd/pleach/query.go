package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/cli"
)

// queryCommand asks all members through an agent.
type queryCommand struct {
	agentFlags
	input inputFlags
	fleet bool
}

func newQuery() *cobra.Command {
	var q queryCommand
	cmd := &cobra.Command{
		Use:   "query NAME [INPUT|-]",
		Short: "Ask all members of a group, and show which have not answered",
		Long: `Ask every member, through the agent of this host, and print the answers in order of
rank. Every agent answers ping. Other queries are answered by commands that the operators
of the agents have put into their files (see pleach agent); an argument, a file (--file),
or - for the standard input, is their input.

A member that is stopped or dead is named as soon as the group has agreed that it is gone,
or when --timeout is over. The exit code is 1 then. It is 1, too, if no member has a
handler for the query. With --fleet, all members of all zones are asked.`,
		Example: `  pleach query ping
  pleach query ping --fleet
  pleach query load --json | jq '.answers[].data'
  pleach query routes 10.0.0.0/8 --timeout 2s`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return errors.New("write the name of a query, as in pleach query ping")
			}
			return q.input.check(args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return q.run(cmd, args) },
	}
	q.addFlags(cmd)
	q.input.addFlags(cmd)
	q.addTimeout(cmd, 10*time.Second)
	cmd.Flags().BoolVar(&q.fleet, "fleet", false, "ask all members of all zones")
	return cmd
}

func (q *queryCommand) run(cmd *cobra.Command, args []string) error {
	agent, err := q.started(cmd, true, q.timeout)
	if err != nil {
		return err
	}
	var input []byte
	if len(args) > 1 || q.input.file != "" {
		input, err = q.input.read(cmd, args[1:])
		if err != nil {
			return err
		}
	}
	answers, err := agent.Query(cmd.Context(), args[0], input, q.fleet, q.timeout)
	if err != nil {
		return refused(err)
	}
	if err := q.write(cmd.OutOrStdout(), &answers); err != nil {
		return cli.Failure(err)
	}
	return cli.Failure(failedAnswers(&answers))
}

// failedAnswers says what is missing in the answers to a query, if anything. That some members
// have no handler is not: they may have another role.
func failedAnswers(a *api.Answers) error {
	silent, all := len(a.Unanswered), len(a.Unanswered)+len(a.Answers)
	switch {
	case len(a.UnansweredZones) > 0:
		return fmt.Errorf("%s did not answer", cli.Count(len(a.UnansweredZones), "zone"))
	case silent > 0:
		return fmt.Errorf("%d of %s did not answer", silent, cli.Count(all, "member"))
	case errorsIn(a) == all:
		return fmt.Errorf("no member has an answer to %q: handlers of queries are in the agents' files", a.Name)
	}
	return nil
}

// errorsIn counts the members whose answer is an error.
func errorsIn(a *api.Answers) (n int) {
	for i := range a.Answers {
		if a.Answers[i].Error != "" {
			n++
		}
	}
	return n
}

func (q *queryCommand) write(out io.Writer, a *api.Answers) error {
	if q.json {
		return json.NewEncoder(out).Encode(a)
	}
	_, err := io.WriteString(out, answersText(a))
	return err
}

// answersText is a line for each member, those that have not answered last.
func answersText(a *api.Answers) string {
	rows := [][]string{{" rank", "member", "time", "answer"}}
	for _, m := range a.Answers {
		text := cli.Printable(strings.TrimRight(m.Data, "\n"))
		if m.Error != "" {
			text = "error: " + cli.Printable(m.Error)
		}
		rows = append(rows, []string{
			fmt.Sprintf("%5d", m.Rank), zoned(m.Zone, m.ID), fmt.Sprintf("%.1f ms", m.Seconds*1000),
			text,
		})
	}
	for _, m := range a.Unanswered {
		rows = append(rows, []string{
			fmt.Sprintf("%5d", m.Rank), zoned(m.Zone, m.ID),
			"-", "no answer: " + cli.Printable(m.Reason),
		})
	}
	for _, z := range a.UnansweredZones {
		rows = append(rows, []string{"    -", zoned(z.Zone, "*"), "-", "no answer: " + cli.Printable(z.Reason)})
	}
	var b strings.Builder
	failed := errorsIn(a)
	fmt.Fprintf(&b, "view %d: %d of %s answered", a.View, len(a.Answers)-failed,
		cli.Count(len(a.Answers)+len(a.Unanswered), "member"))
	if failed > 0 {
		fmt.Fprintf(&b, ", %d with an error", failed)
	}
	b.WriteString("\n\n")
	writeColumns(&b, rows)
	return b.String()
}

// zoned names a member, with its zone if that is known.
func zoned(zone, id string) string {
	if zone != "" {
		id = zone + "/" + id
	}
	return cli.Printable(id)
}
