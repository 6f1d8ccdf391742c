package chart

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"slices"
	"strings"
	"testing"
)

// everyKind has a series of each kind but bars, which have categories.
func everyKind() *Chart {
	points := []Point{{1, 2, 1, 3}, {10, 4, 3, 6}, {100, 3, 1, 5}, {1000, 8, 7, 9}}
	c := &Chart{
		Name: "kinds", Title: "Every kind", X: Axis{Label: "x", Log: true, Ticks: At(1, 10, 100, 1000)}, Y: Axis{Label: "y"},
	}
	for i, name := range []string{"line", "dashed", "dots", "ribbon", "whiskers", "segments", "rule"} {
		c.Series = append(c.Series, Series{Name: name, Kind: Line + Kind(i), Color: i, Points: points})
	}
	return c
}

func TestSVGHasTitleLabelsAndLegend(t *testing.T) {
	var svg bytes.Buffer
	if err := everyKind().SVG(&svg); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(svg.Bytes(), new(struct{})); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Every kind", ">x<", ">y<", ">line<", ">whiskers<", ">rule<", ">1000<"} {
		if !strings.Contains(svg.String(), text) {
			t.Errorf("%q is not there", text)
		}
	}
}

func TestPNGCanBeRead(t *testing.T) {
	var picture bytes.Buffer
	bars := &Chart{Categories: []string{"a", "b"}, Series: []Series{
		{Name: "one", Kind: Bars, Points: []Point{{X: 0, Y: 1}, {X: 1, Y: 2}}},
		{Name: "two", Kind: Bars, Color: 1, Points: []Point{{X: 0, Y: 3}, {X: 1, Y: 1}}},
	}}
	for _, c := range []*Chart{everyKind(), bars} {
		picture.Reset()
		if err := c.PNG(&picture); err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(&picture); err != nil {
			t.Error(err)
		}
	}
}

func TestEmptySeriesIsAnError(t *testing.T) {
	c := &Chart{Name: "x", Series: []Series{{Name: "nothing"}}}
	if err := c.SVG(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("got %v", err)
	}
}

func TestTicks(t *testing.T) {
	for n, want := range map[int64]string{64: "64", 1024: "1K", 65536: "64K", 1 << 20: "1M", 1 << 30: "1G", 1500: "1500"} {
		if got := Short(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	for _, c := range []struct {
		low, high float64
		want      []string
	}{
		{0, 100, []string{"0", "20", "40", "60", "80", "100"}},
		{0, 12, []string{"0", "2", "4", "6", "8", "10", "12"}},
		{0, 0.5, []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
		{-3, 26, []string{"0", "5", "10", "15", "20", "25"}},
	} {
		var got []string
		for _, tick := range roundTicks(c.low, c.high) {
			got = append(got, tick.Label)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%g to %g: got %v, want %v", c.low, c.high, got, c.want)
		}
	}
}
