// Package program is what the programs of this module share: how they begin and end, and
// their flags.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// Main runs a program until it is done, or a signal ends it.
func Main(name string, run func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// NewFlags returns flags that are explained below a text.
func NewFlags(name, usage string, errOut io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(errOut)
	f.Usage = func() {
		fmt.Fprint(errOut, usage)
		f.PrintDefaults()
	}
	return f
}

// Parse parses arguments, of which all are flags.
func Parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not a flag: see --help", f.Arg(0))
	}
	return nil
}

// Choose returns the systems of a list, each of which has one of the names.
func Choose(list string, names []string) ([]string, error) {
	chosen := strings.Split(list, ",")
	for i, name := range chosen {
		if !slices.Contains(names, name) || slices.Contains(chosen[:i], name) {
			return nil, fmt.Errorf("--systems %s: choose of %s, each once", name, strings.Join(names, ", "))
		}
	}
	return chosen, nil
}
