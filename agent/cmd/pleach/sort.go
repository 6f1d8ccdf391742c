package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/samplesort"
	"github.com/pleach-go/pleach/transport/mem"
)

// sortCommand is one process of a job that sorts.
type sortCommand struct {
	generate           int
	output             string
	lines, check, json bool
	keys               []string
	separator          string
	order              samplesort.Order
}

// maxGenerated keeps the bytes of generated records, times the processes, within an int.
const maxGenerated = math.MaxInt / 100 / maxProcesses

func newSort() *cobra.Command {
	var s sortCommand
	cmd := &cobra.Command{
		Use:   "sort [flags] --output DIR [FILE... | -]",
		Short: "Sort records with all processes of a job, even when some die",
		Long: `Sort records of 100 bytes by their first ten, as in the sort benchmark, or lines, with
all processes that a launcher has started: pleach run, Slurm, mpirun and so on. Without a
launcher, one process sorts alone. All processes read the files and write to the
directory, so several hosts need a shared file system. The file - is the standard input of
rank 0, which is written to a file in the directory first.

Lines are sorted by their bytes (LC_ALL=C), or by keys: --key 2 is from field 2 to the end of
the line, --key 2,3 is fields 2 and 3. A key may end with n to compare numbers and with r to
reverse it, as in --key 3,3nr; --numeric and --reverse are for keys with neither. Lines with
equal first keys are sorted by the second --key, and so on. Lines with the same keys stay in
order, as with sort -s.

The output is a file for each process, part-00000 and so on: in this order they are
sorted. The file _SUCCESS is written last. When processes die, the others sort their
records, and the output is the same.

A process prints a line when it begins a phase, as in "phase sort", to standard error:
sample, exchange, sort, write. One process prints the result to standard output. In it,
equal says that the output has the records of the input, by their number and the sum of
their CRC-32.

--check reads the output afterwards: whether it is sorted, and has the records that
_SUCCESS tells of. Without input, that is all it does.

The exit code is 1 if the output is not equal to the input or not sorted.`,
		Example: `  pleach run -n 8 pleach sort --generate 2000000 --output sorted
  pleach run -n 8 --kill 3@500ms pleach sort --generate 2000000 --output sorted --json
  pleach run -n 4 pleach sort --lines --output sorted access.log error.log
  zcat access.log.gz | pleach run -n 4 --stdin pleach sort --lines --key 4,4 --reverse --output sorted -
  pleach run -n 4 pleach sort --lines --separator , --key 2,2 --unique --output sorted items.csv
  pleach run -n 4 pleach sort --lines --key 2,2 --key 3,3nr --output sorted sales.txt
  pleach sort --check --output sorted`,
		Args: func(_ *cobra.Command, files []string) error { return s.validate(files) },
		RunE: func(cmd *cobra.Command, files []string) error { return s.run(cmd, files) },
	}
	f := cmd.Flags()
	f.IntVar(&s.generate, "generate", 0, "sort `N` generated records, those of gensort, instead of files")
	f.StringVar(&s.output, "output", "", "`directory` for the output, new or empty")
	f.BoolVar(&s.lines, "lines", false, "sort lines by their bytes, not records of 100 bytes")
	f.StringArrayVarP(&s.keys, "key", "k", nil,
		"sort lines by `FIELD` to the end of the line, or FIELD,LAST, then n, r; repeatable")
	f.StringVarP(&s.separator, "separator", "t", "", "`character` between fields (default: blanks)")
	f.BoolVarP(&s.order.Numeric, "numeric", "n", false, "compare the numbers at the beginning of keys")
	f.BoolVarP(&s.order.Reverse, "reverse", "r", false, "sort lines from the greatest to the least")
	f.BoolVarP(&s.order.Unique, "unique", "u", false, "keep the first of lines with the same key")
	f.BoolVar(&s.check, "check", false, "read the output and check that it is sorted and complete")
	f.BoolVar(&s.json, "json", false, "print the result as a JSON object, on one line")
	return cmd
}

