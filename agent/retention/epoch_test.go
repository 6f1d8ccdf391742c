package retention

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// again is a log after a restart: of its messages, the files have those from a state on.
func again(t *testing.T, epoch string, s *State, limits Limits, messages []Message) *Log {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	l, from := New(epoch, limits), State{}
	if err := json.Unmarshal(b, &from); err != nil {
		t.Fatal(err)
	}
	if err := l.Restore(&from); err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		m, err := Decode(messages[i].Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		l.Add(m)
	}
	l.Begin(epoch)
	return l
}

// A subscriber resumes across a restart of the agent, and is told what is no longer there, as
// without one.
func TestResumeAcrossRestart(t *testing.T) {
	limits := Limits{Messages: 4, Bytes: 1 << 20}
	l := New("e", limits)
	c := subscribe(t, l, topic("a"), "")
	add(l, "ab")
	_, last := read(c)
	s := l.State()
	messages := []Message{{Topic: "a", Data: []byte("a")}, {Topic: "b", Data: []byte("b")}}
	l = again(t, "f", &s, limits, messages)
	if got, _ := read(subscribe(t, l, topic("a"), last)); got != "a" {
		t.Errorf("resumed: %q", got)
	}
	add(l, "aa")
	if got, id := read(subscribe(t, l, topic("a"), last)); got != "a a a" || id != "f-6-4" {
		t.Errorf("resumed: %q, %q", got, id)
	}
	add(l, "bb")
	if got, _ := read(subscribe(t, l, topic("a"), last)); got != "missed:1:false:false a a" {
		t.Errorf("resumed late: %q", got)
	}
	if got, _ := read(subscribe(t, l, Filter{}, "e-9")); got != "a a b b" {
		t.Errorf("behind what the files have lost: %q", got)
	}
	if got, _ := read(subscribe(t, l, Filter{}, "d-1")); got != "missed:4:false:true a a b b" {
		t.Errorf("of an unknown log: %q", got)
	}
	if _, err := l.Subscribe(Filter{}, "f-99"); err == nil {
		t.Error("an ID of the future is accepted")
	}
}

// A subscriber resumes after any number of restarts while its message, or a later one, is retained,
// whether messages came between the restarts or not. Case 76.
func TestResumeAcrossManyRestarts(t *testing.T) {
	for _, between := range []string{"", "a"} {
		limits := Limits{Messages: 1000, Bytes: 1 << 20}
		l := New("e", limits)
		c := subscribe(t, l, topic("a"), "")
		add(l, "aa")
		_, last := read(c)
		for i := range 5 * maxEpochs {
			add(l, between)
			l.Begin(fmt.Sprint("e", i))
			s := l.State()
			if err := New("x", limits).Restore(&s); err != nil {
				t.Fatal(err)
			}
		}
		add(l, "a")
		want := strings.TrimSpace(strings.Repeat("a ", 5*maxEpochs*len(between)+1))
		if got, _ := read(subscribe(t, l, topic("a"), last)); got != want {
			t.Errorf("resumed with %d messages instead of %d: %.60q", len(strings.Fields(got)), len(strings.Fields(want)), got)
		}
		if n := len(l.epochs); between == "" && n > maxEpochs+2 {
			t.Errorf("%d epochs are kept", n)
		}
	}
}

// A log that is where a segment begins goes on, and another one begins there.
func TestRestoreSegments(t *testing.T) {
	l := New("e", Limits{Messages: 9, Bytes: 1 << 20})
	add(l, "ab")
	s := l.State()
	if err := l.Restore(&s); err != nil {
		t.Fatal(err)
	}
	if got, _ := read(subscribe(t, l, Filter{}, FromOldest)); got != "a b" {
		t.Errorf("the next segment: %q", got)
	}
	s.Next = 7 // segments between were lost
	if err := l.Restore(&s); err != nil {
		t.Fatal(err)
	}
	add(l, "c")
	if got, last := read(subscribe(t, l, Filter{}, FromOldest)); got != "c" || last != "e-7" {
		t.Errorf("a later segment: %q, %q", got, last)
	}
	if err := l.Restore(&State{}); err == nil {
		t.Error("an empty state is accepted")
	}
}

