package control

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/internal/base/access"
	"github.com/pleach-go/pleach/internal/machine/membership"
)

var anyContact = rapid.Custom(func(t *rapid.T) Contact {
	return Contact{ID: rapid.String().Draw(t, "id"), Address: rapid.String().Draw(t, "address")}
})

// What a process says of itself survives the wire, and a part of it is refused, or is the part
// without a view.
func TestIntroductionsSurviveTheWire(t *testing.T) {
	view := membership.View{
		Number: 3, Slots: 2,
		Members: membership.MembersOf(membership.Member{Identity: "a", Incarnation: 1}),
	}
	rapid.Check(t, func(t *rapid.T) {
		i := &Introduction{
			Contact: anyContact.Draw(t, "contact"), Role: Role(rapid.IntRange(0, int(Member)).Draw(t, "role")),
			Marks: rapid.SliceOfN(rapid.Uint64(), 0, 3).Draw(t, "marks"), Others: rapid.SliceOfN(anyContact, 0, 3).Draw(t,
				"others"),
		}
		whole := len(i.Encode(nil))
		if rapid.Bool().Draw(t, "view") {
			i.View = &view
		}
		b := i.Encode(nil)
		got, err := DecodeIntroduction(b)
		if err != nil || got.Contact != i.Contact || got.Role != i.Role || (got.View == nil) != (i.View == nil) ||
			len(got.Marks) != len(i.Marks) || len(got.Others) != len(i.Others) {
			t.Fatalf("%+v became %+v, %v", i, got, err)
		}
		for k := range i.Marks {
			if got.Marks[k] != i.Marks[k] {
				t.Fatalf("%+v became %+v", i, got)
			}
		}
		for k := range i.Others {
			if got.Others[k] != i.Others[k] {
				t.Fatalf("%+v became %+v", i, got)
			}
		}
		if got.View != nil && !got.View.Equal(i.View) {
			t.Fatalf("%v became %v", i.View, got.View)
		}
		if cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut"); cut != whole {
			if got, err := DecodeIntroduction(b[:cut]); err == nil {
				t.Fatalf("%d of %d bytes became %+v", cut, len(b), got)
			}
		}
		if _, err := DecodeIntroduction(append(b, 0)); err == nil {
			t.Fatal("one byte more is taken")
		}
	})
}

// A part of a request is refused, and so is a flag that is none.
func TestPartsOfRequestsAreRefused(t *testing.T) {
	for name, r := range goldenRequests() {
		b := Encode(r)
		for cut := range len(b) {
			if _, ok := r.(Force); ok && cut >= 9 && (cut-9)%4 == 0 {
				continue // fewer ranks
			}
			if got, err := Decode(b[:cut]); err == nil {
				t.Errorf("%s: %d of %d bytes became %+v", name, cut, len(b), got)
			}
		}
	}
	b := Encode(Join{Replace: true})
	b[len(b)-1] = flagReplace | flagObserver
	if r, err := Decode(b); err != nil || r != Request(Join{membership.Member{Observer: true}, true}) {
		t.Errorf("both flags: %+v, %v", r, err)
	}
	b[len(b)-1] = 4
	if !fails(Decode(b)) {
		t.Error("a flag of 4 is taken")
	}
}

func fails[T any](_ T, err error) bool { return err != nil }

// A candidate learns whether it may try again, and when a member has joined whose ID it has.
func TestRefusals(t *testing.T) {
	for err, want := range map[error]Status{
		membership.ErrTimeout:      Retry,
		membership.ErrFull:         Retry,
		membership.ErrLeft:         Retry,
		&membership.EvictedError{}: Retry,
		errors.New("go away"):      Refused,
		&Refusal{Status: Retry}:    Retry,
		membership.ErrSuperseded:   Refused,
	} {
		var refusal *Refusal
		if _, got := Open(Refuse(fmt.Errorf("because: %w", err))); !errors.As(got, &refusal) || refusal.Status != want {
			t.Errorf("%v: %v", err, got)
		}
	}
	for _, since := range []time.Time{{}, time.UnixMilli(1), time.UnixMilli(math.MaxInt64), time.UnixMilli(-1)} {
		want := since
		if since.UnixMilli() < 0 {
			want = time.Time{} // no such time is taken
		}
		used := &InUse{Rank: 1, Incarnation: 2, View: 3, Since: since, ID: "a", Address: "b"}
		var got *InUse
		if _, err := Open(Refuse(used)); !errors.As(err, &got) || !got.Since.Equal(want) || got.ID != "a" {
			t.Errorf("since %v: %+v", since, err)
		}
	}
}

// A process that says what it is needs the right to enter, and is held to what it says. One that
// says nothing only looks.
func TestRights(t *testing.T) {
	both := Contact{ID: "a", Address: "b"}
	for _, c := range []struct {
		request Request
		right   access.Right
		claim   access.Claim
	}{
		{View{}, access.Observe, access.Claim{}},
		{Introduce{}, access.Observe, access.Claim{}},
		{Introduce{Question{From: Contact{ID: "a"}}}, access.Enter, access.Claim{ID: "a"}},
		{Introduce{Question{From: Contact{Address: "b"}}}, access.Enter, access.Claim{Address: "b"}},
		{Introduce{Question{From: both}}, access.Enter, access.Claim{ID: "a", Address: "b"}},
		{Join{Candidate: membership.Member{Identity: "a", Address: "b"}}, access.Enter, access.Claim{ID: "a", Address: "b"}},
		{CatchUp{Address: "b"}, access.Enter, access.Claim{Address: "b"}},
		{Confirm{}, access.Enter, access.Claim{}},
		{Raise{Version: 3}, access.Operate, access.Claim{}},
		{Evict{Rank: 3}, access.Operate, access.Claim{}},
	} {
		if right, claim := RightOf(c.request); right != c.right || !reflect.DeepEqual(claim, c.claim) {
			t.Errorf("%+v: %v, %v", c.request, right, claim)
		}
	}
}
