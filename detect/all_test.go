package detect

import (
	"errors"
	"reflect"
	"testing"
)

func TestFeed(t *testing.T) {
	f := NewFeed()
	j := started(t, f)
	if f.Suspect(3, nil) {
		t.Error("a rank that is not watched was suspected")
	}
	f.Watch(PeerList([]Peer{{Rank: 3, Incarnation: 9}}))
	boom := errors.New("exit status 1")
	for range 2 { // Repetitions are no news.
		if !f.Suspect(3, boom) {
			t.Error("a rank that is watched was not suspected")
		}
	}
	cause := j.want(t, suspected(3, 9))
	var s *Suspicion
	if !errors.Is(cause, boom) || !errors.Is(cause, ErrReported) || !errors.As(cause, &s) || s.Rank != 3 {
		t.Errorf("cause is %v", cause)
	}
	f.Trust(3)
	j.want(t, suspected(3, 9), trusted(3, 9))
}

// A peer is suspected while any detector suspects it.
func TestAllWithdrawsWhenNoneSuspects(t *testing.T) {
	a, b := NewFeed(), NewFeed()
	both := All(a, None{}, b)
	j := started(t, both)
	both.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 4}, {Rank: 2, Incarnation: 4}}))

	a.Suspect(1, nil)
	j.want(t, suspected(1, 4))
	b.Suspect(1, nil)
	j.want(t, suspected(1, 4), suspected(1, 4))
	a.Trust(1) // b still suspects it.
	a.Suspect(2, nil)
	j.want(t, suspected(1, 4), suspected(1, 4), suspected(2, 4))
	b.Trust(1)
	j.want(t, suspected(1, 4), suspected(1, 4), suspected(2, 4), trusted(1, 4))
}

// Votes against a process do not count against its successor.
func TestAllForgetsFormerViews(t *testing.T) {
	a, b := NewFeed(), NewFeed()
	both := All(a, b)
	j := started(t, both)
	both.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 4}, {Rank: 2, Incarnation: 4}}))
	a.Suspect(1, nil)
	j.want(t, suspected(1, 4))
	both.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 5}}))
	b.Suspect(1, nil)
	j.want(t, suspected(1, 4), suspected(1, 5))
	b.Trust(1)
	j.want(t, suspected(1, 4), suspected(1, 5), trusted(1, 5))
	if a.Suspect(2, nil) {
		t.Error("rank 2 is still watched")
	}
}

// A report may be under way while the view changes.
func TestAllDropsLateReports(t *testing.T) {
	a := All().(*all)
	a.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 5}}))
	for _, late := range []Report{suspected(1, 4), trusted(1, 4), suspected(2, 5)} {
		a.pass(0, late, func(r Report) { t.Errorf("told: %+v", r) })
	}
}

// A view that learns an incarnation keeps what is held of it.
func TestAllKeepsSuspicionsOfTheSameProcess(t *testing.T) {
	a := NewFeed()
	one := All(a)
	j := started(t, one)
	one.Watch(PeerList([]Peer{{Rank: 1}}))
	a.tracker.Met(1, 7)
	a.Suspect(1, nil)
	j.want(t, suspected(1, 7))
	one.Watch(PeerList([]Peer{{Rank: 1, Incarnation: 7}}))
	a.Trust(1)
	j.want(t, suspected(1, 7), trusted(1, 7))
}

// If one cannot start, none is left running.
func TestAllStartsAllOrNone(t *testing.T) {
	a, b := NewFeed(), NewFeed()
	closed(t, b)
	if err := All(a, b).Start(func(Report) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want %v", err, ErrClosed)
	}
	if err := a.Start(func(Report) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("the first was left open: %v", err)
	}
}

// aware is a detector that needs its member.
type aware struct {
	None
	member Member
}

func (a *aware) SetMember(m Member) { a.member = m }

func TestAllPassesTheMemberOn(t *testing.T) {
	a, want := new(aware), Member{Rank: 3, Incarnation: 7, Address: "a:1", Group: "g"}
	All(NewFeed(), All(a)).(MemberAware).SetMember(want)
	if !reflect.DeepEqual(a.member, want) {
		t.Errorf("the detector works for %+v, want %+v", a.member, want)
	}
}
