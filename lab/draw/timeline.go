package draw

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// Limits of a timeline: larger ones are neither readable nor small.
const (
	// MaxTimelineSize is the largest number of processes.
	MaxTimelineSize = 64
	// MaxTimelineSends is how many sends in a row it has room for.
	MaxTimelineSends = 1000
)

// Sizes of a timeline's parts, in pixels.
const (
	minSendWidth  = 14.0 // of one overhead
	maxSendWidth  = 28.0
	timelineWidth = 640.0 // that short runs are stretched to
	rowHeight     = 18.0
	portHeight    = 7.0 // of a box for a send or a receive
)

// Timeline is a run as Corrected Trees draws it (Figure 5a): a row for every
// process with its sends above and its receives below the line.
type Timeline struct {
	size   protocol.Rank
	o      protocol.Time
	events []logp.Event
	last   protocol.Time // when the last of them is over
}

// NewTimeline makes a timeline of that many processes with overhead o, in which
// only the root is colored so far.
func NewTimeline(size, root protocol.Rank, o protocol.Time) (*Timeline, error) {
	if size > MaxTimelineSize {
		return nil, fmt.Errorf("a timeline of %d processes cannot be read: choose at most %d", size, MaxTimelineSize)
	}
	t := &Timeline{size: size, o: o}
	t.Add(logp.Event{What: logp.Colored, Rank: root, Peer: protocol.NoRank})
	return t, nil
}

// Add takes the next event of the run, in order of time.
func (t *Timeline) Add(e logp.Event) {
	t.last = max(t.last, e.Time+t.o)
	if t.last <= MaxTimelineSends*t.o {
		t.events = append(t.events, e)
	}
}

// Write draws the timeline as SVG.
func (t *Timeline) Write(w io.Writer, title, subtitle string) error {
	if t.last > MaxTimelineSends*t.o {
		return fmt.Errorf("the run lasts until %d, but a timeline has room for %d sends in a row, until %d: choose fewer processes or faults, or a smaller latency",
			t.last, MaxTimelineSends, MaxTimelineSends*t.o)
	}
	var pic canvas
	legend := t.legend()
	pic.text(margin, margin+titleSize, titleSize, start, title)
	pic.text(margin, margin+40, textSize, start, subtitle)
	legend.draw(&pic, margin, margin+62)
	right := max(t.x(t.last)+t.timeWidth()/2, margin+max(textWidth(title, titleSize), textWidth(subtitle, textSize),
		legend.width()))
	t.drawAxis(&pic)
	t.drawRows(&pic, t.x(t.last))
	t.drawFlights(&pic)
	t.drawPorts(&pic)
	return pic.write(w, right+margin, t.y(t.size-1)+rowHeight/2+margin)
}

// x is where a time is, y where the line of a process is.
func (t *Timeline) x(at protocol.Time) float64 {
	return 2*margin + t.sendWidth()*float64(at)/float64(t.o)
}

// sendWidth is the width of one overhead: short runs have more room for it.
func (t *Timeline) sendWidth() float64 {
	sends := float64(t.last) / float64(t.o)
	return min(max(timelineWidth/sends, minSendWidth), maxSendWidth)
}

func (t *Timeline) y(r protocol.Rank) float64 {
	return margin + headHeight + rowHeight*(float64(r)+1.5)
}

// drawAxis writes times along the top, as many as there is room for.
func (t *Timeline) drawAxis(pic *canvas) {
	step := protocol.Time(1)
	for i := 1; t.x(step)-t.x(0) < max(2.5*t.sendWidth(), t.timeWidth()+3*labelSpace); i++ {
		step = roundNumber(i)
	}
	top := t.y(0) - rowHeight
	for at := protocol.Time(0); at <= t.last; at += step {
		pic.text(t.x(at), top, labelSize, middle, strconv.Itoa(int(at)))
		pic.add(`<path class="row" d="M%.2f %.2fV%.2f"/>`, t.x(at), top+4, t.y(t.size-1)+rowHeight/2)
	}
}

// roundNumber is the i-th of 1, 2, 5, 10, 20, 50, …
func roundNumber(i int) protocol.Time {
	n := [...]protocol.Time{1, 2, 5}[i%3]
	for ; i >= 3; i -= 3 {
		n *= 10
	}
	return n
}

