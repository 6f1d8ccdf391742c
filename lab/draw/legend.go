package draw

// legend explains the signs of a picture, side by side.
type legend []entry

// entry is one sign, drawn around a point, and what it means.
type entry struct {
	sign func(pic *canvas, x, y float64)
	word string
}

// Sizes of a legend's parts, in pixels.
const (
	signWidth  = 18.0
	entrySpace = 12.0
)

func (l legend) width() float64 {
	var width float64
	for _, e := range l {
		width += signWidth + textWidth(e.word, textSize) + entrySpace
	}
	return width
}

func (l legend) draw(pic *canvas, x, y float64) {
	for _, e := range l {
		e.sign(pic, x+signWidth/2-3, y-0.3*textSize)
		pic.text(x+signWidth, y, textSize, start, e.word)
		x += signWidth + textWidth(e.word, textSize) + entrySpace
	}
}

// markSign makes the sign of a mark.
func markSign(m Mark) func(*canvas, float64, float64) {
	return func(pic *canvas, x, y float64) { pic.mark(m, x, y, 6) }
}
