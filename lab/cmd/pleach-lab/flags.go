package main

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/topology"
)

// layout are the flags that tree and sim share: which tree, over which ranks,
// in which network, and which are dead.
type layout struct {
	shape, order string
	size, root   int64
	l, o         int64
	fail         string
}

// timeLimit is what the network parameters may be at most, so that no sum of
// them overflows.
const timeLimit = 1 << 20

func (y *layout) addFlags(cmd *cobra.Command, size int64) {
	f := cmd.Flags()
	f.StringVar(&y.shape, "shape", "binomial", "the tree's `shape`: binomial, kary:K, lame:K or optimal")
	f.StringVar(&y.order, "order", "interleaved", "how ranks are laid over the tree: interleaved or inorder")
	f.Int64VarP(&y.size, "processes", "P", size, "number `P` of processes")
	f.Int64Var(&y.root, "root", 0, "`rank` that starts the broadcast")
	f.Int64VarP(&y.l, "latency", "L", 2, "latency `L` of the network, in steps")
	f.Int64VarP(&y.o, "overhead", "o", 1, "overhead `o` of a send and of a receive, in steps")
	f.StringVar(&y.fail, "fail", "", "`ranks` that are dead from the start, as in 3,7")
	cli.Complete(cmd, "shape", "binomial", "kary:2", "kary:4", "lame:2", "lame:3", "optimal")
	cli.Complete(cmd, "order", "interleaved", "inorder")
}

// network checks and returns the group's size and root and the LogP parameters.
func (y *layout) network() (size, root protocol.Rank, l, o protocol.Time, err error) {
	switch {
	case y.size < 1 || y.size > logp.MaxSize:
		err = fmt.Errorf("-P %d: choose a number of processes between 1 and %d", y.size, logp.MaxSize)
	case y.root < 0 || y.root >= y.size:
		err = fmt.Errorf("--root %d: choose one of the ranks 0 to %d", y.root, y.size-1)
	case y.l < 0 || y.l > timeLimit:
		err = fmt.Errorf("-L %d: choose a latency between 0 and %d", y.l, timeLimit)
	case y.o < 1 || y.o > timeLimit:
		err = fmt.Errorf("-o %d: choose an overhead between 1 and %d", y.o, timeLimit)
	}
	return protocol.Rank(y.size), protocol.Rank(y.root), protocol.Time(y.l), protocol.Time(y.o), err
}

// form parses the tree's shape and order.
func (y *layout) form() (topology.Shape, topology.Order, error) {
	shape, err := topology.ParseShape(y.shape, protocol.Time(y.l), protocol.Time(y.o))
	if err != nil {
		return shape, 0, cli.FlagError("shape", err)
	}
	order, err := topology.ParseOrder(y.order)
	if err != nil {
		return shape, order, cli.FlagError("order", err)
	}
	return shape, order, nil
}

// failed parses --fail: ranks in ascending order, each once.
func (y *layout) failed() ([]protocol.Rank, error) {
	var ranks []protocol.Rank
	if y.fail == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(y.fail, ",") {
		r, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--fail %s: %q is not a rank: write ranks with commas between them, as in 3,7", y.fail, text)
		case r < 0 || r >= y.size:
			return nil, fmt.Errorf("--fail %s: %d is not one of the ranks 0 to %d", y.fail, r, y.size-1)
		case r == y.root:
			return nil, fmt.Errorf(
				"--fail %s: rank %d is the root, without which there is no broadcast: choose other ranks or another --root",
				y.fail, r)
		}
		ranks = append(ranks, protocol.Rank(r))
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), nil
}

// parseFaults reads --faults: a number of processes, or a percentage of size,
// rounded down as in the papers. Fractions are exact: 0.57% of 10,000 is 57.
func parseFaults(text string, size protocol.Rank) (int, error) {
	number, percent := strings.CutSuffix(text, "%")
	value, ok := new(big.Rat).SetString(number)
	if ok && percent {
		value.Mul(value, big.NewRat(int64(size), 100))
	}
	if !ok || value.Sign() < 0 || !percent && !value.IsInt() {
		return 0, fmt.Errorf("--faults %s: write a number of processes, as in 655, or a share of all, as in 1%%", text)
	}
	floor := new(big.Int).Quo(value.Num(), value.Denom())
	if floor.Cmp(big.NewInt(int64(size))) >= 0 {
		return 0, fmt.Errorf("--faults %s: of %d processes at most %d can be dead, as the root lives", text, size, size-1)
	}
	return int(floor.Int64()), nil
}

// parseAuto reads a time, or auto for the value that means so.
func parseAuto(flag, text string, least, auto protocol.Time) (protocol.Time, error) {
	if text == "auto" {
		return auto, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < int64(least) || n > logp.MaxTime {
		return 0, fmt.Errorf("--%s %s: write auto or a time between %d and %d", flag, text, least, logp.MaxTime)
	}
	return protocol.Time(n), nil
}

// parseNumbers reads a list of numbers with commas between them.
func parseNumbers(flag, list string) (numbers []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %q is not a number: write numbers with commas between them, as in 0,1,3", flag,
				list, text)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// oneOf checks a flag that takes one of a few words.
func oneOf(flag, value string, choices []string) error {
	if slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("--%s %s is unknown: choose %s", flag, value, words(choices))
}

// words writes a list as a sentence has it.
func words(list []string) string {
	last := len(list) - 1
	if last == 0 {
		return list[0]
	}
	return strings.Join(list[:last], ", ") + " or " + list[last]
}
