package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/lab/draw"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// maxTreeJSON is the largest tree that is written out as JSON.
const maxTreeJSON = 1 << 20

type treeCommand struct {
	layout
	out  string
	json bool
}

func newTree() *cobra.Command {
	var t treeCommand
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Show a broadcast tree, its ring, and the gaps that dead ranks leave",
		Long: `Show a broadcast tree and the ring below it.

Ranks are ● colored, ✗ dead or ○ uncolored: alive, but every path to them leads through
a dead rank. A gap is a run of ranks on the ring that are not colored.`,
		Example: `  pleach-lab tree --shape lame:3 -P 9
  pleach-lab tree --shape binomial -P 64 --fail 1,2
  pleach-lab tree --shape binomial -P 64 --order inorder --fail 32 --out gaps.svg
  pleach-lab tree --shape kary:2 -P 7 --json`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd.OutOrStdout()) },
	}
	t.addFlags(cmd, 16) // fits a screen
	cmd.Flags().StringVar(&t.out, "out", "", "draw an SVG picture into this `file`")
	cmd.Flags().BoolVar(&t.json, "json", false, "write one JSON object")
	return cmd
}

func (t *treeCommand) run(w io.Writer) error {
	size, root, l, o, err := t.network()
	if err != nil {
		return err
	}
	if err := t.checkSize(); err != nil {
		return err
	}
	shape, order, err := t.form()
	if err != nil {
		return err
	}
	failed, err := t.failed()
	if err != nil {
		return err
	}
	tree, err := topology.New(shape, order, size, root)
	if err != nil {
		return cli.FlagError("shape", err)
	}
	c := draw.Color(tree, failed, l, o)
	if t.out != "" {
		title := fmt.Sprintf("%s tree, %s, %d ranks, root %d", shape, order, size, root)
		err := savePicture(t.out, func(w io.Writer) error { return draw.Picture(w, c, title) })
		if err != nil || !t.json {
			return err
		}
	}
	if t.json {
		return t.writeJSON(w, c)
	}
	return cli.Failure(draw.Text(w, c, cli.WantsColor(w)))
}

// checkSize refuses pictures that are too large to read.
func (t *treeCommand) checkSize() error {
	switch {
	case t.out != "" && t.size > draw.MaxPictureSize:
		return fmt.Errorf("-P %d: a picture shows at most %d ranks: choose fewer, or --json instead of --out", t.size,
			draw.MaxPictureSize)
	case t.json && t.size > maxTreeJSON:
		return fmt.Errorf("-P %d: --json writes at most %d ranks: choose fewer, or ask package topology, which needs no list",
			t.size, maxTreeJSON)
	case t.out == "" && !t.json && t.size > draw.MaxTextSize:
		return fmt.Errorf("-P %d: text shows at most %d ranks: choose fewer, or --out FILE.svg or --json", t.size,
			draw.MaxTextSize)
	}
	return nil
}

// treeJSON is what --json writes. What faults do is there only if there are any.
type treeJSON struct {
	Shape      string        `json:"shape"`
	Order      string        `json:"order"`
	Size       protocol.Rank `json:"size"`
	Root       protocol.Rank `json:"root"`
	Children   children      `json:"children"`
	Depth      int           `json:"depth"`
	FinishTime protocol.Time `json:"finish_time"`
	*faultsJSON
}

type faultsJSON struct {
	Failed    []protocol.Rank `json:"failed"`
	Uncolored []protocol.Rank `json:"uncolored"`
	MaxGap    protocol.Rank   `json:"max_gap"`
}

func (t *treeCommand) writeJSON(w io.Writer, c *draw.Coloring) error {
	object := treeJSON{
		Shape: t.shape, Order: t.order, Size: c.Tree.Size(), Root: c.Tree.Root(),
		Children: children{c.Tree}, Depth: c.Depth, FinishTime: c.FinishTime,
	}
	if len(c.Failed) > 0 {
		object.faultsJSON = &faultsJSON{c.Failed, append([]protocol.Rank{}, c.Unreached...), c.MaxGap}
	}
	return cli.Failure(json.NewEncoder(w).Encode(object))
}

// children writes every rank that has any with its children, in order of rank;
// a map would be sorted as text.
type children struct{ topology.Tree }

// MarshalJSON writes an object of arrays by rank.
func (c children) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for r := range c.Size() {
		if _, inner := c.Child(r, 0); !inner {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = strconv.AppendQuote(text, strconv.Itoa(int(r)))
		separator := byte('[')
		text = append(text, ':')
		for child := range topology.Children(c, r) {
			text = strconv.AppendInt(append(text, separator), int64(child), 10)
			separator = ','
		}
		text = append(text, ']')
	}
	return append(text, '}'), nil
}
