package membership

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
)

// Generators of what frames hold.
var (
	anyRank   = rapid.Map(rapid.Int64Range(-1, MaxSlots-1), func(r int64) protocol.Rank { return protocol.Rank(r) })
	anyBallot = rapid.Custom(func(t *rapid.T) Ballot {
		return Ballot{rapid.Uint32Range(1, maxRound).Draw(t, "round"), anyRank.Draw(t, "rank")}
	})
	anySet    = rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) set { return append(set{}, b...) })
	anyName   = rapid.StringN(0, -1, MaxText)
	anyMeta   = rapid.StringN(0, -1, MaxMeta)
	anyMember = rapid.Custom(func(t *rapid.T) Member {
		return Member{
			anyRank.Draw(t, "rank"), anyName.Draw(t, "identity"), anyName.Draw(t, "address"),
			anyName.Draw(t, "domain"), anyMeta.Draw(t, "meta"), rapid.Bool().Draw(t, "synced"), rapid.Bool().Draw(t, "observer"),
			rapid.Uint16().Draw(t, "version"), rapid.Uint64().Draw(t, "incarnation"), rapid.Uint64().Draw(t, "nonce"),
		}
	})
	anyPositions = rapid.Custom(func(t *rapid.T) []Position {
		var positions []Position
		for _, h := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Position {
			return Position{
				anyRank.Draw(t, "root"), rapid.Uint64().Draw(t, "incarnation"), rapid.Uint64().Draw(t, "next"),
				anyRank.Draw(t, "holder"),
			}
		}), 0, 9).Draw(t, "positions") {
			positions = merge(positions, []Position{h})
		}
		return positions
	})
	anyValue = rapid.Custom(func(t *rapid.T) *value {
		v := &value{
			number: rapid.Uint64().Draw(t, "number"), version: rapid.Uint16().Draw(t, "version"),
			slots: protocol.Rank(rapid.Uint32().Draw(t, "slots")), removed: anySet.Draw(t, "removed"),
			cut: anyPositions.Draw(t, "cut"),
		}
		for range v.removed.count() {
			v.reasons = append(v.reasons,
				reason{rapid.SampledFrom([]Cause{
					Suspected, Unresponsive, Departed, Replaced, Forced, OperatorEvicted,
					Revoked,
				}).Draw(t, "cause"), anyRank.Draw(t, "by")})
		}
		v.added = append(v.added, rapid.SliceOfN(anyMember, 0, 5).Draw(t, "added")...)
		v.changed = append(v.changed, rapid.SliceOfN(anyMember, 0, 5).Draw(t, "changed")...)
		return v
	})
)

func anyFrame(t *rapid.T) *frame {
	f := &frame{
		kind: Kind(rapid.IntRange(0, Kinds-1).Draw(t, "kind")), view: rapid.Uint64().Draw(t, "view"),
		incarnation: rapid.Uint64().Draw(t, "incarnation"), from: 3,
	}
	switch f.kind {
	case Status:
		f.stuck, f.abstains = rapid.Bool().Draw(t, "stuck"), rapid.Bool().Draw(t, "abstains")
	case Report:
		for _, by := range rapid.SliceOfN(anyRank, 0, 3).Draw(t, "sources") {
			r := report{by: by}
			for _, s := range rapid.SliceOfN(anyRank, 0, 9).Draw(t, "suspects") {
				r.suspects = append(r.suspects, suspect{
					max(s, 0), rapid.Uint64().Draw(t, "incarnation"),
					rapid.SampledFrom([]Cause{Suspected, OperatorEvicted, Revoked}).Draw(t, "why"),
				})
			}
			f.reports = append(f.reports, r)
		}
	case JoinRequest:
		f.candidate = candidate{Member: anyMember.Draw(t, "candidate"), gone: rapid.Bool().Draw(t, "gone")}
	case MetaChange:
		f.wanted = attributes{anyMeta.Draw(t, "meta"), rapid.Bool().Draw(t, "synced"), rapid.Bool().Draw(t, "observer")}
	case Raise:
		f.version = rapid.Uint16().Draw(t, "version")
	case Prepare:
		f.ballot, f.other, f.members = anyBallot.Draw(t, "ballot"), anyBallot.Draw(t, "other"), anySet.Draw(t, "members")
	case Promise:
		f.ballot, f.members, f.positions = anyBallot.Draw(t, "ballot"), anySet.Draw(t, "members"),
			anyPositions.Draw(t, "positions")
		if rapid.Bool().Draw(t, "accepted") {
			f.other, f.value = anyBallot.Draw(t, "other"), anyValue.Draw(t, "value")
		}
	case Refuse, Cancel:
		f.ballot, f.other = anyBallot.Draw(t, "ballot"), anyBallot.Draw(t, "other")
	case Propose:
		f.ballot, f.value = anyBallot.Draw(t, "ballot"), anyValue.Draw(t, "value")
	case Accept:
		f.ballot, f.members = anyBallot.Draw(t, "ballot"), anySet.Draw(t, "members")
	case Commit:
		f.route, f.root, f.value = route(rapid.IntRange(0, int(routes)-1).Draw(t, "route")), anyRank.Draw(t, "root"),
			anyValue.Draw(t, "value")
	}
	return f
}

func TestFramesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFrame(t)
		b := f.append(nil)
		got, err := parse(3, b)
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		if !reflect.DeepEqual(got, f) {
			t.Fatalf("sent %+v, got %+v", f, got)
		}
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := parse(3, b[:cut]); cut > 0 && err == nil || err != nil && !errors.Is(err, ErrFrame) {
			t.Fatalf("%d of %d bytes of a %v: %v", cut, len(b), f.kind, err)
		}
	})
}

// Bytes from outside: none crash, none make sense that do not come back the same.
func FuzzParse(f *testing.F) {
	for _, fr := range []frame{
		{kind: Status, stuck: true},
		{kind: Status, abstains: true},
		{kind: Report, reports: []report{{1, []suspect{{3, 1, 0}}}}},
		{kind: JoinRequest, candidate: candidate{Member: Member{Rank: protocol.NoRank, Identity: "a"}}},
		{
			kind: Promise, ballot: Ballot{1, 0}, other: Ballot{1, 0}, members: set{7}, positions: []Position{{1, 1, 5, 2}},
			value: &value{number: 2, slots: 3, removed: set{1}},
		},
		{kind: Commit, value: &value{number: 2, slots: 4, removed: set{0}, added: []Member{{Rank: 3, Identity: "x"}}}},
	} {
		f.Add(fr.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := parse(0, b)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			return
		}
		if got := fr.append(nil); !bytes.Equal(got, b) {
			t.Fatalf("%x was read as %+v, which is %x", b, fr, got)
		}
	})
}

// A machine that is told anything at all, by members and by strangers, neither
// crashes nor installs a view it is not in.
func FuzzReceive(f *testing.F) {
	v := firstView(5)
	head := func(fr frame) []byte {
		fr.view, fr.incarnation = 1, 1
		return fr.append(nil)
	}
	whole := set{31}
	change := &value{number: 2, slots: 5, removed: set{1}, cut: []Position{{1, 1, 2, 1}}}
	f.Add(uint8(1), head(frame{kind: Prepare, ballot: Ballot{1, 1}, members: whole}),
		head(frame{kind: Propose, ballot: Ballot{1, 1}, value: change}))
	f.Add(uint8(1), head(frame{kind: Report, reports: []report{{2, []suspect{{0, 1, 0}, {1, 1, 0}}}}}),
		head(frame{kind: Promise, ballot: Ballot{1, 2}, members: set{30}}))
	f.Add(uint8(4), head(frame{kind: Commit, root: 1, value: change}),
		head(frame{kind: Commit, root: 1, route: rightward, value: change}))
	f.Add(uint8(3), head(frame{kind: JoinRequest, candidate: candidate{Member: Member{Identity: "n", Nonce: 9}}}),
		head(frame{kind: Cancel, ballot: Ballot{9, 3}}))
	f.Add(uint8(3), head(frame{kind: Refuse, ballot: Ballot{1, 2}, other: Ballot{9, 9}}), head(frame{kind: Removed}))
	f.Fuzz(func(t *testing.T, from uint8, first, second []byte) {
		self := *v.Members.At(2)
		l := newTestLog(self, v)
		m, err := New(Config{Self: self, View: v, Log: l})
		if err != nil {
			t.Fatal(err)
		}
		m.Suspect(1, 0, 1)
		m.Suspect(1, 1, 1) // it coordinates
		now := protocol.Time(1)
		for _, b := range [][]byte{first, second, first} {
			if err := m.Receive(now, protocol.Rank(from%8), b); err != nil && !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			for range 1000 {
				if _, _, ok := m.Next(now); !ok {
					break
				}
			}
			now += 10 * millisecond
			m.LogFlushed(now)
		}
		for {
			v, ok := l.installed()
			if !ok {
				break
			}
			if !v.Holds(2, 1) {
				t.Fatalf("installed %v", &v)
			}
		}
	})
}

