package reproduce

import "github.com/pleach-go/pleach/lab/chart"

// plainLine is a curve without marks on its points: what was computed, beside
// what was simulated.
func plainLine(name string, points []chart.Point, color int) chart.Series {
	var segments []chart.Point
	for i := 0; i+1 < len(points); i++ {
		segments = append(segments, points[i], points[i+1])
	}
	return chart.Series{Name: name, Kind: chart.Segments, Color: color, Points: segments}
}
