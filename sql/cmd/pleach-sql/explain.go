package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/sql"
)

// explainCommand shows the plan of a query.
type explainCommand struct {
	question
	processes int
	json      bool
}

func newExplain() *cobra.Command {
	var e explainCommand
	cmd := &cobra.Command{
		Use:   "explain [flags] [SELECT]",
		Short: "Show the plan of a query: its stages, and the rows sent between them",
		Long: `Show the plan that run makes of a query, as text that run --file reads from a file that ends
with .plan. In each stage every process runs the query on its rows, and the line with => says
where the result goes: to all processes, to the process of a key, or to the result.`,
		Example: `  pleach-sql explain --data tpch1 -n 8 'SELECT o_orderpriority, count(*) FROM orders GROUP BY 1'
  pleach-sql explain --data tpch1 -n 8 --query q3 > mine.plan`,
		Args: func(_ *cobra.Command, args []string) error { return e.validate(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
	}
	e.flags(cmd)
	cmd.Flags().IntVarP(&e.processes, "processes", "n", 4, "number `N` of processes that the plan is for")
	cmd.Flags().BoolVar(&e.json, "json", false, "print JSON")
	return cmd
}

func (e *explainCommand) run(cmd *cobra.Command) error {
	if e.processes < 1 || e.processes > maxMembers {
		return fmt.Errorf("-n %d: choose a number between 1 and %d", e.processes, maxMembers)
	}
	scratch, err := os.MkdirTemp("", "pleach-sql-")
	if err != nil {
		return failure{err}
	}
	defer os.RemoveAll(scratch)
	job, _, err := e.job(scratch)
	if err != nil {
		return err
	}
	plan := job.Plan
	if plan == nil {
		plan, err = sql.NewPlan(cmd.Context(), job.Query, job.Source, e.processes, "")
		if err != nil {
			return failure{err}
		}
	}
	if !e.json {
		_, err := fmt.Fprint(cmd.OutOrStdout(), plan)
		return err
	}
	type stage struct {
		Phase string `json:"phase"`
		Query string `json:"query"`
		To    string `json:"to"`
	}
	stages := []stage{}
	for _, s := range plan.Stages {
		stages = append(stages, stage{s.Name, s.Query, s.To.String()})
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
		Stages []stage `json:"stages"`
	}{stages})
}
