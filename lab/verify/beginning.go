package main

import (
	"context"
	"encoding/json"
	"io"
)

// Members that begin a group together have different initial states, as if each had loaded its own
// from a file. All of them begin with the state that was offered with the highest version.

// origin is a machine that nobody changes: where the state of a group comes from.
type origin struct {
	Version int
	Process string
}

// Apply changes nothing.
func (o *origin) Apply([]byte) []byte { return nil }

func (o *origin) Snapshot(w io.Writer) error { return json.NewEncoder(w).Encode(o) }

func (o *origin) Restore(r io.Reader) error { return json.NewDecoder(r).Decode(o) }

// OfferState implements [pleach.StateOffer].
func (o *origin) OfferState() uint64 { return uint64(o.Version) }

// versions of initial states are below this: some are equal.
const versions = 8

// newOrigin returns the initial state of this process.
func (m *member) newOrigin() *origin {
	o := &origin{1 + m.random.IntN(versions), m.process}
	m.journal.write(Event{Type: evOffer, Seq: o.Version})
	return o
}

// noteOrigin writes down the state that this process has begun with.
func (m *member) noteOrigin(ctx context.Context, o *origin) {
	var got origin
	if m.replica.Read(ctx, func() { got = *o }) == nil {
		m.journal.write(Event{Type: evBegin, Seq: got.Version, From: got.Process})
	}
}

// groups returns how many groups there were, one after the other.
func (c *checker) groups() (n int) {
	for _, h := range c.histories {
		n = max(n, h.group+1)
	}
	return n
}

// checkBeginnings: all processes of a group have got the same initial state, the one with the
// highest version of those that have begun it and have not died before the first one had its state:
// a state that only they had is lost, and the others begin with theirs. It returns how many states
// were compared.
func (c *checker) checkBeginnings() (n int) {
	for group := range c.groups() {
		var first *Event
		var firstBy string
		var settled uint64 // the first view in which a process had its state
		for _, h := range c.histories {
			for i := range h.events {
				e := &h.events[i]
				if h.group != group || e.Type != evBegin {
					continue
				}
				n++
				if view := h.viewAt(i); settled == 0 || view < settled {
					settled = view
				}
				if first == nil {
					first, firstBy = e, h.process
				} else if first.From != e.From {
					c.violated("a group begins with one state", e.At, []string{h.process, firstBy},
						"%s begins with the state of %s, %s with that of %s", h.process, e.From, firstBy, first.From)
				}
			}
		}
		if first == nil {
			continue
		}
		for _, h := range c.histories {
			version := h.founded(uint64(group)*groupViews + 1)
			if h.group == group && version > first.Seq && h.viewAt(len(h.events)) >= settled {
				c.violated("a group begins with the newest state", first.At, []string{h.process, firstBy},
					"%s begins with version %d of %s, but %s has begun the group with version %d", firstBy, first.Seq, first.From,
					h.process, version)
			}
		}
	}
	return n
}

// viewAt returns the number of the view that a process was in at an event.
func (h *history) viewAt(event int) (view uint64) {
	for _, e := range h.events[:event] {
		if e.Type == evView {
			view = e.View
		}
	}
	return view
}

// founded returns the version that a process has offered, if it was in a view, the first of its
// group.
func (h *history) founded(view uint64) (version int) {
	for _, e := range h.events {
		switch {
		case e.Type == evOffer:
			version = e.Seq
		case e.Type == evView && e.View == view:
			return version
		}
	}
	return 0
}