func (s *sortCommand) validate(files []string) error {
	switch {
	case s.output == "":
		return errors.New("no output: write --output and a directory")
	case s.generate < 0 || s.generate > maxGenerated:
		return fmt.Errorf("--generate %d: choose a number of records between 1 and %d", s.generate, maxGenerated)
	case s.generate > 0 && len(files) > 0:
		return errors.New("choose either --generate or files")
	case s.generate > 0 && s.lines:
		return errors.New("--generate generates records, not lines: leave one of the flags out")
	case s.generate == 0 && len(files) == 0 && !s.check:
		return errors.New("no input: write names of files, - for the standard input, or --generate N")
	case slices.Contains(files, "-") && len(files) > 1:
		return errors.New("- is all of the input: leave the files out")
	}
	return s.parseOrder()
}

// parseOrder reads the flags that say how lines are sorted.
func (s *sortCommand) parseOrder() error {
	for _, text := range s.keys {
		k, err := parseKey(text)
		if err != nil {
			return err
		}
		s.order.Keys = append(s.order.Keys, k)
	}
	switch len(s.separator) {
	case 0:
	case 1:
		s.order.Separator = s.separator[0]
	default:
		return fmt.Errorf("--separator %s: write one character", s.separator)
	}
	switch {
	case s.separator != "" && len(s.keys) == 0:
		return errors.New("--separator is for --key: write which fields are the key")
	case !s.lines && !s.order.IsZero():
		return errors.New("--key, --numeric, --reverse and --unique are for lines: write --lines")
	}
	return nil
}

// parseKey reads a key, such as 2, 2,3 or 2,3nr.
func parseKey(text string) (k samplesort.Key, err error) {
	fields := strings.TrimRight(text, "nr")
	options := text[len(fields):]
	k.Numeric, k.Reverse = strings.Contains(options, "n"), strings.Contains(options, "r")
	first, last, several := strings.Cut(fields, ",")
	k.Field, err = strconv.Atoi(first)
	if err == nil && several {
		k.Last, err = strconv.Atoi(last)
	}
	if err != nil || k.Field < 1 || several && k.Last < k.Field {
		return k, fmt.Errorf(
			"--key %s: write a field, counted from 1, or the first and the last one, as in 2,3, and n or r after it", text)
	}
	return k, nil
}

// sortJSON is what --json prints.
type sortJSON struct {
	Output        string       `json:"output"`
	Files         int          `json:"files"`
	Records       int          `json:"records"`
	Bytes         int          `json:"bytes"`
	Checksum      string       `json:"checksum"`
	Equal         *bool        `json:"equal,omitempty"`          // to the input, unless there is none
	Dropped       int          `json:"dropped,omitempty"`        // records that --unique has left out
	Sorted        *bool        `json:"sorted,omitempty"`         // with --check
	DuplicateKeys *int         `json:"duplicate_keys,omitempty"` // with --check
	Failed        []int        `json:"failed"`                   // ranks
	Seconds       *sortSeconds `json:"seconds,omitempty"`        // of the process that prints
}

type sortSeconds struct {
	Sample   float64 `json:"sample"`
	Exchange float64 `json:"exchange"`
	Sort     float64 `json:"sort"`
	Write    float64 `json:"write"` // until all have written
	Total    float64 `json:"total"`
}

