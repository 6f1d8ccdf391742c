package stream

import (
	"testing"

	"github.com/pleach-go/pleach/protocol"
)

// repaired gives a member a segment of root 0 as a repair.
func repaired(t *testing.T, m *Member, now protocol.Time, from protocol.Rank, number uint64) {
	t.Helper()
	f := frame{
		kind: repair, begins: true, incarnation: 1, first: number, messages: uint32(number),
		segment: make([]byte, 10),
	}
	if err := m.Receive(now, from, f.append(nil)); err != nil {
		t.Fatal(err)
	}
}

// A member that gets the newest segment by correction asks its sender for adoption, unless the tree
// brings something within its patience. What it pulls of old segments is no reason to.
func TestOrphanAsksForAdoption(t *testing.T) {
	for _, c := range []struct {
		what   string
		wanted uint64
		fed    bool
		orphan bool
	}{
		{what: "the newest", wanted: 1, orphan: true},
		{what: "the newest, and the tree is late", wanted: 1, fed: true},
		{what: "an old one", wanted: 2},
	} {
		m, f := behind(t, c.wanted)
		repaired(t, m, 10, 7, 0)
		if (f.foster.due == 10+m.skew.patience()) == (c.wanted > 1) {
			t.Errorf("%s: an orphan from %d on", c.what, f.foster.due)
		}
		if c.fed {
			fr := frame{kind: data, begins: true, incarnation: 1}
			if err := m.Receive(11, f.parent, fr.append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		asked := protocol.NoRank
		for now := protocol.Time(10); now < 10+2*m.skew.patience(); now += millisecond / 10 {
			for _, s := range drain(m, now) {
				if kind(s.frame[0]) == adopt {
					asked = s.to
				}
			}
		}
		if (asked == 7) != c.orphan || (f.foster.parent == 7) != c.orphan {
			t.Errorf("%s: rank %d is asked for adoption", c.what, asked)
		}
	}
}

// The last sender that has brought something is asked, when the first one has made it an orphan.
func TestLatestSourceAdopts(t *testing.T) {
	m, f := behind(t, 2)
	repaired(t, m, 10, 7, 1)
	due := f.foster.due
	repaired(t, m, 20, 8, 2)
	if f.foster.due != due {
		t.Errorf("due at %d, then at %d", due, f.foster.due)
	}
	m.findFoster(f)
	if f.foster.parent != 8 || f.foster.due != protocol.Never {
		t.Errorf("%+v", f.foster)
	}
}

// The foster parent is told when the tree works again, whichever segment that brings, and once.
func TestFosterParentIsTold(t *testing.T) {
	m, f := behind(t, 0)
	told := func(now protocol.Time) (n int) {
		for _, s := range drain(m, now) {
			if fr, err := parse(s.frame); err == nil && fr.kind == adopt && fr.first > 0 && s.to == 7 {
				n++
			}
		}
		return n
	}
	for number, want := range []int{1, 1, 0} {
		f.foster.due = 5000 * millisecond
		if want > 0 {
			f.foster.parent = 7
		}
		fr := frame{kind: data, begins: true, incarnation: 1, first: uint64(number)}
		if err := m.Receive(1, f.parent, fr.append(nil)); err != nil {
			t.Fatal(err)
		}
		if n := told(1); n != want || f.foster.due != protocol.Never {
			t.Errorf("segment %d: told %d times, an orphan at %d", number, n, f.foster.due)
		}
	}
}

// An adoption lasts for so many segments, and for no more. It can be renewed, and ended. There is a
// limit, which those that are adopted already do not meet.
func TestAdoptions(t *testing.T) {
	f := &flow{positions: positions{next: 10}}
	for r := range protocol.Rank(maxFostered + 2) {
		f.adopt(r, 0)
	}
	if n := len(f.foster.children); n != maxFostered {
		t.Fatalf("%d orphans", n)
	}
	f.next = 20
	f.adopt(3, 0)
	f.adopt(5, 30)
	f.adopt(maxFostered+1, 30)
	f.adopt(0, 30)
	f.adopt(1, 0) // the first one is renewed
	until := map[protocol.Rank]uint64{}
	for _, a := range f.foster.children {
		until[a.orphan] = a.until
	}
	if len(until) != maxFostered-2 || len(f.foster.children) != len(until) || until[3] != 20+fosterSegments ||
		until[1] != until[3] || until[2] != 10+fosterSegments {
		t.Errorf("%v", f.foster.children)
	}
	m := group(t, Config{}, 20)[19]
	fed := func(number uint64) (n int) {
		seg := segment{frame: make([]byte, 40)}
		m.feedOrphans(f, number, &seg)
		n = m.outbox.Len()
		for m.outbox.Len() > 0 {
			m.outbox.Pop()
		}
		return n
	}
	if n := fed(9 + fosterSegments); n != maxFostered-2 || m.Stats().Grafted != uint64(n) {
		t.Errorf("%d orphans are fed", n)
	}
	if n := fed(10 + fosterSegments); n != 2 {
		t.Errorf("%d orphans are fed after their adoption", n)
	}
}

// Only members are adopted.
func TestOnlyMembersAreAdopted(t *testing.T) {
	m, f := middle(t)
	for peer, want := range map[protocol.Rank]int{20: 0, 7: 1} {
		fr := frame{kind: adopt, root: 0, incarnation: 1}
		if err := m.Receive(1, peer, fr.append(nil)); err != nil {
			t.Fatal(err)
		}
		if n := len(f.foster.children); n != want {
			t.Errorf("rank %d: %d orphans", peer, n)
		}
		f.foster.children = nil
	}
}
