package draw

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/logp"
	"github.com/pleach-go/pleach/protocol"
)

// 0 sends to 1, which corrects, and to 2, which is dead.
func TestTimeline(t *testing.T) {
	for _, o := range []protocol.Time{1, 7, 1000} {
		line, err := NewTimeline(3, 0, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []logp.Event{
			{Time: 0, What: logp.Died, Rank: 2, Peer: protocol.NoRank},
			{Time: 0, What: logp.Sent, Rank: 0, Peer: 1, Phase: "dissemination"},
			{Time: o, What: logp.Sent, Rank: 0, Peer: 2, Phase: "dissemination"},
			{Time: 3 * o, What: logp.Received, Rank: 1, Peer: 0, Phase: "dissemination"},
			{Time: 3 * o, What: logp.Colored, Rank: 1, Peer: 0, Phase: "dissemination"},
			{Time: 3 * o, What: logp.Sent, Rank: 1, Peer: 0, Phase: "correction"},
			{Time: 3 * o, What: logp.Lost, Rank: 2, Peer: 0, Phase: "dissemination"},
			{Time: 6 * o, What: logp.Received, Rank: 0, Peer: 1, Phase: "correction"},
		} {
			line.Add(e)
		}
		var svg bytes.Buffer
		if err := line.Write(&svg, "title", "subtitle"); err != nil {
			t.Fatal(err)
		}
		text := svg.String()
		parse(t, &svg).checkLabels(t)
		for sign, want := range map[string]int{
			`class="dissemination"`:         2 + 1, // in the legend too
			`class="dissemination receive"`: 1 + 1,
			`class="dissemination flight"`:  2,
			`class="correction flight"`:     1,
			`fill="url(#hatch)"`:            1 + 1,
			`class="acknowledgment"`:        0,
		} {
			if got := strings.Count(text, sign); got != want {
				t.Errorf("o=%d: %d times %s, want %d", o, got, sign, want)
			}
		}
	}
}

// The largest timelines are as readable as the smallest.
func TestTimelineLabels(t *testing.T) {
	for _, o := range []protocol.Time{1, 3, 1 << 20} {
		line, err := NewTimeline(MaxTimelineSize, 0, o)
		if err != nil {
			t.Fatal(err)
		}
		line.Add(logp.Event{Time: o * (MaxTimelineSends - 1), What: logp.Sent, Rank: 63, Peer: 1, Phase: "correction"})
		var svg bytes.Buffer
		if err := line.Write(&svg, "title", "subtitle"); err != nil {
			t.Fatal(err)
		}
		parse(t, &svg).checkLabels(t)
	}
}

func TestTimelineLimits(t *testing.T) {
	if _, err := NewTimeline(MaxTimelineSize+1, 0, 1); err == nil || !strings.Contains(err.Error(), "choose at most 64") {
		t.Errorf("got %v", err)
	}
	line, err := NewTimeline(2, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	line.Add(logp.Event{Time: 5 * MaxTimelineSends, What: logp.Sent, Rank: 0, Peer: 1, Phase: "dissemination"})
	if err := line.Write(&bytes.Buffer{}, "title", "subtitle"); err == nil ||
		!strings.Contains(err.Error(), "until 5000: choose fewer") {
		t.Errorf("got %v", err)
	}
}
