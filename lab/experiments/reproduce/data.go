package reproduce

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/pleach-go/pleach/lab/chart"
)

// Data are the tables of a source, by name.
type Data map[string]*Table

// Table is what a CSV file holds.
type Table struct {
	Columns []string
	Rows    [][]string
}

func newTable(columns ...string) *Table { return &Table{Columns: columns} }

// add appends a row. Numbers keep six digits, more than any run is worth.
func (t *Table) add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case float64:
			row[i] = strconv.FormatFloat(v, 'g', 6, 64)
		default:
			row[i] = fmt.Sprint(v)
		}
	}
	if len(row) != len(t.Columns) {
		panic(fmt.Sprintf("reproduce: a row of %d values for the columns %v", len(row), t.Columns))
	}
	t.Rows = append(t.Rows, row)
}

// where returns the rows in which a column has a value.
func (t *Table) where(column string, value any) *Table {
	i, text := t.index(column), fmt.Sprint(value)
	some := newTable(t.Columns...)
	for _, row := range t.Rows {
		if row[i] == text {
			some.Rows = append(some.Rows, row)
		}
	}
	return some
}

func (t *Table) index(column string) int {
	i := slices.Index(t.Columns, column)
	if i < 0 {
		panic(fmt.Sprintf("reproduce: no column %q in %v", column, t.Columns))
	}
	return i
}

// numbers are a column's values.
func (t *Table) numbers(column string) []float64 {
	i := t.index(column)
	values := make([]float64, len(t.Rows))
	for n, row := range t.Rows {
		v, err := strconv.ParseFloat(row[i], 64)
		if err != nil {
			v = math.NaN()
		}
		values[n] = v
	}
	return values
}

// number is a column's first value, or not a number.
func (t *Table) number(column string) float64 {
	if len(t.Rows) == 0 {
		return math.NaN()
	}
	return t.numbers(column)[0]
}

// sum adds up a column.
func (t *Table) sum(column string) (sum float64) {
	for _, v := range t.numbers(column) {
		sum += v
	}
	return sum
}

// runs adds up the column of that name.
func (t *Table) runs() int { return int(t.sum("runs")) }

// points are two columns as a curve; low and high may be empty.
func (t *Table) points(x, y, low, high string) []chart.Point {
	points := make([]chart.Point, len(t.Rows))
	for i, v := range t.numbers(x) {
		points[i].X = v
	}
	for i, v := range t.numbers(y) {
		points[i].Y = v
	}
	if low != "" {
		lows, highs := t.numbers(low), t.numbers(high)
		for i := range points {
			points[i].Low, points[i].High = lows[i], highs[i]
		}
	}
	return points
}

// percentile is the value of a column below or at which a share of the runs
// lies, when a row counts as many times as it says in the column runs.
func (t *Table) percentile(column string, p float64) float64 {
	type pile struct{ value, runs float64 }
	runs := t.numbers("runs")
	piles := make([]pile, len(runs))
	var all float64
	for i, v := range t.numbers(column) {
		piles[i] = pile{v, runs[i]}
		all += runs[i]
	}
	slices.SortFunc(piles, func(a, b pile) int { return int(math.Copysign(1, a.value-b.value)) })
	var below float64
	for _, pile := range piles {
		below += pile.runs
		if below >= math.Ceil(p/100*all) {
			return pile.value
		}
	}
	return math.NaN()
}

// WriteCSV writes the table. Note is a first line for people and for
// [ReadCSV]'s caller.
func (t *Table) WriteCSV(w io.Writer, note string) error {
	if _, err := fmt.Fprintf(w, "# %s\n", note); err != nil {
		return err
	}
	c := csv.NewWriter(w)
	if err := c.Write(t.Columns); err != nil {
		return err
	}
	return c.WriteAll(t.Rows)
}

// ReadCSV reads what [Table.WriteCSV] wrote, and its note.
func ReadCSV(content []byte) (t *Table, note string, err error) {
	first, _, _ := bytes.Cut(content, []byte("\n"))
	text, ok := bytes.CutPrefix(first, []byte("# "))
	if !ok {
		return nil, "", fmt.Errorf("reproduce: no note at the start")
	}
	r := csv.NewReader(bytes.NewReader(content))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		return nil, "", err
	}
	if len(rows) == 0 {
		return nil, "", fmt.Errorf("reproduce: no columns")
	}
	return &Table{Columns: rows[0], Rows: rows[1:]}, string(text), nil
}
