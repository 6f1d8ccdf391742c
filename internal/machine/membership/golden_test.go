package membership

import (
	"math"
	"reflect"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

func goldenMember(rank protocol.Rank) Member {
	return Member{
		Rank: rank, Incarnation: 0x1122334455667788, Nonce: 0x99AABBCCDDEEFF00, Identity: "hedge-7",
		Address: "10.0.0.7:7000", Domain: "rack 3", Meta: "version=2", Synced: true, Version: 5,
	}
}

func goldenPositions() []Position {
	return []Position{
		{Root: 0, Incarnation: 1, Next: 0, Holder: protocol.NoRank},
		{Root: 2, Incarnation: 5, Next: 99, Holder: 7},
		{Root: MaxSlots - 1, Incarnation: math.MaxUint64, Next: math.MaxUint64, Holder: MaxSlots - 1},
	}
}

func goldenProposal() *value {
	return &value{
		number: 12, version: 4, slots: 9, removed: set{0x05, 0x80},
		reasons: []reason{{Suspected, 7}, {Departed, protocol.NoRank}, {Forced, 0}}, added: []Member{
			goldenMember(2),
			{Rank: 5, Incarnation: 1},
		}, changed: []Member{goldenMember(7)}, cut: goldenPositions(),
	}
}

// goldenFrames is every kind of frame, by names that belong to the protocol and not
// to the code: code may be renamed, frames may not change.
func goldenFrames() map[string]frame {
	one, two := Ballot{1, 0}, Ballot{maxRound, MaxSlots - 1}
	return map[string]frame{
		"status zero":     {kind: Status},
		"status stuck":    {kind: Status, view: 7, incarnation: 9, stuck: true},
		"status abstains": {kind: Status, view: 7, incarnation: 9, abstains: true},
		"status asks":     {kind: Status, view: 7, incarnation: 9, asks: true},
		"status lost":     {kind: Status, view: 7, incarnation: 9, lost: true},
		"status large":    {kind: Status, view: math.MaxUint64, incarnation: math.MaxUint64},
		"report zero":     {kind: Report},
		"report": {
			kind: Report, view: 7, incarnation: 9,
			reports: []report{{3, []suspect{{3, 77, 0}, {MaxSlots - 1, math.MaxUint64, 0}}}, {4, []suspect{{5, 1, 0}}}},
		},
		"report of evictions": {
			kind: Report, view: 7, incarnation: 9,
			reports: []report{{3, []suspect{{4, 77, OperatorEvicted}, {MaxSlots - 1, 1, Revoked}}}},
		},
		"leave zero":        {kind: Leave},
		"leave":             {kind: Leave, view: 7, incarnation: 9},
		"join-request zero": {kind: JoinRequest},
		"join-request": {
			kind: JoinRequest, view: 7, incarnation: 9,
			candidate: candidate{Member: goldenMember(protocol.NoRank), gone: true},
		},
		"join-request with rank": {kind: JoinRequest, view: 7, incarnation: 9, candidate: candidate{Member: goldenMember(4)}},
		"meta change zero":       {kind: MetaChange},
		"meta change":            {kind: MetaChange, view: 7, incarnation: 9, wanted: attributes{"version=3", true, false}},
		"raise zero":             {kind: Raise},
		"raise":                  {kind: Raise, view: 7, incarnation: 9, version: 5},
		"prepare zero":           {kind: Prepare, members: set{}},
		"prepare":                {kind: Prepare, view: 7, incarnation: 9, ballot: two, other: one, members: set{0xff, 0x01}},
		"promise zero":           {kind: Promise, members: set{}},
		"promise of nothing": {
			kind: Promise, view: 7, incarnation: 9, ballot: one, members: set{0x10},
			positions: goldenPositions(),
		},
		"promise of proposal": {
			kind: Promise, view: 7, incarnation: 9, ballot: two, other: one, members: set{0x10},
			positions: goldenPositions(), value: goldenProposal(),
		},
		"promise of empty": {
			kind: Promise, view: 7, incarnation: 9, ballot: two, other: one, members: set{},
			value: &value{removed: set{}},
		},
		"refuse zero":      {kind: Refuse},
		"refuse":           {kind: Refuse, view: 7, incarnation: 9, ballot: one, other: two},
		"cancel zero":      {kind: Cancel},
		"cancel":           {kind: Cancel, view: 7, incarnation: 9, ballot: two, other: one},
		"propose zero":     {kind: Propose, value: &value{removed: set{}}},
		"propose":          {kind: Propose, view: 7, incarnation: 9, ballot: two, value: goldenProposal()},
		"accept zero":      {kind: Accept, members: set{}},
		"accept":           {kind: Accept, view: 7, incarnation: 9, ballot: two, members: set{0x00, 0x03}},
		"commit zero":      {kind: Commit, value: &value{removed: set{}}},
		"commit by tree":   {kind: Commit, view: 7, incarnation: 9, route: byTree, root: 3, value: goldenProposal()},
		"commit leftward":  {kind: Commit, view: 7, incarnation: 9, route: leftward, root: 3, value: goldenProposal()},
		"commit rightward": {kind: Commit, view: 7, incarnation: 9, route: rightward, root: 3, value: goldenProposal()},
		"commit to straggler": {
			kind: Commit, view: 7, incarnation: 9, route: toStraggler, root: protocol.NoRank,
			value: goldenProposal(),
		},
		"commit of evictions": {
			kind: Commit, view: 7, incarnation: 9, route: byTree, root: 3,
			value: &value{number: 8, removed: set{0x03}, reasons: []reason{{OperatorEvicted, 3}, {Revoked, 4}}},
		},
		"removed zero": {kind: Removed},
		"removed":      {kind: Removed, view: 7, incarnation: 9},
		"ping zero":    {kind: Ping},
		"ping":         {kind: Ping, view: 7, incarnation: 9},
		"pong zero":    {kind: Pong},
		"pong":         {kind: Pong, view: 7, incarnation: 9},
	}
}

func TestGoldenFrames(t *testing.T) {
	encoded := make(map[string][]byte)
	for name, f := range goldenFrames() {
		encoded[name] = f.append(nil)
	}
	recorded := testutil.Golden(t, "testdata/frames.golden", encoded)
	kinds, ways := make(map[Kind]bool), make(map[route]bool)
	for name, want := range goldenFrames() {
		want.from = 6
		got, err := parse(6, recorded[name])
		if err != nil || !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
			continue
		}
		kinds[got.kind] = true
		if got.kind == Commit {
			ways[got.route] = true
		}
	}
	for k := range Kind(Kinds) {
		if !kinds[k] {
			t.Errorf("no %v is recorded", k)
		}
	}
	for r := range routes {
		if !ways[r] {
			t.Errorf("no commit by route %d is recorded", r)
		}
	}
	testutil.EveryKind(t, recorded, 0, func(frame []byte) bool {
		_, err := parse(0, frame)
		return err == nil
	})
}

// What a process that joins is told: the view, and its position in every stream.
func TestGoldenViews(t *testing.T) {
	views := map[string]View{
		"view of one": {Number: 1, Slots: 1, Members: MembersOf(Member{Identity: "a", Incarnation: 1})},
		"view": {
			Number: 300, Slots: 9, Members: MembersOf(Member{Identity: "a", Incarnation: 1}, goldenMember(7)),
			Former: MembersOf(Member{Rank: 3, Identity: "b", Incarnation: 2}),
		},
		"view of most": {Number: math.MaxUint64, Slots: MaxSlots, Members: MembersOf(goldenMember(MaxSlots - 1))},
	}
	positions := map[string][]Position{"positions none": nil, "positions": goldenPositions()}
	encoded := make(map[string][]byte)
	for name, v := range views {
		encoded[name] = v.Encode(nil)
	}
	for name, p := range positions {
		encoded[name] = EncodePositions(nil, p)
	}
	recorded := testutil.Golden(t, "testdata/views.golden", encoded)
	for name, want := range views {
		if got, err := DecodeView(recorded[name]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for name, want := range positions {
		if got, err := DecodePositions(recorded[name]); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
}
