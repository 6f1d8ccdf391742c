package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The size of a picture without its legend. At this size text is as large as in
// a paper's column.
const (
	width  = 5.2 * vg.Inch
	height = 3.4 * vg.Inch
	margin = 6 * vg.Length(1)
)

// palette returns a color that color-blind readers can tell from the
// others (Okabe and Ito's).
func palette(i int) color.NRGBA {
	colors := [...]color.NRGBA{
		{0x00, 0x72, 0xb2, 0xff}, // blue
		{0xd5, 0x5e, 0x00, 0xff}, // vermilion
		{0x00, 0x9e, 0x73, 0xff}, // green
		{0xcc, 0x79, 0xa7, 0xff}, // purple
		{0xe6, 0x9f, 0x00, 0xff}, // orange
		{0x56, 0xb4, 0xe9, 0xff}, // sky
		{0x33, 0x33, 0x33, 0xff}, // nearly black
		{0x99, 0x99, 0x99, 0xff}, // gray
	}
	return colors[i%len(colors)]
}

// dark styles an SVG picture for readers who prefer dark colors: background, text, axes
// and the series that is nearly black.
const dark = `<style>@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
path[style*="fill:#FFFFFF"]{fill:#0d1117!important}
path[style*="stroke:#000000"]{stroke:#9198a1!important}
path[style*="stroke:#333333"]{stroke:#d1d7e0!important}
path[style*="fill:#333333"]{fill:#d1d7e0!important}
path[style*="stroke:#0072B2"]{stroke:#4aa8e0!important}
path[style*="fill:#0072B2"]{fill:#4aa8e0!important}
}</style>
`

// The last two colors are not for curves of their own.
const (
	// Black is for what curves are compared with.
	Black = 6
	// Gray is for rules.
	Gray = 7
)

// glyph returns the mark of a color's points: in print, colors are lost.
func glyph(i int) draw.GlyphDrawer {
	glyphs := [...]draw.GlyphDrawer{
		draw.CircleGlyph{},
		draw.BoxGlyph{},
		draw.TriangleGlyph{},
		draw.CrossGlyph{},
		draw.PyramidGlyph{},
		draw.RingGlyph{},
		draw.PlusGlyph{},
		draw.SquareGlyph{},
	}
	return glyphs[i%len(glyphs)]
}

// faded is a color for bands behind curves.
func faded(c color.NRGBA) color.NRGBA {
	c.A = 0x38
	return c
}

// dress sets fonts and lines of everything that is not a curve.
func dress(p *plot.Plot) {
	sans := func(f *font.Font, size vg.Length) {
		f.Variant, f.Size = "Sans", size
	}
	sans(&p.Title.TextStyle.Font, 11)
	p.Title.Padding = 6
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Label.TextStyle.Font, 10)
		sans(&axis.Tick.Label.Font, 9)
		axis.Label.Padding = 4
		axis.Padding = 4
		axis.Tick.Length = 4
		axis.LineStyle.Width = 0.7
		axis.Tick.LineStyle.Width = 0.7
	}
	sans(&p.Legend.TextStyle.Font, 9)
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.ThumbnailWidth = 24
	p.Legend.Padding = 3
}
