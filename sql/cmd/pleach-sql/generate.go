package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/sql/internal/tpchdata"
)

// generateCommand writes TPC-H data.
type generateCommand struct {
	config tpchdata.Config
	json   bool
}

func newGenerate() *cobra.Command {
	var g generateCommand
	cmd := &cobra.Command{
		Use:   "generate [flags] --out DIR",
		Short: "Write TPC-H data as Parquet files, in parts and in several places",
		Long: `Write the tables of TPC-H as Parquet files, each in parts, without columns of comments. Each replica is a directory with all files: move it to another disk, or link it from there.
A job reads a part from any place that has it.

Measurements with this data are not TPC-H results.`,
		Example: `  pleach-sql generate --sf 1 --parts 8 --replicas 2 --out tpch1`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.run(cmd) },
	}
	f := cmd.Flags()
	f.Float64Var(&g.config.Scale, "sf", 1, "scale `factor`: 1 is 1.5 million orders, 6 million lineitems")
	f.IntVar(&g.config.Parts, "parts", 8, "`number` of parts: at least that of processes that read them")
	f.IntVar(&g.config.Replicas, "replicas", 1, "`number` of places that have each part")
	f.StringVar(&g.config.Dir, "out", "", "`directory` for the files, new or empty")
	f.BoolVar(&g.json, "json", false, "print JSON")
	return cmd
}

// Limits of what is asked for: more is a typing error.
const (
	maxParts    = 4096
	maxReplicas = 16
)

func (g *generateCommand) run(cmd *cobra.Command) error {
	switch c := &g.config; {
	case c.Dir == "":
		return errors.New("no output: write --out and a directory")
	case c.Parts < 1 || c.Parts > maxParts:
		return fmt.Errorf("--parts %d: choose a number between 1 and %d", c.Parts, maxParts)
	case c.Replicas < 1 || c.Replicas > maxReplicas:
		return fmt.Errorf("--replicas %d: choose a number between 1 and %d", c.Replicas, maxReplicas)
	}
	began := time.Now()
	bar := newProgress(cmd.ErrOrStderr(), "parts", g.config.Parts)
	g.config.Progress = bar.update
	data, err := tpchdata.Generate(cmd.Context(), g.config)
	bar.stop()
	if err != nil {
		return failure{err}
	}
	bytes := int64(0)
	for _, sizes := range data.Files {
		for _, size := range sizes {
			bytes += size
		}
	}
	seconds := time.Since(began).Seconds()
	if g.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
			Out      string  `json:"out"`
			Scale    float64 `json:"scale"`
			Parts    int     `json:"parts"`
			Replicas int     `json:"replicas"`
			Bytes    int64   `json:"bytes"` // of one replica
			Seconds  float64 `json:"seconds"`
		}{g.config.Dir, data.Scale, data.Parts, len(data.Places), bytes, seconds})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: scale factor %v in %d parts, %d bytes in each of %d places; %.1f s\n",
		g.config.Dir, data.Scale, data.Parts, bytes, len(data.Places), seconds)
	return err
}
