package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// groupWidth is what bars of one category take together.
const groupWidth = 42 * vg.Length(1)

// add draws the series and returns what stands for it in the legend. Of all bars
// it is the nth of so many.
func (s *Series) add(p *plot.Plot, nth, bars int) ([]plot.Thumbnailer, error) {
	switch s.Kind {
	case Bars:
		return s.addBars(p, nth, bars)
	case Rule:
		return s.addRule(p)
	case Segments:
		return s.addSegments(p)
	}
	line, dots, err := plotter.NewLinePoints(points(s.Points))
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = palette(s.Color), 1.3
	dots.Color, dots.Shape, dots.Radius = palette(s.Color), glyph(s.Color), 2.6
	if s.Mark > 0 {
		dots.Shape = glyph(s.Mark - 1)
	}
	switch s.Kind {
	case Dots:
		p.Add(dots)
		return []plot.Thumbnailer{dots}, nil
	case Dashed:
		line.Dashes = []vg.Length{5, 3}
	case Ribbon:
		band, err := plotter.NewPolygon(outline(s.Points))
		if err != nil {
			return nil, err
		}
		band.Color, band.LineStyle.Width = faded(palette(s.Color)), 0
		p.Add(band)
	case Whiskers:
		whiskers, err := plotter.NewYErrorBars(ends(s.Points))
		if err != nil {
			return nil, err
		}
		whiskers.LineStyle = draw.LineStyle{Color: palette(s.Color), Width: 0.8}
		p.Add(whiskers)
	}
	p.Add(line, dots)
	return []plot.Thumbnailer{line, dots}, nil
}

// addRule draws a line across everything: horizontal where x is 0, vertical
// where y is.
func (s *Series) addRule(p *plot.Plot) ([]plot.Thumbnailer, error) {
	r := &rule{at: s.Points[0], style: draw.LineStyle{Color: palette(s.Color), Width: 1, Dashes: []vg.Length{2, 2}}}
	p.Add(r)
	return []plot.Thumbnailer{r}, nil
}

func (s *Series) addSegments(p *plot.Plot) (entries []plot.Thumbnailer, err error) {
	for i := 0; i+1 < len(s.Points); i += 2 {
		line, err := plotter.NewLine(points(s.Points[i : i+2]))
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = palette(s.Color), 1.2
		p.Add(line)
		entries = []plot.Thumbnailer{line}
	}
	return entries, nil
}

func (s *Series) addBars(p *plot.Plot, nth, bars int) ([]plot.Thumbnailer, error) {
	values := make(plotter.Values, len(s.Points))
	for i, point := range s.Points {
		values[i] = point.Y
	}
	each := groupWidth / vg.Length(bars)
	chart, err := plotter.NewBarChart(values, each)
	if err != nil {
		return nil, err
	}
	chart.Color, chart.LineStyle.Width = palette(s.Color), 0
	chart.Offset = (vg.Length(nth) - vg.Length(bars-1)/2) * each
	p.Add(chart)
	return []plot.Thumbnailer{chart}, nil
}

// rule is a straight line from one side of the plot to the other.
type rule struct {
	at    Point
	style draw.LineStyle
}

// Plot implements [plot.Plotter].
func (r *rule) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if r.at.Y == 0 {
		c.StrokeLine2(r.style, x(r.at.X), c.Min.Y, x(r.at.X), c.Max.Y)
		return
	}
	c.StrokeLine2(r.style, c.Min.X, y(r.at.Y), c.Max.X, y(r.at.Y))
}

// Thumbnail implements [plot.Thumbnailer].
func (r *rule) Thumbnail(c *draw.Canvas) {
	middle := (c.Min.Y + c.Max.Y) / 2
	c.StrokeLine2(r.style, c.Min.X, middle, c.Max.X, middle)
}

// points are a series for package plotter.
func points(of []Point) plotter.XYs {
	xys := make(plotter.XYs, len(of))
	for i, p := range of {
		xys[i] = plotter.XY{X: p.X, Y: p.Y}
	}
	return xys
}

// outline goes along the upper ends and back along the lower.
func outline(of []Point) plotter.XYs {
	xys := make(plotter.XYs, 2*len(of))
	for i, p := range of {
		xys[i] = plotter.XY{X: p.X, Y: p.High}
		xys[len(xys)-1-i] = plotter.XY{X: p.X, Y: p.Low}
	}
	return xys
}

// whiskerEnds gives package plotter the distances it wants.
type whiskerEnds struct {
	plotter.XYs
	plotter.YErrors
}

func ends(of []Point) whiskerEnds {
	e := whiskerEnds{points(of), make(plotter.YErrors, len(of))}
	for i, p := range of {
		e.YErrors[i].Low, e.YErrors[i].High = p.Y-p.Low, p.High-p.Y
	}
	return e
}
