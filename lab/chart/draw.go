package chart

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// SVG draws the chart as a picture without loss.
func (c *Chart) SVG(w io.Writer) error {
	p, side, err := c.plot()
	if err != nil {
		return err
	}
	canvas := vgsvg.New(width+side, height)
	paint(draw.New(canvas), p, side)
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// Without the font, a browser uses one that is as wide.
	picture := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,sans-serif"))
	_, err = w.Write(bytes.Replace(picture, []byte("<g "), []byte(dark+"<g "), 1))
	return err
}

// PNG draws the chart in pixels.
func (c *Chart) PNG(w io.Writer) error {
	p, side, err := c.plot()
	if err != nil {
		return err
	}
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width+side, height), vgimg.UseDPI(160))}
	paint(draw.New(canvas), p, side)
	_, err = canvas.WriteTo(w)
	return err
}

// spare is room for names in a legend where a browser has no font but a wider one.
const spare = 1.22

// paint draws the plot and, next to it, where no curve can be, its legend.
func paint(c draw.Canvas, p *plot.Plot, side vg.Length) {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	c.FillPolygon(p.BackgroundColor, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
	p.Draw(draw.Crop(c, margin, -side-margin, margin, -margin))
	if side > 0 {
		legend.Draw(draw.Crop(c, width+margin, 0, 0, -30))
	}
}

// plot makes the plot, and returns the width of the legend next to it.
func (c *Chart) plot() (p *plot.Plot, side vg.Length, err error) {
	p = plot.New()
	dress(p)
	p.Title.Text = c.Title
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faded(palette(Gray)), faded(palette(Gray))
	p.Add(grid)
	bars := 0
	for _, s := range c.Series {
		if s.Kind == Bars {
			bars++
		}
	}
	drawn := 0
	for _, s := range c.Series {
		if len(s.Points) == 0 {
			return nil, 0, fmt.Errorf("chart: %s: series %q is empty", c.Name, s.Name)
		}
		entries, err := s.add(p, drawn, bars)
		if err != nil {
			return nil, 0, fmt.Errorf("chart: %s: series %q: %w", c.Name, s.Name, err)
		}
		if s.Kind == Bars {
			drawn++
		}
		if s.Name == "" {
			continue
		}
		p.Legend.Add(s.Name, entries...)
		side = max(side, spare*p.Legend.TextStyle.Width(s.Name)+p.Legend.ThumbnailWidth+3*margin)
	}
	if len(c.Categories) > 0 {
		p.NominalX(c.Categories...)
	}
	if bars > 0 {
		p.Y.Max *= 1.06 // else the longest looks cut off
	}
	c.X.apply(&p.X, len(c.Categories) > 0)
	c.Y.apply(&p.Y, false)
	return p, side, nil
}

// apply puts ends, scale and ticks on an axis that knows its data; one that is
// named has its ticks already.
func (a *Axis) apply(to *plot.Axis, named bool) {
	to.Label.Text = a.Label
	if a.From != a.To {
		to.Min, to.Max = a.From, a.To
	}
	if a.Log {
		to.Scale, to.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		to.Min = max(to.Min, math.SmallestNonzeroFloat64)
	}
	if a.Ticks == nil && !a.Log && !named {
		to.Tick.Marker = plot.TickerFunc(roundTicks)
	}
	if a.Ticks != nil {
		ticks := make(plot.ConstantTicks, len(a.Ticks))
		for i, t := range a.Ticks {
			ticks[i] = plot.Tick{Value: t.Value, Label: t.Label}
		}
		to.Tick.Marker = ticks
	}
}

// roundTicks are at multiples of 1, 2 or 5 with any number of zeros, about six.
func roundTicks(low, high float64) (ticks []plot.Tick) {
	const wanted = 6
	step := math.Pow(10, math.Floor(math.Log10((high-low)/wanted)))
	for _, times := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (high-low)/step > wanted {
			step *= times
		}
	}
	for v := math.Ceil(low/step) * step; v <= high+step/1000; v += step {
		// +0: never -0
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(math.Round(v/step)*step+0, 'g', 6, 64)})
	}
	return ticks
}
