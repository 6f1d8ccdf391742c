package difftest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pleach-go/pleach/sql/internal/planner"
)

// Verdict is what a comparison has found.
type Verdict int

// Equal results, a refused query, a query that one DuckDB refuses, and different results. Overflow is
// a query with an error in a value, such as an overflow, with the plan or with one DuckDB: whether a
// value is computed that the result does not need depends on the plan. Failed is a query that is
// neither refused nor answered, and has an answer.
const (
	Equal Verdict = iota
	Refused
	Invalid
	Overflow
	Failed
	Different
)

// inValue reports whether an error is about a value.
func inValue(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Out of Range Error") ||
		strings.Contains(err.Error(), "Conversion Error"))
}

// Compare compares a result with the one of a DuckDB alone: the rows, the order as far as ORDER BY
// determines it, and the names and types of columns.
func Compare(q Query, want, got Result) (Verdict, string) {
	_, refused := errors.AsType[*planner.Error](got.Err)
	switch {
	case !refused && (inValue(want.Err) || inValue(got.Err)):
		return Overflow, errors.Join(want.Err, got.Err).Error()
	case want.Err != nil && strings.Contains(want.Err.Error(), "Not implemented Error"):
		return Invalid, want.Err.Error() // It has a meaning, and one DuckDB cannot run it.
	case want.Err != nil && got.Err == nil:
		return Different, fmt.Sprintf("one DuckDB says %v", want.Err)
	case want.Err != nil:
		return Invalid, want.Err.Error()
	case refused:
		return Refused, got.Err.Error()
	case got.Err != nil:
		return Failed, got.Err.Error()
	case q.Open:
		return Different, "its result is not determined, and it is not refused"
	case !slices.Equal(want.Columns, got.Columns):
		return Different, fmt.Sprintf("columns are %q, want %q", got.Columns, want.Columns)
	case !slices.Equal(want.Types, got.Types):
		return Different, fmt.Sprintf("columns are of types %q, want %q", got.Types, want.Types)
	}
	a, b := rounded(want), rounded(got)
	if q.Whole != "" {
		if len(a) != len(b) {
			return Different, fmt.Sprintf("there are %d rows, want %d", len(b), len(a))
		}
		return Equal, ""
	}
	if len(q.Ordered) > 0 && !slices.EqualFunc(a, b, func(a, b []string) bool {
		// The * of a join with USING has fewer columns than its tables.
		return !slices.ContainsFunc(q.Ordered, func(i int) bool { return i < len(a) && a[i] != b[i] })
	}) {
		return Different, fmt.Sprintf("rows are not in the order of one DuckDB: %q, want %q", b, a)
	}
	slices.SortFunc(a, slices.Compare)
	slices.SortFunc(b, slices.Compare)
	if !slices.EqualFunc(a, b, slices.Equal[[]string]) {
		return Different, fmt.Sprintf("rows are %q, want %q", b, a)
	}
	return Equal, ""
}

// Contained reports whether a result has some of the rows of another one, as LIMIT without ORDER BY has.
func Contained(whole, some Result) bool {
	all := rounded(whole)
	for _, row := range rounded(some) {
		i := slices.IndexFunc(all, func(other []string) bool { return slices.Equal(row, other) })
		if i < 0 {
			return false
		}
		all = slices.Delete(all, i, i+1)
	}
	return true
}

// rounded returns rows in which floating-point numbers have 9 digits: the last ones depend on the
// order of a sum.
func rounded(r Result) [][]string {
	all := make([][]string, len(r.Rows))
	for i, row := range r.Rows {
		all[i] = slices.Clone(row)
		for j, kind := range r.Types {
			if kind != "DOUBLE" && kind != "FLOAT" || row[j] == null {
				continue
			}
			f, err := strconv.ParseFloat(row[j], 64)
			if err == nil && !math.IsInf(f, 0) {
				if math.Abs(f) < 1e-12 {
					f = 0
				}
				all[i][j] = strconv.FormatFloat(f, 'g', 9, 64)
			}
		}
	}
	return all
}

// null is the text of NULL.
const null = "(null)"