// A subscriber that is so late that a gap is not retained any more is told of it, and of what
// it has missed beside it.
func TestLateForGap(t *testing.T) {
	l := New("e", Limits{Messages: 2, Bytes: 1 << 20})
	all, a := subscribe(t, l, Filter{}, ""), subscribe(t, l, topic("a"), "")
	add(l, "a")
	l.Add(Message{Gap: "away", Missing: 5})
	add(l, "abb")
	if got, _ := read(all); got != "gap missed:2:false:false b b" {
		t.Errorf("all: %q", got)
	}
	if got, _ := read(a); got != "gap missed:2:false:false" {
		t.Errorf("topic: %q", got)
	}
	late := subscribe(t, l, Filter{}, FromOldest)
	if got, _ := read(late); got != "b b" {
		t.Errorf("from the oldest: %q", got)
	}
	for range 2 * maxGaps {
		l.Add(Message{Gap: "away", Missing: 1})
	}
	var missing uint64
	for e, ok := late.try(); ok; e, ok = late.try() {
		if e.Message != nil {
			missing += e.Message.Missing
		}
	}
	if missing < 2*maxGaps { // more, if gaps before it were added up
		t.Errorf("%d missing", missing)
	}
}

func TestLast(t *testing.T) {
	l := New("e", Limits{Messages: 9, Bytes: 1 << 20})
	if _, ok := l.Last(topic("a")); ok {
		t.Error("an empty log has a last message")
	}
	add(l, "abab")
	l.Add(Message{Gap: "away"})
	l.Add(Message{Topic: "a", Data: []byte("last")})
	add(l, "b")
	c, ok := l.SubscribeLast(topic("a"))
	add(l, "ab")
	if got, id := read(c); !ok || got != "last a" || id != "e-8-4" {
		t.Errorf("%q, %q", got, id)
	}
	if m, ok := l.Last(topic("b")); !ok || string(m.Data) != "b" {
		t.Errorf("%+v", m)
	}
	if c, ok := l.SubscribeLast(topic("c")); ok || c.ID() != "e-9-0" {
		t.Errorf("%q, %t", c.ID(), ok)
	}
}

// Another agent gets the last messages that it can retain, in pages.
func TestSelect(t *testing.T) {
	l := New("e", Limits{Messages: 100, Bytes: 1 << 20})
	add(l, "abcabcabc")
	var got []byte
	var next uint64
	for first := true; first || next > 0; first = false {
		next = l.Select(next, Limits{Messages: 4, Bytes: 1 << 20}, func(m *Message) bool { return m.Topic != "b" },
			func(m *Message) bool {
				got = append(got, m.Data...)
				return len(got)%3 > 0
			})
	}
	if string(got) != "acac" {
		t.Errorf("%s", got)
	}
}

func TestCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1)
		m := Message{
			Topic: text.Draw(t, "topic"), From: rapid.IntRange(-1, 1000).Draw(t, "from"), FromID: text.Draw(t, "id"),
			View: rapid.Uint64().Draw(t, "view"),
			Time: time.Unix(0, rapid.Int64().Draw(t, "time")), Direct: rapid.Bool().Draw(t, "direct"),
			Fleet: rapid.Bool().Draw(t, "fleet"), Zone: text.Draw(t, "zone"),
			Index: rapid.Uint64().Draw(t, "index"), Incarnation: rapid.Uint64().Draw(t, "incarnation"), Gap: text.Draw(t, "gap"),
			Missing: rapid.Uint64().Draw(t, "missing"), Data: []byte(text.Draw(t, "data")),
			Header: rapid.MapOfN(text, text, 0, 5).Draw(t, "header"),
		}
		b := m.Append(nil)
		got, err := Decode(b)
		if err != nil || !slices.Equal(got.Append(nil), b) || got.Index != m.Index || got.Incarnation != m.Incarnation ||
			!maps.Equal(got.Header, m.Header) ||
			got.From != m.From || string(got.Data) != string(m.Data) || !got.Time.Equal(m.Time) {
			t.Fatalf("%+v, %v, want %+v", got, err, m)
		}
	})
}

func FuzzDecode(f *testing.F) {
	m := Message{Topic: "t", From: 1, FromID: "a", View: 2, Index: 3, Data: []byte("x")}
	f.Add(m.Append(nil))
	m.Header = map[string]string{"a": "", "b": "value"}
	f.Add(m.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := Decode(m.Append(nil)); err != nil || again.Topic != m.Topic || again.Index != m.Index {
			t.Errorf("%+v, %v, want %+v", again, err, m)
		}
	})
}
