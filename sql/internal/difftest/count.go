package difftest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Count counts verdicts: of all queries, and of those with a feature.
type Count struct {
	verdicts map[Verdict]int
	features map[string]map[Verdict]int
	refusals map[string]int // by the first words of the error
}

// NewCount returns a count of no queries.
func NewCount() *Count {
	return &Count{make(map[Verdict]int), make(map[string]map[Verdict]int), make(map[string]int)}
}

// features are words that a query has if it has a feature. Names in queries are in quotation marks,
// and literals have no such words.
var features = []string{
	"WITH ", "FROM (SELECT", "(VALUES", "EXISTS (", "IN (SELECT", "ANY (", "ALL (", "(SELECT ", "CASE ", " AS ", ", ",
	" JOIN ", "LEFT JOIN", "RIGHT JOIN",
	"FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN", "NATURAL JOIN", "ASOF JOIN", "LATERAL", "USING (", "GROUP BY ",
	"GROUP BY ALL", "ROLLUP", "CUBE",
	"GROUPING SETS", "HAVING", "FILTER", "count(DISTINCT", "string_agg", "list(", "first(", "median(", " OVER (",
	"PARTITION BY", " ROWS ", "QUALIFY",
	"IGNORE NULLS", "SELECT DISTINCT ", "DISTINCT ON", " UNION ", "UNION ALL", "BY NAME", " EXCEPT ", " INTERSECT ",
	"ORDER BY", "ORDER BY ALL", "NULLS FIRST",
	"NULLS LAST", "COLLATE", " LIMIT ", "OFFSET", "%", mark,
}

// Add counts a query.
func (c *Count) Add(query string, v Verdict, why string) {
	c.verdicts[v]++
	for _, f := range features {
		if strings.Contains(query, f) {
			if c.features[f] == nil {
				c.features[f] = make(map[Verdict]int)
			}
			c.features[f][v]++
		}
	}
	words, most := strings.Fields(why), 14
	if v == Invalid {
		most = 5
		words = append([]string{"(one DuckDB)"}, words...)
	}
	if v == Refused || v == Invalid {
		c.refusals[strings.Join(words[:min(len(words), most)], " ")]++
	}
}

// Valid returns how many queries one DuckDB runs whose result is determined, and how many of these were
// refused.
func (c *Count) Valid() (all, refused int) {
	refused = c.verdicts[Refused] - c.features[mark][Refused]
	return c.verdicts[Equal] + c.verdicts[Failed] + c.verdicts[Different] + refused, refused
}

func (c *Count) String() string {
	all, refused := c.Valid()
	return fmt.Sprintf("%d equal, %d refused (%.1f %% of %d that one DuckDB runs and whose result is determined), %d refused that are not determined, %d failed, %d different; one DuckDB refuses %d, errors in values %d",
		c.verdicts[Equal], refused, 100*float64(refused)/float64(max(1, all)), all, c.features[mark][Refused],
		c.verdicts[Failed], c.verdicts[Different], c.verdicts[Invalid], c.verdicts[Overflow])
}

// Details returns the refused share of each feature, and the most frequent errors.
func (c *Count) Details() string {
	var b strings.Builder
	for _, f := range features {
		v := c.features[f]
		fmt.Fprintf(&b, "%16s: %6d equal, %6d refused\n", strings.TrimSpace(f), v[Equal], v[Refused])
	}
	often := slices.SortedFunc(maps.Keys(c.refusals),
		func(a, b string) int { return cmp.Compare(c.refusals[b], c.refusals[a]) })
	for _, reason := range often[:min(30, len(often))] {
		fmt.Fprintf(&b, "%6d %s\n", c.refusals[reason], reason)
	}
	return b.String()
}
