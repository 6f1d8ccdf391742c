package experiments

import (
	"bytes"
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lab/chart"
)

// The pictures of docs/research/findings.md are drawn from the golden file.
func TestStabilizationCharts(t *testing.T) {
	rows := stabilizationRows(t)
	one := func(r map[string]float64) bool { return r["dead"] == 1 && r["watchers"] > 0 }
	feed := func(r map[string]float64) bool { return r["watchers"] == 0 }
	neighbors := func(r map[string]float64) bool { return r["dead"] > 1 && r["watchers"] > 0 }
	x := chart.Axis{Label: "members", Log: true, Ticks: chart.Powers(6, 16, 2)}
	title := "Stabilization under LogP, L = 2, o = 1"
	for _, c := range []chart.Chart{
		{
			Name: "stabilization", Title: title, X: x, Y: chart.Axis{Label: "stabilization time [steps]", To: 350},
			Series: []chart.Series{
				{Name: "one dead, by neighbors", Color: 0, Points: rows.points(one, "ts_mean")},
				{Name: "1% dead, by a feed", Color: 1, Points: rows.points(feed, "ts_mean")},
				{Name: "bound", Kind: chart.Dashed, Color: 0, Points: rows.points(one, "model")},
				{Name: "thesis, contention", Kind: chart.Dashed, Color: 2, Points: rows.points(one, "thesis_contention")},
				{Name: "thesis, base", Kind: chart.Dashed, Color: 3, Points: rows.points(one, "thesis_base")},
			},
		},
		{
			Name: "stabilization-reports", Title: title, X: x,
			Y: chart.Axis{
				Label: "stabilization time [steps]", Log: true, Ticks: chart.At(100, 200, 500, 1000, 2000), From: 80,
				To: 2500,
			},
			Series: []chart.Series{
				{Name: "1% dead, by neighbors", Color: 2, Points: rows.points(neighbors, "ts_mean")},
				{Name: "one dead, by neighbors", Color: 0, Points: rows.points(one, "ts_mean")},
				{Name: "1% dead, by a feed", Color: 1, Points: rows.points(feed, "ts_mean")},
			},
		},
	} {
		checkDrawn(t, &c, stabilizationGolden)
	}
}

// checkDrawn compares a chart with its file, which it writes if asked to.
func checkDrawn(t *testing.T, c *chart.Chart, from string) {
	t.Helper()
	var svg bytes.Buffer
	if err := c.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	file := "../../docs/pictures/" + c.Name + ".svg"
	if testutil.UpdateGolden.On() {
		if err := os.WriteFile(file, svg.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if drawn, err := os.ReadFile(file); err != nil || !bytes.Equal(drawn, svg.Bytes()) {
		t.Errorf("%s is not drawn from %s: PLEACH_UPDATE_GOLDEN=1 go test -run Charts ./lab/experiments (%v)", file,
			from, err)
	}
}

// stabilizationTable is the golden file, by columns' names.
type stabilizationTable []map[string]float64

// goldenRows are the lines of a golden file, the columns' names first.
func goldenRows(t *testing.T, name string) [][]string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func stabilizationRows(t *testing.T) (table stabilizationTable) {
	t.Helper()
	lines := goldenRows(t, stabilizationGolden)
	for _, line := range lines[1:] {
		row := make(map[string]float64)
		for i, name := range lines[0] {
			var err error
			row[name], err = strconv.ParseFloat(line[i], 64)
			if err != nil {
				t.Fatal(err)
			}
		}
		table = append(table, row)
	}
	return table
}

// points are a column of some rows, one for each number of members: where 1% is
// one, it is there twice.
func (table stabilizationTable) points(of func(map[string]float64) bool, column string) (points []chart.Point) {
	for _, row := range table {
		if n := len(points); of(row) && (n == 0 || points[n-1].X != row["members"]) {
			points = append(points, chart.Point{X: row["members"], Y: row[column]})
		}
	}
	return points
}
