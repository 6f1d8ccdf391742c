package stream

import "github.com/pleach-go/pleach/protocol"

// tailProbe repeats the offer to a neighbor a few times after a stream has fallen
// quiet, as the tail loss probe of TCP does (RFC 8985). Correction assumes that frames
// between live processes arrive. Where connections break or queues overflow they may
// not, and the last segment of a burst has no successor whose number would show the
// hole.
type tailProbe struct {
	due       protocol.Time
	remaining int // probes to come
}

// The first probe follows after tailProbeInterval, and each of the others after four
// times the interval before.
const (
	tailProbeInterval = 40 * millisecond
	tailProbes        = 4
)

// armTailProbe starts the probes of a flow over.
func (m *Member) armTailProbe(now protocol.Time, f *flow) {
	f.tailProbe.remaining = tailProbes
	f.tailProbe.due = min(f.tailProbe.due, now+tailProbeInterval)
	m.schedule(f, f.tailProbe.due)
}

// sendTailProbe makes an offer to the right neighbor, unless that has offered as much
// itself. As all members do so, every member that may lack something gets one.
func (m *Member) sendTailProbe(now protocol.Time, f *flow) {
	p := &f.tailProbe
	p.due = protocol.Never
	if f.correction.heardTo >= f.next {
		return
	}
	if quiet := f.activeAt + max(tailProbeInterval, m.skew.patience()); p.remaining == tailProbes && now < quiet {
		p.due = quiet // the stream continues: its corrections show holes
		return
	}
	p.remaining--
	if p.remaining > 0 {
		p.due = now + tailProbeInterval<<(2*(tailProbes-p.remaining))
	}
	m.offerPast(now, f, 1, true, undirected)
}
