package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/sql/internal/tables"
)

// importCommand makes tables of files.
type importCommand struct {
	config tables.Config
	json   bool
}

func newImport() *cobra.Command {
	var i importCommand
	cmd := &cobra.Command{
		Use:   "import [flags] --out DIR TABLE=FILES...",
		Short: "Make tables of CSV and Parquet files, in parts and in several places",
		Long: `Divide the rows of files into the parts of tables, which the processes of a job read each for
itself. Files are one or more with the same columns, CSV or Parquet by the end of the name
(.csv, .tsv, .csv.gz, .parquet); * stands for any characters. Types of CSV columns are found out
from all of the rows.

Each replica is a directory with all files: move it to another disk, or link it from there. A job
reads a part from any place that has it.`,
		Example: `  pleach-sql import --parts 8 --out shop sales=sales.csv
  pleach-sql import --parts 8 --replicas 2 --out shop sales='2026-*.csv.gz' items=items.parquet`,
		Args: func(_ *cobra.Command, args []string) error { return i.validate(args) },
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	f := cmd.Flags()
	f.IntVar(&i.config.Parts, "parts", 8, "`number` of parts: at least that of processes that read them")
	f.IntVar(&i.config.Replicas, "replicas", 1, "`number` of places that have each part")
	f.StringVar(&i.config.Dir, "out", "", "`directory` for the tables, new or empty")
	f.BoolVar(&i.json, "json", false, "print JSON")
	return cmd
}

func (i *importCommand) validate(args []string) error {
	i.config.Files = make(map[string]string)
	for _, a := range args {
		table, files, ok := strings.Cut(a, "=")
		if !ok || table == "" || files == "" {
			return fmt.Errorf("%s: write TABLE=FILES, such as sales=sales.csv", a)
		}
		i.config.Files[table] = files
	}
	switch c := &i.config; {
	case len(args) == 0:
		return errors.New("no tables: write TABLE=FILES, such as sales=sales.csv")
	case c.Dir == "":
		return errors.New("no output: write --out and a directory")
	case c.Parts < 1 || c.Parts > maxParts:
		return fmt.Errorf("--parts %d: choose a number between 1 and %d", c.Parts, maxParts)
	case c.Replicas < 1 || c.Replicas > maxReplicas:
		return fmt.Errorf("--replicas %d: choose a number between 1 and %d", c.Replicas, maxReplicas)
	}
	return nil
}

func (i *importCommand) run(cmd *cobra.Command) error {
	bar := newProgress(cmd.ErrOrStderr(), "parts", len(i.config.Files)*i.config.Parts)
	i.config.Progress = bar.update
	rows, err := tables.Import(cmd.Context(), i.config)
	bar.stop()
	if err != nil {
		return failure{err}
	}
	if i.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Out   string           `json:"out"`
			Parts int              `json:"parts"`
			Rows  map[string]int64 `json:"rows"` // by table
		}{i.config.Dir, i.config.Parts, rows})
	}
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d rows in %d parts\n", table, rows[table],
			i.config.Parts); err != nil {
			return err
		}
	}
	return nil
}