// timeWidth is the width of the longest label on the axis.
func (t *Timeline) timeWidth() float64 {
	return textWidth(strconv.Itoa(int(t.last)), labelSize)
}

// drawRows draws the processes' lines, and hatches them from their deaths on.
func (t *Timeline) drawRows(pic *canvas, right float64) {
	pic.add(`<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
		`<path d="M0 0V5" stroke="#c1121f" stroke-width="1.6"/></pattern>`)
	for r := range t.size {
		pic.text(2*margin-8, t.y(r)+0.36*labelSize, labelSize, end, strconv.Itoa(int(r)))
		pic.add(`<path class="row" d="M%.2f %.2fH%.2f"/>`, t.x(0), t.y(r), right)
	}
	for _, e := range t.events {
		if e.What == logp.Died {
			pic.hatch(t.x(e.Time), t.y(e.Rank)-portHeight, right-t.x(e.Time))
		}
	}
}

// drawFlights draws messages under way, from the end of a send to where they
// arrive. Events do not say which send a receive belongs to; of several from
// the same sender the oldest is taken.
func (t *Timeline) drawFlights(pic *canvas) {
	type line struct {
		from, to protocol.Rank
		phase    string
	}
	sent := map[line][]protocol.Time{}
	for _, e := range t.events {
		arrived := e.Time
		switch e.What {
		case logp.Sent:
			l := line{e.Rank, e.Peer, e.Phase}
			sent[l] = append(sent[l], e.Time)
			continue
		case logp.Received:
			arrived -= t.o
		case logp.Lost:
		default:
			continue
		}
		l := line{e.Peer, e.Rank, e.Phase}
		began := sent[l][0]
		sent[l] = sent[l][1:]
		pic.add(`<path class="%s flight" d="M%.2f %.2fL%.2f %.2f"/>`, e.Phase,
			t.x(began+t.o), t.y(e.Peer), t.x(arrived), t.y(e.Rank))
	}
}

// drawPorts draws sends above the line, receives below, and the moment of
// coloring.
func (t *Timeline) drawPorts(pic *canvas) {
	for _, e := range t.events {
		switch e.What {
		case logp.Sent:
			pic.port(e.Phase, t.x(e.Time), t.y(e.Rank)-portHeight, t.sendWidth())
		case logp.Received:
			pic.port(e.Phase+" receive", t.x(e.Time-t.o), t.y(e.Rank), t.sendWidth())
		case logp.Colored:
			pic.mark(Colored, t.x(e.Time), t.y(e.Rank), 3)
		}
	}
}

// legend explains the signs that occur.
func (t *Timeline) legend() legend {
	portSign := func(class string) func(*canvas, float64, float64) {
		return func(pic *canvas, x, y float64) { pic.port(class, x-minSendWidth/2, y-portHeight/2, minSendWidth) }
	}
	has := func(what logp.What, phase string) bool {
		return slices.ContainsFunc(t.events, func(e logp.Event) bool { return e.What == what && e.Phase == phase })
	}
	var l legend
	for phase := range protocol.Phase(protocol.Phases) {
		if name := phase.String(); has(logp.Sent, name) {
			l = append(l,
				entry{portSign(name), name + " send"},
				entry{portSign(name + " receive"), "receive"})
		}
	}
	l = append(l, entry{markSign(Colored), "colored"})
	if has(logp.Died, "") {
		l = append(l, entry{hatch, "dead"})
	}
	return l
}

func hatch(pic *canvas, x, y float64) { pic.hatch(x-minSendWidth/2, y-portHeight, minSendWidth) }

// port draws what keeps a port busy for one overhead.
func (c *canvas) port(class string, x, y, width float64) {
	c.add(`<rect class="%s" stroke-width=".8" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`,
		class, x+0.5, y, width-1, portHeight)
}

// hatch draws the time of being dead.
func (c *canvas) hatch(x, y, width float64) {
	c.add(`<rect fill="url(#hatch)" fill-opacity=".6" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`,
		x, y, width, 2*portHeight)
}
