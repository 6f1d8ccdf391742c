package relay

import "slices"

// The lead broadcasts watermarks in its zone: up to where it has each origin's messages, and up
// to where all zones have those of its own zone. The other delegates watch them. If the
// watermarks do not move although there is something to ship, the second delegate ships after
// a while, the third after twice that time, and so on. It stops when the watermarks of a
// delegate before it move again, and waits for longer the next time: if all zones are
// slow, more delegates that ship make them slower.

// watcher is the part of a delegate that is not the lead.
type watcher struct {
	*journal
	lead       *shipping
	progressed Time // last time of an acknowledgment, or of nothing to acknowledge
	waiting    bool // something was to be acknowledged at the last step
	backoff    int  // times that this delegate has shipped although one before it makes progress
}

// restart begins to watch from scratch: the delegates before this one are others, or there are none.
func (w *watcher) restart(now Time) {
	w.active = w.index == 0
	w.progressed, w.backoff = now, 0
	for _, s := range w.streams {
		s.before = 0
	}
}

// behind reports whether a message of this zone is not known to be in all others, although
// none of them is away.
func (w *watcher) behind() bool {
	return slices.ContainsFunc(w.sorted, (*stream).wanted) && len(w.lead.away) == 0
}

// watch lets this delegate ship if those before it make no progress.
func (w *watcher) watch(now Time) {
	if w.active || w.index < 0 {
		return
	}
	before := w.waiting
	switch w.waiting = w.behind(); {
	case !before || !w.waiting:
		w.progressed = now
	case now >= w.progressed+w.patience():
		w.active = true
	}
}

func (w *watcher) deadline(d *deadline) {
	if !w.active && w.index >= 0 && slices.ContainsFunc(w.sorted, (*stream).wanted) {
		d.at(w.progressed + w.patience())
	}
}

// patience is how long this delegate waits for those before it.
func (w *watcher) patience() Time { return w.config.stall(w.backoff) * Time(w.index) }

// handleWatermark takes in a watermark of a delegate. It reports whether this delegate stops
// shipping, since one before it makes progress.
func (w *watcher) handleWatermark(now Time, rank int, f *frame) (yields bool) {
	i := slices.Index(w.order, rank)
	before := i >= 0 && i < w.index
	for _, p := range f.positions {
		s := w.stream(now, p.Origin)
		if p.Acked > s.acked {
			w.acknowledged(s, p.Acked)
			w.progressed = now
		}
		if before && p.Acked > s.before {
			s.before = p.Acked
			yields = w.active
			w.progressed = now
		}
		w.expect(now, s, p.Seq)
	}
	if yields {
		w.active = false
		w.backoff++
	}
	return yields
}
