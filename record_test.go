package pleach_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/record"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/mem"
)

// replayed writes a member's recording and replays it. That the replay comes to the same
// state, Replay checks itself.
func replayed(t *testing.T, g *pleach.Group) (*record.Recording, *record.Result, map[string]int) {
	t.Helper()
	var file bytes.Buffer
	if err := g.WriteRecording(&file); err != nil {
		t.Fatal(err)
	}
	recording, err := record.Decode(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	events := make(map[string]int)
	result, err := recording.Replay(protocol.Never, func(e record.Event) { events[e.Kind]++ })
	if err != nil {
		t.Fatalf("rank %d: %v", g.Rank(), err)
	}
	if !result.Complete || result.Hash != recording.Hash || result.Inputs != recording.Inputs {
		t.Errorf("rank %d: %+v of %d inputs with hash %x", g.Rank(), result, recording.Inputs, recording.Hash)
	}
	return recording, result, events
}

// exchange has one member broadcast, and another wait for the last of it.
func exchange(t *testing.T, from, to *pleach.Group, sizes ...int) {
	t.Helper()
	for _, size := range sizes {
		if err := from.Broadcast(t.Context(), make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	left := len(sizes)
	for range to.Messages(t.Context()) {
		if left--; left == 0 {
			return
		}
	}
	t.Fatalf("%d messages are missing: %v", left, to.Err())
}

// A member that was recorded while others died, joined and left is replayed to the state
// that it had.
func TestRecordingOfTroubleIsReplayed(t *testing.T) {
	t.Parallel()
	c := pleach.Config{Group: "recorded", RecordBytes: 64 << 20}
	durable := c
	durable.DataDir = t.TempDir() // what it saves is compared, too
	first := member(t)(pleach.Create(t.Context(), durable))
	seed := first.Self().Address
	second := member(t)(pleach.Join(t.Context(), c, seed))
	third := member(t)(pleach.Join(t.Context(), c, seed))
	awaitView(t, first, "three", ofSize(3))
	exchange(t, first, second, 10, 300_000, 1, 2, 3)
	exchange(t, second, first, 100_000, 10)
	if err := third.Abort(); err != nil {
		t.Fatal(err)
	}
	awaitView(t, first, "without the dead", ofSize(2))
	fourth := member(t)(pleach.Join(t.Context(), c, seed))
	awaitView(t, second, "with the joiner", ofSize(3))
	exchange(t, first, fourth, 70_000, 5)
	if _, err := first.WaitStable(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, meanwhile, _ := replayed(t, first)
	if want := first.View().Number; meanwhile.State.View.Number != want {
		t.Errorf("view %d, want %d", meanwhile.State.View.Number, want)
	}
	if err := fourth.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitView(t, first, "without the one that left", ofSize(2))
	stats := first.Stats()
	for _, g := range []*pleach.Group{fourth, third, second, first} {
		_ = g.Close()
		_, result, events := replayed(t, g)
		if g == first && (result.State.Stats.Broadcast != stats.Broadcast || events["view"] < 6 || events["freezes"] == 0 || events["candidate"] < 3 || events["up"] == 0) {
			t.Errorf("%+v, want %+v; events %v", result.State.Stats, stats, events)
		}
	}
}

// A recording that has reached its limit is replayed up to there.
func TestRecordingEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	network := mem.NewNetwork(2, mem.Config{})
	var groups []*pleach.Group
	for rank := range 2 {
		groups = append(groups, start(t, pleach.Config{Rank: rank, Size: 2, Transport: network.Member(protocol.Rank(rank)), RecordBytes: 20_000}))
	}
	exchange(t, groups[0], groups[1], 10_000, 9000, 1000)
	for _, g := range groups {
		recording, result, _ := replayed(t, g)
		if !recording.Cut || result.State.Stats.Broadcast+result.State.Stats.Delivered > 2 {
			t.Errorf("cut: %t, %+v", recording.Cut, result.State.Stats)
		}
	}
}

func TestNothingRecorded(t *testing.T) {
	t.Parallel()
	g := member(t)(pleach.Create(t.Context(), pleach.Config{}))
	if err := g.WriteRecording(&bytes.Buffer{}); err == nil {
		t.Error("a recording of nothing")
	}
	for _, bytes := range []int{-1, record.MaxBytes + 1} {
		_, err := pleach.Create(t.Context(), pleach.Config{RecordBytes: bytes})
		if e := new(pleach.ConfigError); !errors.As(err, &e) || e.Field != "RecordBytes" {
			t.Errorf("%d: %v", bytes, err)
		}
	}
	_, err := pleach.NewWorld(context.Background(), pleach.Config{RecordBytes: 1})
	if e := new(pleach.ConfigError); !errors.As(err, &e) || e.Field != "RecordBytes" {
		t.Errorf("a World: %v", err)
	}
}
