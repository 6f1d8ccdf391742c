package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/internal/agent/api"
	"github.com/pleach-go/pleach/internal/cli"
)

// queryCommand asks all members through an agent.
type queryCommand struct{ agentFlags }

func newQuery() *cobra.Command {
	var q queryCommand
	cmd := &cobra.Command{
		Use:   "query NAME [FILE|-]",
		Short: "Ask all members of a group, and show which have not answered",
		Long: `Ask every member, through the agent of this host, and print the answers in order of
rank. Every agent answers ping. Other queries are answered by commands that the operators
of the agents have put into their files (see pleach agent); a file, or - for the standard
input, is their input.

A member that is stopped or dead is named as soon as the group has agreed that it is gone,
or when --timeout is over. The exit code is 1 then.`,
		Example: `  pleach query ping
  pleach query load --json | jq '.answers[].data'
  echo 10.0.0.0/8 | pleach query routes - --timeout 2s`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return errors.New("write the name of a query, as in pleach query ping")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return q.run(cmd, args) },
	}
	q.addFlags(cmd)
	q.addTimeout(cmd, 10*time.Second)
	return cmd
}

func (q *queryCommand) run(cmd *cobra.Command, args []string) error {
	agent, err := q.client()
	if err != nil {
		return err
	}
	var input []byte
	if len(args) > 1 {
		if input, err = readInput(cmd, args[1]); err != nil {
			return err
		}
	}
	answers, err := agent.Query(cmd.Context(), args[0], input, q.timeout)
	if err != nil {
		return refused(err)
	}
	if err := q.write(cmd.OutOrStdout(), &answers); err != nil {
		return cli.Failure(err)
	}
	if n := len(answers.Unanswered); n > 0 {
		return cli.Failure(fmt.Errorf("%d of %d members did not answer", n, n+len(answers.Answers)))
	}
	return nil
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
		rows = append(rows, []string{fmt.Sprintf("%5d", m.Rank), cli.Printable(m.ID), fmt.Sprintf("%.1f ms", m.Seconds*1000), text})
	}
	for _, m := range a.Unanswered {
		rows = append(rows, []string{fmt.Sprintf("%5d", m.Rank), cli.Printable(m.ID), "-", "no answer: " + cli.Printable(m.Reason)})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "view %d: %d of %s answered\n\n", a.View, len(a.Answers), cli.Count(len(a.Answers)+len(a.Unanswered), "member"))
	writeColumns(&b, rows)
	return b.String()
}
