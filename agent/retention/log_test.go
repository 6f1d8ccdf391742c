package retention

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func add(l *Log, topics string) {
	for _, t := range topics {
		l.Add(Message{Topic: string(t), Data: []byte(string(t))})
	}
}

// read returns what a cursor has at present, and the last ID.
func read(c *Cursor) (text, last string) {
	var parts []string
	for e, ok := c.try(); ok; e, ok = c.try() {
		if e.ID != "" {
			last = e.ID
		}
		switch {
		case e.Missed != nil:
			parts = append(parts, fmt.Sprintf("missed:%d:%v:%v", e.Missed.Count, e.Missed.AtMost, e.Missed.Restarted))
		case e.Message.Gap != "":
			parts = append(parts, "gap")
		default:
			parts = append(parts, string(e.Message.Data))
		}
	}
	return strings.Join(parts, " "), last
}

func subscribe(t *testing.T, l *Log, f Filter, after string) *Cursor {
	t.Helper()
	c, err := l.Subscribe(f, after)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func topic(name string) Filter { return Filter{ByTopic: true, Topic: name} }

func TestResumeWithinRetention(t *testing.T) {
	l := New("e", Limits{Messages: 4, Bytes: 1 << 20})
	c := subscribe(t, l, Filter{}, "")
	add(l, "ab")
	got, last := read(c)
	if got != "a b" || last != "e-2" {
		t.Fatalf("%q, %q", got, last)
	}
	add(l, "cd")
	if got, _ := read(subscribe(t, l, Filter{}, last)); got != "c d" {
		t.Errorf("resumed: %q", got)
	}
	add(l, "efgh")
	if got, _ := read(subscribe(t, l, Filter{}, last)); got != "missed:2:false:false e f g h" {
		t.Errorf("resumed late: %q", got)
	}
	if got, _ := read(c); got != "missed:2:false:false e f g h" {
		t.Errorf("slow: %q", got)
	}
	if got, _ := read(subscribe(t, l, Filter{}, FromOldest)); got != "e f g h" {
		t.Errorf("from the oldest: %q", got)
	}
}

// A subscriber of a topic is told of that topic only.
func TestResumeTopic(t *testing.T) {
	l := New("e", Limits{Messages: 3, Bytes: 1 << 20})
	c := subscribe(t, l, topic("a"), "")
	add(l, "ab")
	_, last := read(c)
	add(l, "bbbbb")
	if got, _ := read(subscribe(t, l, topic("a"), last)); got != "" {
		t.Errorf("nothing of the topic was missed: %q", got)
	}
	add(l, "aabbab")
	if got, _ := read(subscribe(t, l, topic("a"), last)); got != "missed:2:false:false a" {
		t.Errorf("got %q", got)
	}
	if got, _ := read(subscribe(t, l, topic("a"), "e-1")); got != "missed:3:true:false a" {
		t.Errorf("by an id without the topic: %q", got)
	}
}

func TestDirectAndGap(t *testing.T) {
	l := New("e", Limits{Messages: 9, Bytes: 1 << 20})
	c, d := subscribe(t, l, topic(""), ""), subscribe(t, l, Filter{Direct: true}, "")
	l.Add(Message{Data: []byte("x"), Direct: true})
	l.Add(Message{Gap: "rejoined"})
	l.Add(Message{Data: []byte("y")})
	if got, _ := read(c); got != "gap y" {
		t.Errorf("topic: %q", got)
	}
	if got, _ := read(d); got != "x gap" {
		t.Errorf("direct: %q", got)
	}
}

// A subscriber of the fleet gets what was sent to all zones, and is told of at most what it may
// have missed.
func TestFleetFilter(t *testing.T) {
	l := New("e", Limits{Messages: 3, Bytes: 1 << 20})
	all, a := subscribe(t, l, Filter{Fleet: true}, ""), subscribe(t, l, Filter{ByTopic: true, Topic: "a", Fleet: true}, "")
	add(l, "ab")
	l.Add(Message{Topic: "a", Fleet: true, Zone: "z", Data: []byte("x")})
	if got, _ := read(all); got != "x" {
		t.Errorf("all: %q", got)
	}
	if got, _ := read(a); got != "x" {
		t.Errorf("topic: %q", got)
	}
	add(l, "aabb")
	if got, _ := read(all); got != "missed:1:true:false" {
		t.Errorf("all, late: %q", got)
	}
	if got, _ := read(a); got != "missed:1:true:false" {
		t.Errorf("topic, late: %q", got)
	}
}

func TestRestart(t *testing.T) {
	l := New("f", Limits{Messages: 2, Bytes: 1 << 20})
	add(l, "aba")
	if got, _ := read(subscribe(t, l, topic("a"), "e-7-3")); got != "missed:1:false:true a" {
		t.Errorf("got %q", got)
	}
	for _, id := range []string{"x", "f-", "f-9", "f-1-x", "f-1-1-1"} {
		if _, err := l.Subscribe(Filter{}, id); err == nil {
			t.Errorf("%q is accepted", id)
		}
	}
}

func TestBytesAreBounded(t *testing.T) {
	l := New("e", Limits{Messages: 1000, Bytes: 10 * overhead})
	for range 100 {
		l.Add(Message{Data: make([]byte, overhead)})
	}
	if n, bytes := l.Retained(); n != 5 || bytes > 10*overhead {
		t.Errorf("%d messages, %d bytes", n, bytes)
	}
	l.Add(Message{Data: make([]byte, 100*overhead)}) // longer than all
	if n, bytes := l.Retained(); n != 0 || bytes != 0 {
		t.Errorf("%d messages, %d bytes", n, bytes)
	}
}

func TestNextWaits(t *testing.T) {
	l := New("e", Limits{Messages: 2, Bytes: 1 << 20})
	c := subscribe(t, l, Filter{}, "")
	go add(l, "a")
	if e, err := c.Next(t.Context()); err != nil || string(e.Message.Data) != "a" {
		t.Errorf("%+v, %v", e, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx); err == nil {
		t.Error("no error")
	}
}

// However a subscriber reads, is cut and comes back, what it gets and what it is told to
// have missed is everything of its topic, in order.
func TestNothingIsMissedSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New("e", Limits{
			Messages: rapid.IntRange(1, 8).Draw(t, "retained"), Bytes: 1 << 20,
			Topics: rapid.IntRange(2, 3).Draw(t, "topics"),
		})
		filter := rapid.SampledFrom([]Filter{{}, topic("a")}).Draw(t, "filter")
		c, err := l.Subscribe(filter, FromOldest)
		if err != nil {
			t.Fatal(err)
		}
		last := FromOldest
		var sent, got uint64
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c, err = l.Subscribe(filter, last)
				if err != nil {
					t.Fatal(err)
				}
				if last == FromOldest { // what was dropped before is not its
					got = c.droppedBefore()
				}
			case 1:
				if e, ok := c.try(); ok {
					last = e.ID
					if e.Missed != nil {
						got += e.Missed.Count
					} else {
						got++
						if fmt.Sprint(got) != string(e.Message.Data) {
							t.Fatalf("message %s is number %d", e.Message.Data, got)
						}
					}
				}
			default:
				name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "topic")
				m := Message{Topic: name}
				if filter.all() || name == "a" {
					sent++
					m.Data = []byte(fmt.Sprint(sent))
				}
				l.Add(m)
			}
		}
		for e, ok := c.try(); ok; e, ok = c.try() {
			got++
			if e.Missed != nil {
				got += e.Missed.Count - 1
			}
		}
		if got != sent {
			t.Fatalf("%d of %d", got, sent)
		}
	})
}
