package ordered_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/ordered"
)

// sharer is a program whose group has an order beside other messages.
type sharer struct {
	*ordered.Order
	group *pleach.Group

	mu    sync.Mutex
	list  []string
	other []string // messages that are not the order's
	began int      // how often the order began anew
}

func (m *sharer) Snapshot(w io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.NewEncoder(w).Encode(m.list)
}

func (m *sharer) Restore(r io.Reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.NewDecoder(r).Decode(&m.list)
}

func (m *sharer) texts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

func (m *sharer) deliver(got ordered.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, fmt.Sprintf("%s:%s", got.Topic, got.Data))
}

// share makes a member of the group at an address that takes part in its order; "": a new group.
func share(t *testing.T, seed string) *sharer {
	t.Helper()
	m := new(sharer)
	shared := ordered.NewShared(ordered.SharedConfig{
		Topic: "order", Safe: true, Deliver: m.deliver, State: m,
		Begin: func(uint64) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.list = nil
			m.began++
		},
	})
	m.group = member0(t, seed, pleach.Config{
		Delivery: pleach.Delivery{Echo: true, Handlers: shared.Handlers()},
		OnMessage: func(got pleach.Message, err error) {
			if !shared.Receive(got, err) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.other = append(m.other, string(got.Data))
			}
		},
	})
	m.Order = shared.Start(m.group)
	t.Cleanup(m.abort)
	return m
}

// member0 makes a member of the group at an address; "": a new group.
func member0(t *testing.T, seed string, c pleach.Config) *pleach.Group {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var g *pleach.Group
	var err error
	if seed == "" {
		g, err = pleach.Create(ctx, c)
	} else {
		g, err = pleach.Join(ctx, c, seed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// abort is the crash of a member.
func (m *sharer) abort() {
	_ = m.group.Abort()
	_ = m.Order.Close()
}

func (m *sharer) address() string { return m.group.Self().Address }

func shareAll(t *testing.T, n int) []*sharer {
	t.Helper()
	members := []*sharer{share(t, "")}
	for range n - 1 {
		m := share(t, members[0].address())
		testutil.Eventually(t, "leader", func() bool { return m.Stats().Leader >= 0 })
		members = append(members, m)
	}
	return members
}

// Members broadcast to the order and beside it. The leader dies, another one joins, the next
// leader dies. Those that are left have the same, in the same order, and nothing twice.
func TestSharedOrderAlthoughLeadersDie(t *testing.T) {
	const each = 200
	members := shareAll(t, 5)
	var sending sync.WaitGroup
	for i, m := range members {
		sending.Go(func() {
			for n := range each {
				if m.Broadcast(t.Context(), "t", fmt.Appendf(nil, "%d-%d", i, n)) != nil ||
					m.group.Broadcast(t.Context(), []byte("other")) != nil {
					return
				}
				time.Sleep(time.Duration(n%3) * 200 * time.Microsecond)
			}
		})
	}
	testutil.Eventually(t, "message", func() bool { return len(members[4].texts()) > 20 })
	members[0].abort()
	late := share(t, members[2].address())
	testutil.Eventually(t, "joiner", func() bool { return late.Stats().Leader >= 0 })
	members[1].abort()
	sending.Wait()

	left := append(members[2:], late)
	testutil.Eventually(t, "equal state", func() bool {
		own := count(left[0].texts(), func(s string) bool { return s > "t:2" })
		return own == 3*each &&
			!slices.ContainsFunc(left, func(m *sharer) bool { return !slices.Equal(m.texts(), left[0].texts()) })
	})
	check(t, left[0].texts())
	for i, gone := range members[:2] {
		if had := gone.texts(); !slices.Equal(had, left[0].texts()[:len(had)]) {
			t.Errorf("member %d, which is dead, has delivered something else", i)
		}
	}
	if len(left[0].other) < 3*each {
		t.Errorf("%d messages beside the order", len(left[0].other))
	}
}

// A member that is started again has its old rank, and leads before it knows the order.
func TestLeaderThatIsStartedAgainGetsTheOrder(t *testing.T) {
	members := shareAll(t, 3)
	for n := range 50 {
		if err := members[n%3].Broadcast(t.Context(), "t", fmt.Appendf(nil, "%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Eventually(t, "messages", func() bool { return len(members[2].texts()) == 50 })
	members[0].abort()
	testutil.Eventually(t, "view", func() bool { return members[1].group.View().Size() == 2 })
	back := share(t, members[1].address())
	if back.group.Rank() != 0 {
		t.Skip("it has another rank") // its address is another one
	}
	if err := back.Broadcast(t.Context(), "t", []byte("again")); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "equal state", func() bool {
		return len(back.texts()) == 51 && slices.Equal(back.texts(), members[1].texts()) &&
			slices.Equal(back.texts(), members[2].texts())
	})
}

// A group whose first member takes no part has an order as soon as that is gone, which begins
// without messages, once.
func TestOrderBeginsAmongMembersThatTakePart(t *testing.T) {
	founder := member0(t, "", pleach.Config{})
	first := share(t, founder.Self().Address)
	second := share(t, first.address())
	_ = first.Broadcast(t.Context(), "t", []byte("early"))
	time.Sleep(50 * time.Millisecond)
	if n := len(first.texts()); n != 0 {
		t.Fatalf("%d messages without a leader", n)
	}
	_ = founder.Abort()
	_ = second.Broadcast(t.Context(), "t", []byte("late"))
	testutil.Eventually(t, "equal state", func() bool {
		return len(first.texts()) == 2 &&
			slices.Equal(first.texts(), second.texts())
	})
	third := share(t, first.address())
	testutil.Eventually(t, "state", func() bool { return len(third.texts()) == 2 })
	if first.began != 1 || second.began != 1 || third.began != 0 {
		t.Errorf("began %d, %d, %d times", first.began, second.began, third.began)
	}
}

// A member that is alone has an order, too.
func TestSharedOrderOfOne(t *testing.T) {
	m := share(t, "")
	for n := range 3 {
		if err := m.Broadcast(t.Context(), "t", fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
		testutil.Eventually(t, "message", func() bool { return len(m.texts()) == n+1 })
	}
}
