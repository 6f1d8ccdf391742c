package reproduce

import (
	"bytes"
	"reflect"
	"testing"
)

func TestCSVComesBack(t *testing.T) {
	table := newTable("tree", "P", "latency")
	table.add("lamé, \"k = 2\"", 64, 17.25)
	table.add("4-ary\nin two lines", 256, 1e-9)
	var b bytes.Buffer
	if err := table.WriteCSV(&b, "note"); err != nil {
		t.Fatal(err)
	}
	got, note, err := ReadCSV(b.Bytes())
	if err != nil || note != "note" {
		t.Fatalf("note %q, %v", note, err)
	}
	if !reflect.DeepEqual(got, table) {
		t.Errorf("got %v, want %v", got, table)
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add([]byte("# a note\nx,y\n1,2\n"))
	f.Add([]byte("x,y\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		table, _, err := ReadCSV(content)
		if err != nil {
			return
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Errorf("%d values for %d columns", len(row), len(table.Columns))
			}
		}
	})
}

func TestPercentileCountsRuns(t *testing.T) {
	table := newTable("gap", "runs")
	table.add(3, 1)
	table.add(1, 98)
	table.add(2, 1)
	for p, want := range map[float64]float64{50: 1, 98: 1, 99: 2, 99.9: 3, 100: 3} {
		if got := table.percentile("gap", p); got != want {
			t.Errorf("%g%%: got %g, want %g", p, got, want)
		}
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		value    float64
		decimals int
		want     string
	}{{1234567, 0, "1,234,567"}, {-1234.5, 1, "-1,234.5"}, {123, 0, "123"}, {-123, 0, "-123"}, {0.126, 2, "0.13"}} {
		if got := figure(c.value, c.decimals); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
