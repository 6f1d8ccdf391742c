package main

import (
	"fmt"
	"strings"
)

// ranges writes ascending ranks, runs of them shortened, as in 0-3,7, with a
// separator between. If there are more than so many runs, the rest is "and more".
func ranges(ranks []int, separator string, most int) string {
	var parts []string
	for len(ranks) > 0 {
		if len(parts) == most {
			parts = append(parts, "and more")
			break
		}
		n := 1
		for n < len(ranks) && ranks[n] == ranks[0]+n {
			n++
		}
		part := fmt.Sprint(ranks[0])
		if n > 1 {
			part += fmt.Sprintf("-%d", ranks[n-1])
		}
		parts = append(parts, part)
		ranks = ranks[n:]
	}
	return strings.Join(parts, separator)
}