func TestViewsSurviveTheWire(t *testing.T) {
	v := firstView(9)
	change := &value{number: 2, slots: 9, removed: set{0b100, 0}, added: nil}
	next, err := change.apply(&v, v.named)
	if err != nil {
		t.Fatal(err)
	}
	b := next.Encode(nil)
	got, err := DecodeView(b)
	if err != nil || !got.Equal(next) {
		t.Fatalf("%v became %v: %v", next, &got, err)
	}
	for i := range b {
		if _, err := DecodeView(b[:i]); !errors.Is(err, ErrView) {
			t.Fatalf("%d of %d bytes: %v", i, len(b), err)
		}
	}
	cut := []Position{{1, 2, 3, 4}}
	if got, err := DecodePositions(EncodePositions(nil, cut)); err != nil || !reflect.DeepEqual(got, cut) {
		t.Fatalf("%v became %v: %v", cut, got, err)
	}
	if s := next.String(); s != "view 2: 8 of 9 slots {0-1 3-8}" {
		t.Fatal(s)
	}
	if s := fmt.Sprint(next.Holes()); s != "[2]" || next.Former.At(0).Identity != "p2" {
		t.Fatal(s, next.Former)
	}
}

// Merging is the same in whatever order acknowledgments come, and however often.
func TestMergeHasNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := anyPositions.Draw(t, "a"), anyPositions.Draw(t, "b"), anyPositions.Draw(t, "c")
		x := merge(merge(a, b), merge(c, b))
		y := merge(c, merge(b, merge(a, a)))
		if len(x)+len(y) > 0 && !reflect.DeepEqual(x, y) {
			t.Fatalf("%v and %v", x, y)
		}
	})
}

