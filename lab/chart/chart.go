package chart

import (
	"fmt"
	"strconv"
)

// Chart is one picture.
type Chart struct {
	// Name is that of its files, Title what stands above it.
	Name, Title string
	X, Y        Axis
	// Series are drawn, and named in the legend, in this order.
	Series []Series
	// Categories, if there are any, name the groups of [Bars] along the x axis:
	// the group of x = 0, 1, 2 and so on.
	Categories []string
}

// Axis is a horizontal or vertical axis.
type Axis struct {
	Label string
	// Log makes it logarithmic; all values must be greater than 0.
	Log bool
	// Ticks are where values stand; nil leaves that to the drawing.
	Ticks []Tick
	// From and To are its ends if they differ, else those of the data.
	From, To float64
}

// Tick is a value with its label.
type Tick struct {
	Value float64
	Label string
}

// Kind is how a series is drawn.
type Kind int

// The kinds of series.
const (
	Line     Kind = iota // points joined by a line
	Dashed               // by a dashed one
	Dots                 // points alone
	Ribbon               // a line in a band from Low to High
	Whiskers             // a line with bars from Low to High
	Segments             // every two points are a line of their own
	Rule                 // a dotted straight line across all, at the first point
	Bars                 // a bar for each point, next to those of other series
)

// Series is one curve.
type Series struct {
	// Name stands in the legend; without one the series does not.
	Name   string
	Kind   Kind
	Points []Point
	// Color is a number of the palette: series of one color belong together.
	Color int
	// Mark, if not 0, is the number of the points' mark; else the color has one.
	Mark int
}

// Point is a point of a curve. Low and High are the ends of its whiskers.
type Point struct{ X, Y, Low, High float64 }

// Powers are ticks at powers of two, short as in 64, 1K, 64K.
func Powers(from, to, step int) []Tick {
	var ticks []Tick
	for i := from; i <= to; i += step {
		ticks = append(ticks, Tick{float64(int64(1) << i), Short(int64(1) << i)})
	}
	return ticks
}

// Short writes a power of two as people say it.
func Short(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// At are ticks at the values given.
func At(values ...float64) []Tick {
	ticks := make([]Tick, len(values))
	for i, v := range values {
		ticks[i] = Tick{v, strconv.FormatFloat(v, 'g', -1, 64)}
	}
	return ticks
}
