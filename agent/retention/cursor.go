package retention

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Filter chooses messages. The zero value chooses all.
type Filter struct {
	// ByTopic chooses the messages of Topic.
	ByTopic bool
	Topic   string
	// Direct chooses those that were sent to this member alone.
	Direct bool
	// Fleet chooses of those the messages that were sent to all zones. They are not counted
	// by themselves: what is missed is at most that of the filter without it.
	Fleet bool
}

// all reports whether the filter chooses messages of every topic.
func (f *Filter) all() bool { return !f.ByTopic && !f.Direct }

func (f *Filter) matches(m *Message) bool {
	switch {
	case m.Gap != "":
		return true
	case f.Fleet && !m.Fleet:
		return false
	case f.all():
		return true
	case f.Direct:
		return m.Direct
	}
	return !m.Direct && m.Topic == f.Topic
}

// Event is what a subscriber gets: a message, or how many it has missed.
type Event struct {
	// ID is that of the message, for a subscriber that comes back.
	ID      string
	Message *Message
	Missed  *Missed
}

// Missed tells a subscriber that messages of its filter are no longer retained.
type Missed struct {
	Count uint64 `json:"count"`
	// AtMost says that Count is an upper bound: the ID was of another filter.
	AtMost bool `json:"at_most,omitempty"`
	// Restarted says that the agent was started again after the ID. Messages before that
	// are missed, too, and not counted.
	Restarted bool `json:"restarted,omitempty"`
}

// Cursor is the position of one subscriber. It is used by one goroutine.
type Cursor struct {
	log     *Log
	filter  Filter
	next    uint64 // the number of the message to look at next
	seen    uint64 // of the counter of the filter
	atMost  bool
	missing *Missed // to be reported first
	gaps    uint64  // the number of the last gap that was reported and is no longer retained
}

// FromOldest is the ID with which a subscriber begins at the oldest message retained.
const FromOldest = "0"

// Subscribe returns a cursor after the message of an ID. If that is empty, it is after the
// last message.
func (l *Log) Subscribe(f Filter, after string) (*Cursor, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Cursor{log: l, filter: f}
	counted := c.counter()
	switch {
	case after == "":
		c.next, c.seen = l.next(), counted.added
		return c, nil
	case after == FromOldest:
		c.next, c.seen = l.first, counted.dropped
		return c, nil
	}
	id, err := parseID(after)
	switch {
	case err != nil:
		return nil, err
	}
	end, known := l.endOf(id.epoch)
	switch {
	case !known:
		c.next, c.seen = l.first, counted.dropped
		c.missing = &Missed{Count: c.droppedBefore(), AtMost: f.Fleet, Restarted: true}
		return c, nil
	case id.number >= end && id.epoch == l.epochs[len(l.epochs)-1].Name:
		return nil, fmt.Errorf("id %q is of a message that has not come yet", after)
	}
	c.next, c.seen = min(id.number+1, end), id.seen // the log may have lost its end, and has got it again
	c.atMost = !f.all() && !id.filtered
	return c, nil
}

// SubscribeLast returns a cursor before the last message of a filter. It returns false if none
// is retained, and the cursor is after the last message of the log then.
func (l *Log) SubscribeLast(f Filter) (*Cursor, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Cursor{log: l, filter: f}
	c.next, c.seen = l.next(), c.counter().added
	for n := c.next; n > l.first; n-- {
		if m := l.retained.At(int(n - 1 - l.first)); m.Gap == "" && f.matches(m) {
			c.next, c.seen = n-1, m.ordinal-1
			return c, true
		}
	}
	return c, false
}

// ID names the position of the cursor, for a subscriber that comes back before it has got
// anything.
func (c *Cursor) ID() string {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	return c.id(c.next - 1)
}

// counter is that of the filter, within the log's lock.
func (c *Cursor) counter() *counter { return c.log.counterOf(c.filter.Topic, c.filter.Direct, false) }

// droppedBefore counts the messages of the filter that are no longer retained.
func (c *Cursor) droppedBefore() uint64 {
	if c.filter.all() {
		return c.log.first - 1
	}
	return c.counter().dropped
}

// Next returns the next event, as soon as there is one.
func (c *Cursor) Next(ctx context.Context) (Event, error) {
	for {
		added := c.log.added.Wait()
		if e, ok := c.try(); ok {
			return e, nil
		}
		select {
		case <-added:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// try returns the next event, if there is one.
func (c *Cursor) try() (Event, bool) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := c.missing; m != nil {
		c.missing = nil
		return Event{Missed: m}, true
	}
	if g := c.droppedGap(); g != nil {
		return Event{ID: c.id(c.next - 1), Message: g}, true
	}
	if missed := c.catchUp(); missed.Count > 0 {
		return Event{ID: c.id(l.first - 1), Missed: missed}, true
	}
	for c.next < l.next() {
		m := *l.retained.At(int(c.next - l.first))
		c.next++
		if c.filter.matches(&m) {
			c.seen = max(c.seen, m.ordinal)
			return Event{ID: c.id(c.next - 1), Message: &m}, true
		}
	}
	return Event{}, false
}

// droppedGap returns the next gap that the cursor has not come to and that is no longer retained.
func (c *Cursor) droppedGap() *Message {
	for i := range c.log.gaps {
		if g := &c.log.gaps[i]; g.number >= c.next && g.number > c.gaps {
			c.gaps = g.number
			m := g.message
			return &m
		}
	}
	return nil
}

// catchUp moves the cursor to what is retained, and returns what it has missed.
func (c *Cursor) catchUp() *Missed {
	l := c.log
	if c.next >= l.first {
		return &Missed{}
	}
	behind, dropped := l.first-c.next, c.counter().dropped
	for i := range l.gaps {
		if l.gaps[i].number >= c.next {
			behind-- // it is not a message, and was reported
		}
	}
	c.next = l.first
	if c.filter.all() {
		return &Missed{Count: behind, AtMost: c.filter.Fleet}
	}
	missed := &Missed{AtMost: c.atMost || c.filter.Fleet}
	switch {
	case c.atMost:
		missed.Count = min(behind, dropped)
	case dropped > c.seen:
		missed.Count = dropped - c.seen
	}
	c.seen, c.atMost = max(c.seen, dropped), false
	return missed
}

// id names a position of the cursor. That of a filtered cursor has the messages of the
// filter counted in it, so that those that are missed later can be counted exactly.
func (c *Cursor) id(number uint64) string {
	epoch := c.log.epochOf(number)
	if c.filter.all() {
		return fmt.Sprintf("%s-%d", epoch, number)
	}
	return fmt.Sprintf("%s-%d-%d", epoch, number, c.seen)
}

// id is the parts of an ID.
type id struct {
	epoch        string
	number, seen uint64
	filtered     bool
}

func parseID(text string) (i id, err error) {
	parts := strings.Split(text, "-")
	if len(parts) == 2 || len(parts) == 3 {
		i.epoch = parts[0]
		i.number, err = strconv.ParseUint(parts[1], 10, 63)
		i.filtered = len(parts) == 3
		if i.filtered && err == nil {
			i.seen, err = strconv.ParseUint(parts[2], 10, 63)
		}
		if err == nil {
			return i, nil
		}
	}
	return i, fmt.Errorf("%q is not the id of a message", text)
}
