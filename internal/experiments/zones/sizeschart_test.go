package zones

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/pleach-go/pleach/internal/chart"
	"github.com/pleach-go/pleach/internal/testutil"
)

// measured is what groups and fleets of real members took.
type measured struct {
	name        string
	color, mark int
	figures     []measurement
}

// measurement is one group: members, zones, milliseconds and messages of a broadcast, of a
// group per member, of a fleet those between zones.
type measurement struct{ members, zones, ms, messages float64 }

// measuredGroups are those of the tables of docs/measure/scale.md (pleach-lab bench scale, pleach-lab bench
// fleet).
var measuredGroups = []measured{
	{"one group, TCP", 4, 0, []measurement{{64, 1, 0.5, 1.15}, {256, 1, 2.8, 1.46}, {1024, 1, 16.5, 1.55}}},
	{"one group, in memory", 5, 0, []measurement{{64, 1, 0.2, 1.10}, {256, 1, 0.9, 1.16}, {1024, 1, 5.2, 1.13}, {2048, 1, 12.1, 1.10}, {4096, 1, 26.7, 1.07}}},
	{"fleet of 8 zones", chart.Black, 1, []measurement{{64, 8, 48.3, 13.4}, {128, 8, 53.7, 14.0}, {256, 8, 87.2, 14.6}}},
}

// The pictures of docs/measure/scale.md are drawn from the file and from what was measured.
func TestSizesCharts(t *testing.T) {
	rows := readSizes(t)
	curve := func(name string, kind chart.Kind, color int, system, dead, column string) chart.Series {
		return chart.Series{Name: name, Kind: kind, Color: color, Points: rows.points(t, system, dead, column)}
	}
	x := chart.Axis{Label: "processes", Log: true, Ticks: chart.Powers(6, 30, 4)}
	latency := &chart.Chart{
		Name: "zones-latency", Title: "A broadcast until the last process has it", X: x,
		Y: chart.Axis{Label: "milliseconds", Log: true, Ticks: chart.At(0.1, 1, 10, 100, 1000), From: 0.1, To: 1000},
		Series: []chart.Series{
			curve("gossip", chart.Line, 3, Gossip, "none", "ms"),
			curve("", chart.Dashed, 3, Gossip, "some", "ms"),
			curve("flat", chart.Line, 2, Flat, "none", "ms"),
			curve("", chart.Dashed, 2, Flat, "some", "ms"),
			curve("zones", chart.Line, 1, Fleet, "none", "ms"),
			curve("dashed: 1 in 1,000 dead, and a lead", chart.Dashed, 1, Fleet, "some", "ms"),
			curve("one group, one zone", chart.Line, 0, oneGroup, "none", "ms"),
			curve("the same on 2 processors", chart.Line, chart.Gray, overTCP, "none", "ms"),
			curve("", chart.Line, chart.Gray, inMemory, "none", "ms"),
		},
	}
	cost := &chart.Chart{
		Name: "zones-messages", Title: "Messages between zones, of one broadcast", X: x,
		Y: chart.Axis{Label: "messages", Log: true, Ticks: []chart.Tick{{Value: 10, Label: "10"}, {Value: 1e3, Label: "10³"}, {Value: 1e5, Label: "10⁵"}, {Value: 1e7, Label: "10⁷"}, {Value: 1e9, Label: "10⁹"}}, From: 10, To: 1e11},
		Series: []chart.Series{
			curve("gossip", chart.Line, 3, Gossip, "none", "messages_between_zones"),
			curve("flat", chart.Line, 2, Flat, "none", "messages_between_zones"),
			curve("zones", chart.Line, 1, Fleet, "none", "messages_between_zones"),
		},
	}
	for _, m := range measuredGroups {
		latency.Series = append(latency.Series, m.series(func(f measurement) float64 { return f.ms }))
		cost.Series = append(cost.Series, m.series(measurement.betweenZones))
	}
	for _, c := range []*chart.Chart{latency, cost} {
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		testutil.GoldenFile(t, "../../../docs/pictures/"+c.Name+".svg", svg.Bytes())
	}
}

func (m *measured) series(y func(measurement) float64) chart.Series {
	s := chart.Series{Name: "measured: " + m.name, Kind: chart.Dots, Color: m.color, Mark: m.mark}
	for _, f := range m.figures {
		s.Points = append(s.Points, chart.Point{X: f.members, Y: y(f)})
	}
	return s
}

// betweenZones is how many of a group's messages would cross if its members were spread at
// random over as many zones as each has members.
func (f measurement) betweenZones() float64 {
	if f.zones > 1 {
		return f.messages
	}
	return f.messages * f.members * (f.members - math.Sqrt(f.members)) / (f.members - 1)
}

// sizeRows are the rows of the file, by columns' names.
type sizeRows []map[string]string

func readSizes(t *testing.T) (rows sizeRows) {
	t.Helper()
	file, err := os.ReadFile(sizesFile)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := make(map[string]string)
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// points are a column of the rows of a system.
func (rows sizeRows) points(t *testing.T, system, dead, column string) (points []chart.Point) {
	t.Helper()
	for _, row := range rows {
		if row["system"] != system || row["dead"] != dead {
			continue
		}
		bits, err := strconv.Atoi(row["bits"])
		if err != nil {
			t.Fatal(err)
		}
		y, err := strconv.ParseFloat(row[column], 64)
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, chart.Point{X: float64(int64(1) << bits), Y: y})
	}
	return points
}