func (s *sortCommand) run(cmd *cobra.Command, files []string) error {
	out := cmd.OutOrStdout()
	if s.generate == 0 && len(files) == 0 {
		return s.report(cmd.Context(), out, sortJSON{Output: s.output, Failed: []int{}})
	}
	w, err := newSortWorld(cmd.Context())
	if err != nil {
		return cli.Failure(err)
	}
	p := phases{out: cmd.ErrOrStderr(), began: time.Now()}
	reported := make(chan error, 1) // One process reports, and possibly from another goroutine.
	job := samplesort.Job{
		Input: samplesort.Files(files...), Output: s.output, Order: s.order, Phase: p.begin,
		Done: func(r samplesort.Result) {
			equal := r.Equal()
			reported <- s.report(cmd.Context(), out, sortJSON{
				Output: s.output, Files: r.Files, Records: r.Output.Records, Bytes: r.Output.Bytes, Checksum: r.Output.Checksum(),
				Equal: &equal, Dropped: r.Dropped.Records, Failed: append([]int{}, w.Failed()...), Seconds: p.seconds(),
			})
		},
	}
	switch {
	case s.generate > 0:
		job.Input = samplesort.Generate(s.generate)
	case files[0] == "-":
		job.Input = samplesort.Stream(cmd.InOrStdin())
	}
	if s.lines {
		job.Format = samplesort.Lines
	}
	if _, err := samplesort.Run(cmd.Context(), w, job); err != nil {
		err = errors.Join(err, w.Abort())
		if cmd.Context().Err() != nil {
			return cli.Interruption(err.Error())
		}
		return cli.Failure(err)
	}
	if err := w.Finalize(cmd.Context()); err != nil {
		return cli.Failure(err)
	}
	select {
	case err := <-reported:
		return err
	default:
		return nil
	}
}

// newSortWorld is the job of the launcher, or one process alone.
func newSortWorld(ctx context.Context) (*pleach.World, error) {
	// The records are in memory anyway, so the log may be as long as they are.
	config := pleach.Config{Job: pleach.Job{LogBytes: math.MaxInt}}
	w, err := pleach.NewWorld(ctx, config)
	if _, ok := errors.AsType[*bootstrap.NotFoundError](err); ok {
		config.Addresses = []string{"127.0.0.1:1"}
		config.Network.Transport = mem.NewNetwork(1, mem.Config{}).Member(0)
		return pleach.NewWorld(ctx, config)
	}
	return w, err
}

// report checks the output if it is to, and prints the result.
func (s *sortCommand) report(ctx context.Context, out io.Writer, r sortJSON) error {
	var problem error
	if s.check {
		var found samplesort.Checked
		found, problem = samplesort.Check(ctx, s.output)
		if found.Files == 0 && problem != nil {
			return cli.Failure(problem) // There is nothing to tell of.
		}
		sorted := problem == nil
		r.Sorted, r.DuplicateKeys = &sorted, &found.Duplicates
		r.Files, r.Records, r.Bytes, r.Checksum = found.Files, found.Records, found.Bytes, found.Checksum()
	}
	return cli.Failure(errors.Join(problem, s.write(out, &r)))
}

func (s *sortCommand) write(out io.Writer, r *sortJSON) error {
	if s.json {
		return json.NewEncoder(out).Encode(r)
	}
	text := fmt.Sprintf("%d records, %d bytes, in %d files; checksum %s", r.Records, r.Bytes, r.Files, r.Checksum)
	if r.Equal != nil {
		text += fmt.Sprintf("; equal to the input: %v", *r.Equal)
		if s.order.Unique {
			text += fmt.Sprintf(", %d dropped", r.Dropped)
		}
	}
	if r.Sorted != nil {
		text += fmt.Sprintf("; sorted: %v, duplicate keys: %d", *r.Sorted, *r.DuplicateKeys)
	}
	if r.Seconds != nil {
		text += fmt.Sprintf("; %.2f s", r.Seconds.Total)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// phases prints a line for each phase, by which a fault can be injected into it, and
// measures how long the phases take.
type phases struct {
	out   io.Writer
	began time.Time
	names []string
	at    []time.Time
}

func (p *phases) begin(name string) {
	p.names, p.at = append(p.names, name), append(p.at, time.Now())
	fmt.Fprintln(p.out, "phase", name)
}

// seconds returns how long each phase took, and all together. The last one ends now.
func (p *phases) seconds() *sortSeconds {
	now := time.Now()
	s := &sortSeconds{Total: now.Sub(p.began).Seconds()}
	ends := append(p.at[1:len(p.at):len(p.at)], now)
	for i, name := range p.names {
		took := ends[i].Sub(p.at[i]).Seconds()
		switch name {
		case "sample":
			s.Sample = took
		case "exchange":
			s.Exchange = took
		case "sort":
			s.Sort = took
		case "write":
			s.Write = took
		}
	}
	return s
}
