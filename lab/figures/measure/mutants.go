package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/lab/figures"
)

// planted is what lab/mutants counts of a package, or of all.
type planted struct {
	Planted int     `json:"planted"`
	Found   int     `json:"found"`
	Equal   int     `json:"equal"`
	Score   float64 `json:"score"`
}

// mutantsTests plants bugs in all packages. A run that was interrupted continues where it was.
func mutantsTests(l *lab) []figures.Table {
	var out struct {
		planted
		Packages  map[string]planted `json:"packages"`
		Survivors []struct{ File, Function, Before string }
	}
	l.measure(&out, "make -s mutants SEED=1 COUNT=300 LOG=bin/mutants.log JSON=-")
	t := figures.Table{Name: "tests", Columns: []string{"package", "planted", "found", "no effect", "survivors"}}
	row := func(name string, p planted, survivors []string) {
		found := fmt.Sprintf("%d, %.0f %%", p.Found, p.Score)
		t.Rows = append(t.Rows, []string{
			name, fmt.Sprint(p.Planted), found, fmt.Sprint(p.Equal),
			strings.Join(survivors, ", "),
		})
	}
	for _, directory := range slices.Sorted(maps.Keys(out.Packages)) {
		var survivors []string
		for _, s := range out.Survivors {
			if path.Dir(s.File) == directory {
				survivors = append(survivors, fmt.Sprintf("`%s`: `%s`", s.Function, strings.ReplaceAll(s.Before, "|", `\|`)))
			}
		}
		row("`"+directory+"`", out.Packages[directory], survivors)
	}
	row("all", out.planted, nil)
	return []figures.Table{t}
}