// What is longer than it may be, or no truth value, is refused.
func TestMembersThatAreRefused(t *testing.T) {
	decode := func(m Member, change func([]byte)) error {
		b := appendMember(nil, &m)
		change(b)
		d := decoder{Decoder: wire.NewDecoder(b)}
		d.member()
		return d.finish()
	}
	same := func([]byte) {}
	synced := func(value byte) func([]byte) { return func(b []byte) { b[len(b)-3] = value } } // before the version
	for what, c := range map[string]struct {
		member  Member
		change  func([]byte)
		refused bool
	}{
		"the longest meta":   {Member{Meta: strings.Repeat("m", MaxMeta)}, same, false},
		"a longer one":       {Member{Meta: strings.Repeat("m", MaxMeta+1)}, same, true},
		"the longest domain": {Member{Domain: strings.Repeat("d", MaxText)}, same, false},
		"a longer one too":   {Member{Domain: strings.Repeat("d", MaxText+1)}, same, true},
		"true":               {Member{}, synced(1), false},
		"an observer":        {Member{}, synced(2), false},
		"both":               {Member{}, synced(3), false},
		"4":                  {Member{}, synced(4), true},
	} {
		if err := decode(c.member, c.change); (err != nil) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A ballot of a round that no group reaches is refused: the round after the last number would be
// the first one again.
func TestBallotsThatAreRefused(t *testing.T) {
	for round, refused := range map[uint32]bool{1: false, maxRound: false, maxRound + 1: true, math.MaxUint32: true} {
		f := frame{kind: Refuse, ballot: Ballot{1, 0}, other: Ballot{round, 0}}
		if _, err := parse(3, f.append(nil)); errors.Is(err, ErrFrame) != refused {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// A rank that no view has is refused: sets of ranks would grow with it.
func TestRanksThatAreRefused(t *testing.T) {
	for rank, refused := range map[protocol.Rank]bool{
		0: false, MaxSlots - 1: false, MaxSlots: true,
		math.MaxUint32 - 1: true,
	} {
		f := frame{kind: Refuse, ballot: Ballot{1, 0}, other: Ballot{1, rank}}
		if _, err := parse(3, f.append(nil)); errors.Is(err, ErrFrame) != refused {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A view has as many slots as there may be, and no more.
func TestMostSlots(t *testing.T) {
	before := firstView(3)
	for slots, refused := range map[protocol.Rank]bool{0: true, MaxSlots: false, MaxSlots + 1: true} {
		v := value{number: before.Number + 1, slots: slots, removed: newSet(3), version: before.Version}
		if _, err := v.apply(&before, before.named); errors.Is(err, ErrView) != refused {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
}

// Each kind has a name of its own, and so have those that are none.
func TestKindsHaveNames(t *testing.T) {
	names := map[string]bool{}
	for k := range Kind(Kinds + 2) {
		names[k.String()] = true
	}
	if len(names) != Kinds+2 || !names[fmt.Sprintf("kind %d", Kinds)] || names[""] {
		t.Errorf("%v", names)
	}
}

// A member is removed for a reason that there is.
func TestReasonsThatAreRefused(t *testing.T) {
	for cause, refused := range map[Cause]bool{Suspected: false, Forced: false, Joined: true, 255: true} {
		f := frame{kind: Propose, ballot: Ballot{1, 0}, value: &value{
			number: 2, slots: 1, removed: set{1},
			reasons: []reason{{cause, 0}},
		}}
		if _, err := parse(3, f.append(nil)); errors.Is(err, ErrFrame) != refused {
			t.Errorf("cause %d: %v", cause, err)
		}
	}
}

// A status with a flag that is not known, and a commit on another route, are refused.
func TestFlagsAndRoutesThatAreRefused(t *testing.T) {
	status, commit := frame{kind: Status}, frame{kind: Commit, value: &value{removed: set{}}}
	const first = 1 + 8 + 8 // byte after the header
	for flags := range 32 {
		b := status.append(nil)
		b[first] = byte(flags)
		if _, err := parse(3, b); errors.Is(err, ErrFrame) != (flags > 15) {
			t.Errorf("flags %#x: %v", flags, err)
		}
	}
	for r := range routes + 2 {
		b := commit.append(nil)
		b[first] = byte(r)
		if _, err := parse(3, b); errors.Is(err, ErrFrame) != (r >= routes) {
			t.Errorf("route %d: %v", r, err)
		}
	}
}

// Positions are in order, and none is there twice. A set has no more members than a view may have.
func TestListsThatAreRefused(t *testing.T) {
	first, second := Position{Root: 1, Incarnation: 1, Next: 4}, Position{Root: 1, Incarnation: 2, Next: 3}
	for what, c := range map[string]struct {
		positions []Position
		bytes     int
		refused   bool
	}{
		"in order":       {[]Position{first, second}, 1, false},
		"out of order":   {[]Position{second, first}, 1, true},
		"twice":          {[]Position{first, first}, 1, true},
		"a largest set":  {nil, MaxSlots / 8, false},
		"a larger one":   {nil, MaxSlots/8 + 1, true},
		"nothing at all": {nil, 0, false},
	} {
		f := frame{kind: Promise, ballot: Ballot{1, 0}, members: make(set, c.bytes), positions: c.positions}
		if _, err := parse(3, f.append(nil)); errors.Is(err, ErrFrame) != c.refused {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A list that claims to be longer than its frame is refused before there is memory for it.
func TestListsThatClaimTooMuch(t *testing.T) {
	f := frame{kind: Report, reports: []report{{1, []suspect{{2, 1, 0}}}}}
	b := f.append(nil)
	for _, n := range []uint32{0, 2, MaxSlots, math.MaxUint32} {
		copy(b[1+8+8+4+4:], wire.AppendUint32(nil, n)) // how many are suspected
		if _, err := parse(3, b); !errors.Is(err, ErrFrame) {
			t.Errorf("one suspicion, said to be %d: %v", n, err)
		}
	}
}
