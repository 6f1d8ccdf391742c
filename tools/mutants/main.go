//go:build unix

// Mutants plants bugs, one at a time, and tells which of them no test finds: an operator is
// exchanged, a condition is never true, a call is left out. A bug that survives is a missing
// test or seed plan, or a rule that nothing needs. Known as mutation testing (DeMillo, Lipton
// & Sayward 1978).
//
// A seed gives the same bugs on the same code. Bugs are put into what go compiles by an
// overlay: the tree stays as it is.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// record is what a run has shown.
type record struct {
	Date      string    `json:"date"`
	Commit    string    `json:"commit"`
	Seed      uint64    `json:"seed"`
	By        string    `json:"by"`
	Planted   int       `json:"planted"` // those that the compiler takes and that are not equal in effect
	Found     int       `json:"found"`
	Equal     int       `json:"equal"`
	Score     float64   `json:"score"` // found of planted, in percent
	Survivors []verdict `json:"survivors"`
	// FoundBy counts the bugs that each finder has found.
	FoundBy map[string]int `json:"found_by"`
}

// options are the flags.
type options struct {
	root, packages, by, changed, list string
	seed                              uint64
	count                             int
	json                              bool
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "root `folder` of the module")
	flag.StringVar(&o.packages, "packages", strings.Join(defaultPackages, ","), "`folders` of packages to plant bugs in, with commas")
	flag.StringVar(&o.by, "by", "tests", "what looks for bugs: `tests` (those of the package, then the simulator, then what uses it) or simulation (1,000 seeds alone)")
	flag.StringVar(&o.changed, "changed", "", "plant bugs only in files that differ from this `commit`")
	flag.StringVar(&o.list, "equal", "tools/mutants/equal.txt", "`file` with bugs that are equal in effect")
	flag.Uint64Var(&o.seed, "seed", 1, "seed that chooses the bugs")
	flag.IntVar(&o.count, "count", 100, "number of bugs")
	flag.BoolVar(&o.json, "json", false, "print a record as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run plants bugs, two at a time, and prints what has become of them.
func (o *options) run(ctx context.Context) error {
	look, ok := searches[o.by]
	if !ok {
		return fmt.Errorf("nothing looks for bugs by %q: tests or simulation does", o.by)
	}
	sites, err := o.choose()
	if err != nil {
		return err
	}
	list, err := readEqual(o.list)
	if err != nil {
		return err
	}
	if err := list.check(strings.Split(o.packages, ","), sites); err != nil {
		return err
	}
	r := record{Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(o.root), Seed: o.seed, By: o.by, FoundBy: map[string]int{}}
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	err = r.plantAll(ctx, o, sites, list, look)
	if interrupted := errors.Is(err, context.Canceled); err != nil && !interrupted {
		return err
	}
	return r.print(o.json)
}

// choose returns all places that the flags allow.
func (o *options) choose() ([]site, error) {
	var sites []site
	for folder := range strings.SplitSeq(o.packages, ",") {
		some, err := sitesOf(o.root, strings.TrimPrefix(folder, "./"))
		if err != nil {
			return nil, err
		}
		sites = append(sites, some...)
	}
	if o.changed == "" {
		return sites, nil
	}
	command := exec.Command("git", "diff", "--name-only", o.changed)
	command.Dir = o.root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w", o.changed, err)
	}
	files := strings.Fields(string(out))
	return slices.DeleteFunc(sites, func(s site) bool { return !slices.Contains(files, s.File) }), nil
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

// plantAll plants bugs until there are as many as wanted that compile.
func (r *record) plantAll(ctx context.Context, o *options, sites []site, list equal, look func(folder string) []finder) error {
	var mu sync.Mutex
	var workers sync.WaitGroup
	var failure error
	next := func() (s site, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || failure != nil || len(sites) == 0 || r.Planted+r.Equal >= o.count {
			return s, false
		}
		s, sites = sites[0], sites[1:]
		if list[s.name()] != "" {
			r.Equal++
			return site{}, true
		}
		r.Planted++
		return s, true
	}
	for range 2 {
		workers.Go(func() {
			for s, ok := next(); ok; s, ok = next() {
				if s.File == "" {
					continue
				}
				v, err := plant(ctx, o.root, s, look(s.folder()))
				mu.Lock()
				r.take(v, err)
				if err != nil {
					failure = err
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return failure
}

// take counts a bug. One that the compiler refuses, or that was not looked for to the end, was
// none.
func (r *record) take(v verdict, err error) {
	switch {
	case err != nil || !v.builds:
		r.Planted--
		return
	case v.By == "":
		r.Survivors = append(r.Survivors, v)
		fmt.Fprintf(os.Stderr, "%4d  survived            %v  (%.0f s)\n", r.Planted, &v.site, v.Seconds)
	default:
		r.Found++
		r.FoundBy[v.By]++
		fmt.Fprintf(os.Stderr, "%4d  %-19s %v  (%.0f s)\n", r.Planted, v.By, &v.site, v.Seconds)
	}
}

// print prints the record.
func (r *record) print(asJSON bool) error {
	if n := r.Found + len(r.Survivors); n > 0 {
		r.Planted, r.Score = n, 100*float64(r.Found)/float64(n)
	}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}
	fmt.Printf("seed %d of %s: %d of %d found (%.0f %%) by %s, %d more equal in effect\n", r.Seed, r.Commit, r.Found, r.Planted, r.Score, r.By, r.Equal)
	for _, v := range r.Survivors {
		fmt.Println("  survived:", &v.site)
	}
	return nil
}
