package draw

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spans is a trace of OpenTelemetry: a row for every span, below its parent's.
type Spans struct {
	rows  []span
	began time.Time
	last  time.Duration
}

// span is a row.
type span struct {
	id, parent  string
	process     string
	name        string
	kind        spanKind
	start, end  time.Time
	depth, over int // over is the row of the parent
}

// spanKind is a span's kind, as the exporter writes it.
type spanKind int

const (
	client   spanKind = 3
	producer spanKind = 4
	consumer spanKind = 5
)

// class is the color of a kind.
func (k spanKind) class() string {
	switch k {
	case producer:
		return "dissemination"
	case consumer:
		return "correction"
	case client:
		return "acknowledgment"
	}
	return "uncolored"
}

// processAttribute is the attribute of a resource that names the process.
const processAttribute = "service.instance.id"

// MaxSpans is the largest trace that is worth a picture.
const MaxSpans = 64

// ReadSpans reads one trace as the exporter stdouttrace writes it: an object for each span.
func ReadSpans(r io.Reader) (*Spans, error) {
	var t Spans
	for d := json.NewDecoder(r); ; {
		var o struct {
			Name        string
			SpanContext struct{ TraceID, SpanID string }
			Parent      struct{ SpanID string }
			SpanKind    spanKind
			StartTime   time.Time
			EndTime     time.Time
			Resource    []struct {
				Key   string
				Value struct{ Value any }
			}
		}
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return &t, t.order()
		case err != nil:
			return nil, err
		case len(t.rows) == MaxSpans:
			return nil, fmt.Errorf("a trace of more than %d spans cannot be read", MaxSpans)
		}
		s := span{
			id: o.SpanContext.SpanID, parent: o.Parent.SpanID, name: o.Name, kind: o.SpanKind,
			start: o.StartTime, end: o.EndTime,
		}
		for _, a := range o.Resource {
			if a.Key == processAttribute {
				s.process = fmt.Sprint(a.Value.Value)
			}
		}
		t.rows = append(t.rows, s)
	}
}

// order sorts the spans: children follow their parent in the order of time.
func (t *Spans) order() error {
	all := t.rows
	slices.SortStableFunc(all, func(a, b span) int { return a.start.Compare(b.start) })
	t.rows = nil
	var add func(parent string, depth, over int)
	add = func(parent string, depth, over int) {
		for _, s := range all {
			if s.parent == parent {
				s.depth, s.over = depth, over
				t.rows = append(t.rows, s)
				add(s.id, depth+1, len(t.rows)-1)
			}
		}
	}
	add(strings.Repeat("0", 16), 0, 0)
	if len(t.rows) == 0 || len(t.rows) != len(all) {
		return fmt.Errorf("%d of %d spans have no parent in the trace", len(all)-len(t.rows), len(all))
	}
	t.began = t.rows[0].start
	for _, s := range t.rows {
		t.last = max(t.last, s.end.Sub(t.began))
	}
	return nil
}

// minSpanWidth is the width of spans that are too short to be seen.
const minSpanWidth = 3.0

// Write draws the trace as SVG.
func (t *Spans) Write(w io.Writer, title, subtitle string) error {
	var pic canvas
	left := 0.0
	for _, s := range t.rows {
		left = max(left, textWidth(s.label(), labelSize)+s.indent())
	}
	left += margin + labelSpace
	top := margin + headHeight + rowHeight
	x := func(at time.Time) float64 { return left + timelineWidth*float64(at.Sub(t.began))/float64(t.last) }
	y := func(row int) float64 { return top + rowHeight*float64(row) }
	pic.text(margin, margin+titleSize, titleSize, start, title)
	pic.text(margin, margin+40, textSize, start, subtitle)
	t.legend().draw(&pic, margin, margin+62)
	t.drawAxis(&pic, left, y(0)-rowHeight, y(len(t.rows)-1)+rowHeight/2)
	for i, s := range t.rows {
		pic.text(margin+s.indent(), y(i)+0.36*labelSize, labelSize, start, s.label())
		if s.kind == consumer {
			pic.add(`<path class="%s flight" d="M%.2f %.2fL%.2f %.2f"/>`, producer.class(), x(t.rows[s.over].start), y(s.over),
				x(s.start), y(i))
		}
		width := max(x(s.end)-x(s.start), minSpanWidth)
		pic.add(`<rect class="%s" stroke-width=".8" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, s.kind.class(), x(s.start),
			y(i)-portHeight/2, width, portHeight)
	}
	return pic.write(w, left+timelineWidth+2*margin, y(len(t.rows)-1)+rowHeight+margin)
}

// label names a row.
func (s *span) label() string { return strings.TrimSpace(s.process + " " + s.name) }

// indent shows whose child a span is.
func (s *span) indent() float64 { return 12 * float64(s.depth) }

// drawAxis writes microseconds along the top.
func (t *Spans) drawAxis(pic *canvas, left, top, bottom float64) {
	last := int(t.last / time.Microsecond)
	scale, step := timelineWidth*float64(time.Microsecond)/float64(t.last), 1
	for i := 1; float64(step)*scale < textWidth(strconv.Itoa(last)+" µs", labelSize)+3*labelSpace; i++ {
		step = int(roundNumber(i))
	}
	for at := 0; at <= last; at += step {
		pic.text(left+float64(at)*scale, top, labelSize, middle, strconv.Itoa(at)+" µs")
		pic.add(`<path class="row" d="M%.2f %.2fV%.2f"/>`, left+float64(at)*scale, top+4, bottom)
	}
}

// legend explains the colors.
func (t *Spans) legend() (l legend) {
	for _, e := range []struct {
		kind spanKind
		word string
	}{{0, "the whole"}, {producer, "send"}, {consumer, "receive"}, {client, "wait for acknowledgments"}} {
		l = append(l, entry{func(pic *canvas, x, y float64) {
			pic.port(e.kind.class(), x-minSendWidth/2, y-portHeight/2, minSendWidth)
		}, e.word})
	}
	return l
}
