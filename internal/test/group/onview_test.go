package group_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// counted is what OnView and OnMessage were called with: views, and messages by view and sender.
type counted struct {
	mu      sync.Mutex
	views   []uint64
	early   bool // a message came before its view
	streams map[string][]string
}

func (c *counted) begin(v pleach.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.views = append(c.views, v.Number)
}

func (c *counted) take(m pleach.Message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || m.Direct {
		return
	}
	c.early = c.early || len(c.views) == 0 || m.View != c.views[len(c.views)-1]
	stream := fmt.Sprint(m.View, " ", m.From)
	c.streams[stream] = append(c.streams[stream], string(m.Data))
}

func (c *counted) stream(view uint64, from int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.streams[fmt.Sprint(view, " ", from)])
}

// With Echo and OnView, all members count the broadcasts of each member in each view alike, the
// sender too, although views change under load; and each view begins before its messages.
func TestOnView(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := func() (pleach.Config, *counted) {
		c := &counted{streams: make(map[string][]string)}
		return pleach.Config{
			Listen: "127.0.0.1:0", OnMessage: c.take, Delivery: pleach.Delivery{Echo: true},
			OnView: c.begin,
		}, c
	}
	first, a := config()
	g, err := pleach.Create(ctx, first)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				sent <- n
				return
			default:
			}
			if err := g.Broadcast(ctx, fmt.Append(nil, n)); err != nil {
				t.Error(err)
			}
		}
	}()
	var groups []*pleach.Group
	var others []*counted
	for range 3 {
		next, c := config()
		joined, err := pleach.Join(ctx, next, g.Self().Address)
		if err != nil {
			t.Fatal(err)
		}
		defer joined.Close()
		groups, others = append(groups, joined), append(others, c)
		if err := joined.Broadcast(ctx, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	n := <-sent
	if _, err := g.WaitStable(ctx); err != nil {
		t.Fatal(err)
	}
	own := 0
	for view := uint64(1); view <= g.View().Number; view++ {
		want := a.stream(view, g.Rank())
		own += len(want)
		for i, c := range others {
			if view < groups[i].Self().Incarnation {
				continue
			}
			// A receipt proves that the member has them; its program is called with them a little later.
			testutil.Within(time.Minute, func() bool { return len(c.stream(view, g.Rank())) >= len(want) })
			if got := c.stream(view, g.Rank()); !slices.Equal(got, want) {
				t.Errorf("view %d: member %d has %d messages, and the sender %d", view, i+1, len(got), len(want))
			}
		}
	}
	if own != n {
		t.Errorf("the sender has %d of its %d messages", own, n)
	}
	for i, c := range append(others, a) {
		c.mu.Lock()
		if c.early || !slices.IsSorted(c.views) || len(c.views) == 0 {
			t.Errorf("%d: views %v, early %t", i, c.views, c.early)
		}
		c.mu.Unlock()
	}
}

// OnView without OnMessage is refused.
func TestOnViewNeedsOnMessage(t *testing.T) {
	if _, err := pleach.Create(t.Context(), pleach.Config{Listen: "127.0.0.1:0", OnView: func(pleach.View) {}}); err ==
		nil {
		t.Error("no error")
	}
}
