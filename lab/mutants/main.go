//go:build unix

// Mutants plants bugs, one at a time, and tells which of them no test finds: an operator is
// exchanged, a condition is never true, a call is left out. A bug that survives is a missing
// test or seed plan, or a rule that nothing needs. Known as mutation testing (DeMillo, Lipton
// & Sayward 1978).
//
// A seed gives the same bugs on the same code. Bugs are put into what go compiles by an
// overlay, all those of a package at once, each with a switch: the tree stays as it is.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// record is what a run has shown.
type record struct {
	Date   string `json:"date"`
	Commit string `json:"commit"`
	Seed   uint64 `json:"seed"`
	By     string `json:"by"`
	tally
	Packages map[string]*tally `json:"packages"`
	// FoundBy counts the bugs that each finder has found.
	FoundBy   map[string]int `json:"found_by"`
	Survivors []verdict      `json:"survivors"`
}

// tally counts bugs.
type tally struct {
	Planted int     `json:"planted"` // those that are not equal in effect
	Found   int     `json:"found"`
	Equal   int     `json:"equal"`
	Score   float64 `json:"score"` // found of planted, in percent
}

// options are the flags.
type options struct {
	root, packages, by, changed, list, only, log, json string
	seed                                               uint64
	count, workers                                     int
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "root `directory` of the module")
	flag.StringVar(&o.packages, "packages", strings.Join(defaultPackages, ","),
		"`directories` of packages to plant bugs in, with commas")
	flag.StringVar(&o.by, "by", "tests",
		"what looks for bugs: `tests` (those of the package, then the simulator, then what uses it), own (those of the package alone) or simulation (1,000 seeds alone)")
	flag.StringVar(&o.changed, "changed", "", "plant bugs only in files that differ from this `commit`")
	flag.StringVar(&o.list, "equal", "lab/mutants/equal.txt", "`file` with bugs that are equal in effect")
	flag.StringVar(&o.only, "only", "",
		"plant the bugs that this `file` names, as that of bugs that are equal in effect, and fail if one survives")
	flag.StringVar(&o.log,
		"log", "", "`file` for verdicts: a run that was interrupted continues where it was, on the same commit")
	flag.Uint64Var(&o.seed, "seed", 1, "seed that chooses the bugs")
	flag.IntVar(&o.count, "count", 100, "number of bugs")
	flag.IntVar(&o.workers, "workers", 2, "bugs that are looked for at a time")
	flag.StringVar(&o.json,
		"json", "", "write a record as JSON to this `file`; -: to the standard output, and nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run plants bugs and prints what has become of them.
func (o *options) run(ctx context.Context) error {
	look, ok := searches[o.by]
	if !ok {
		return fmt.Errorf("nothing looks for bugs by %q: tests, own or simulation does", o.by)
	}
	all, err := o.sites()
	if err != nil {
		return err
	}
	list, err := readEqual(o.list)
	if err != nil {
		return err
	}
	if err := list.check(strings.Split(o.packages, ","), all); err != nil {
		return err
	}
	chosen, err := o.choose(all)
	if err != nil {
		return err
	}
	l := &planter{options: o, sites: all, equal: list, look: look}
	l.record = record{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(o.root), Seed: o.seed, By: o.by,
		FoundBy: map[string]int{}, Packages: map[string]*tally{},
	}
	if err := l.plantAll(ctx, chosen); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if err := l.record.print(o.json); err != nil {
		return err
	}
	if o.only != "" && len(l.record.Survivors) > 0 {
		return errors.New("a bug that is listed as found survives")
	}
	return nil
}

// sites returns all places of the packages.
func (o *options) sites() ([]site, error) {
	var sites []site
	for directory := range strings.SplitSeq(o.packages, ",") {
		some, err := sitesOf(o.root, strings.TrimPrefix(directory, "./"))
		if err != nil {
			return nil, err
		}
		sites = append(sites, some...)
	}
	return sites, nil
}

// choose returns the places that the flags allow, in the order of planting.
func (o *options) choose(all []site) ([]site, error) {
	sites := slices.Clone(all)
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	if o.only != "" {
		only, err := readEqual(o.only)
		if err != nil {
			return nil, err
		}
		if err := only.check(strings.Split(o.packages, ","), all); err != nil {
			return nil, err
		}
		sites = slices.DeleteFunc(sites, func(s site) bool { return only[s.name()] == "" })
	}
	if o.changed == "" {
		return sites[:min(o.count, len(sites))], nil
	}
	command := exec.Command("git", "diff", "--name-only", o.changed)
	command.Dir = o.root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w", o.changed, err)
	}
	files := strings.Fields(string(out))
	sites = slices.DeleteFunc(sites, func(s site) bool { return !slices.Contains(files, s.File) })
	return sites[:min(o.count, len(sites))], nil
}

// commit names the code, as far as git knows it.
func commit(root string) string {
	command := exec.Command("git", "describe", "--always", "--dirty")
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// of returns the count of a package.
func (r *record) of(directory string) *tally {
	if r.Packages[directory] == nil {
		r.Packages[directory] = &tally{}
	}
	return r.Packages[directory]
}

// take counts a bug.
func (r *record) take(v verdict) {
	of := r.of(v.directory())
	of.Planted++
	r.Planted++
	by := v.By
	switch {
	case by != "":
		of.Found++
		r.Found++
		r.FoundBy[by]++
	case v.Reached:
		by = "survived"
	default:
		by = "not reached"
	}
	if v.By == "" {
		r.Survivors = append(r.Survivors, v)
	}
	fmt.Fprintf(os.Stderr, "%4d  %-19s %v  (%.0f s)\n", r.Planted, by, &v.site, v.Seconds)
}

// print prints the record, and writes it to a file if one is named.
func (r *record) print(file string) error {
	for _, of := range append(slices.Collect(maps.Values(r.Packages)), &r.tally) {
		of.Score = 100 * float64(of.Found) / float64(max(of.Planted, 1))
	}
	slices.SortFunc(r.Survivors, func(a, b verdict) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.from, b.from))
	})
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return err
	}
	if file == "-" {
		_, err := os.Stdout.Write(text.Bytes())
		return err
	}
	if file != "" {
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("seed %d of %s: %d of %d found (%.0f %%) by %s, %d more equal in effect\n", r.Seed, r.Commit, r.Found,
		r.Planted, r.Score, r.By, r.Equal)
	for _, directory := range slices.Sorted(maps.Keys(r.Packages)) {
		of := r.Packages[directory]
		fmt.Printf("  %-28s %d of %d (%.0f %%)\n", directory, of.Found, of.Planted, of.Score)
	}
	for i := range r.Survivors {
		fmt.Println("  survived:", &r.Survivors[i].site)
	}
	return nil
}
