package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pleach-go/pleach/protocol"
)

// testLog is a small [Log]: every root sends to all members of its view, frames
// may get lost, and only a flush mends that. Numbers begin anew in every view.
type testLog struct {
	self    Member
	view    View
	frozen  bool
	cut     []Position
	streams []*testStream // of this view, in order
	kept    []*testStream // of earlier views, for others' flushes
	future  []datum       // of views to come
	out     []outgoing
	record  []string // what was delivered, view by view, for the checker
	views   []View   // installed, until the test has looked at them
	thaws   int
}

// testStream is what one root has sent in one view.
type testStream struct {
	view        uint64
	root        protocol.Rank
	incarnation uint64
	got         []bool // by number
	next        uint64 // everything before is here
	delivered   uint64
}

// datum is a message, or the wish for those from a number on.
type datum struct {
	want        bool
	view        uint64
	root        protocol.Rank
	incarnation uint64
	number      uint64
}

type outgoing struct {
	to    protocol.Rank
	datum datum
}

func newTestLog(self Member, v View) *testLog { return &testLog{self: self, view: v} }

func (l *testLog) stream(d datum) *testStream {
	for _, s := range l.streams {
		if s.root == d.root && s.incarnation == d.incarnation {
			return s
		}
	}
	s := &testStream{view: l.view.Number, root: d.root, incarnation: d.incarnation}
	l.streams = append(l.streams, s)
	slices.SortFunc(l.streams, func(a, b *testStream) int { return int(a.root - b.root) })
	return s
}

// send broadcasts a message; it reports whether it may.
func (l *testLog) send() bool {
	if l.frozen {
		return false
	}
	d := datum{view: l.view.Number, root: l.self.Rank, incarnation: l.self.Incarnation}
	d.number = l.stream(d).next
	l.receive(l.self.Rank, d)
	for _, m := range l.view.Members.All() {
		if m.Rank != l.self.Rank {
			l.out = append(l.out, outgoing{m.Rank, d})
		}
	}
	return true
}

func (l *testLog) receive(from protocol.Rank, d datum) {
	switch {
	case d.want:
		l.answer(from, d)
	case d.view > l.view.Number:
		l.future = append(l.future, d)
	case d.view == l.view.Number && l.view.Holds(d.root, d.incarnation):
		s := l.stream(d)
		for uint64(len(s.got)) <= d.number {
			s.got = append(s.got, false)
		}
		s.got[d.number] = true
		for s.next < uint64(len(s.got)) && s.got[s.next] {
			s.next++
		}
		if !l.frozen {
			l.deliver(s, s.next)
		}
	}
}

// answer gives what is wanted, of this view or an earlier one.
func (l *testLog) answer(from protocol.Rank, d datum) {
	for _, s := range slices.Concat(l.kept, l.streams) {
		if s.view != d.view || s.root != d.root || s.incarnation != d.incarnation {
			continue
		}
		for n := d.number; n < s.next; n++ {
			l.out = append(l.out, outgoing{from, datum{view: d.view, root: d.root, incarnation: d.incarnation, number: n}})
		}
	}
}

func (l *testLog) deliver(s *testStream, upTo uint64) {
	for ; s.delivered < upTo; s.delivered++ {
		if s.delivered >= s.next {
			panic("delivered what is not here")
		}
	}
}

// digest is what has been delivered in the present view.
func (l *testLog) digest() string {
	var b strings.Builder
	for _, s := range l.streams {
		if s.delivered > 0 {
			fmt.Fprintf(&b, "%d.%d<%d ", s.root, s.incarnation, s.delivered)
		}
	}
	return b.String()
}

func (l *testLog) Freeze() []Position {
	l.frozen = true
	var positions []Position
	for _, s := range l.streams {
		if s.next > 0 {
			positions = append(positions, Position{Root: s.root, Incarnation: s.incarnation, Next: s.next})
		}
	}
	return positions
}

func (l *testLog) Thaw() {
	l.frozen, l.cut = false, nil
	l.thaws++
	for _, s := range l.streams {
		l.deliver(s, s.next)
	}
}

func (l *testLog) Flush(cut []Position) {
	if !l.frozen {
		panic("flushed without being frozen")
	}
	l.cut = cut
	l.fetch()
}

// fetch asks for what is missing up to the cut: its holder, and all others, of
// whom those who have accepted have it.
func (l *testLog) fetch() {
	for _, h := range l.cut {
		s := l.stream(datum{root: h.Root, incarnation: h.Incarnation})
		if s.next >= h.Next {
			continue
		}
		for _, m := range l.view.Members.All() {
			if m.Rank != l.self.Rank {
				l.out = append(l.out, outgoing{m.Rank, datum{
					want: true, view: l.view.Number, root: h.Root,
					incarnation: h.Incarnation, number: s.next,
				}})
			}
		}
	}
}

func (l *testLog) Flushed() bool {
	for _, h := range l.cut {
		if l.stream(datum{root: h.Root, incarnation: h.Incarnation}).next < h.Next {
			return false
		}
	}
	return true
}

func (l *testLog) Install(v *View) {
	for _, h := range l.cut {
		l.deliver(l.stream(datum{root: h.Root, incarnation: h.Incarnation}), h.Next)
	}
	l.record = append(l.record, l.digest())
	if v.Holds(l.self.Rank, l.self.Incarnation) {
		l.views = append(l.views, *v)
	}
	l.kept = append(l.kept, l.streams...)
	l.view, l.frozen, l.cut, l.streams = *v, false, nil, nil
	future := l.future
	l.future = nil
	for _, d := range future {
		l.receive(protocol.NoRank, d)
	}
}

// installed returns the next view that has been installed, or false when there is no
// new one.
func (l *testLog) installed() (View, bool) {
	if len(l.views) == 0 {
		return View{}, false
	}
	v := l.views[0]
	l.views = l.views[1:]
	return v, true
}
