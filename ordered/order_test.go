package ordered_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/ordered"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what happens within a second elsewhere.
const patience = time.Minute

// member is a program that keeps every message that it receives, as its state.
type member struct {
	*ordered.Order
	mu   sync.Mutex
	list []string
}

func (m *member) Snapshot(w io.Writer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.NewEncoder(w).Encode(m.list)
}

func (m *member) Restore(r io.Reader) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.NewDecoder(r).Decode(&m.list)
}

func (m *member) texts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// start makes a member of the group that another one is in; nil: a new group.
func start(t *testing.T, safe bool, other *member) *member {
	t.Helper()
	var seeds []string
	if other != nil {
		seeds = []string{other.Group().Self().Address}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m := new(member)
	var err error
	m.Order, err = ordered.Join(ctx, ordered.Config{Safe: safe, Group: pleach.Config{State: m}}, seeds...)
	if err != nil {
		t.Fatal(err)
	}
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for got, err := range m.Messages(context.Background()) {
			if err != nil {
				t.Error(err)
			}
			m.mu.Lock()
			m.list = append(m.list, fmt.Sprintf("%s:%s", got.Topic, got.Data))
			if got.Number != uint64(len(m.list)) {
				t.Errorf("number %d in place %d", got.Number, len(m.list))
			}
			m.mu.Unlock()
		}
	})
	t.Cleanup(func() { _ = m.Abort(); receiving.Wait() })
	return m
}

// startAll makes a group whose members all know the order.
func startAll(t *testing.T, safe bool, n int) []*member {
	t.Helper()
	members := []*member{start(t, safe, nil)}
	for range n - 1 {
		m := start(t, safe, members[0])
		testutil.Eventually(t, "leader", func() bool { return m.Stats().Leader >= 0 })
		members = append(members, m)
	}
	return members
}

// All members broadcast at the same time. The leader dies, another one joins, the next leader
// dies. Those that are left have received the same, in the same order.
func TestMembersReceiveOneOrderAlthoughLeadersDie(t *testing.T) {
	for _, safe := range []bool{false, true} {
		t.Run(fmt.Sprint("safe=", safe), func(t *testing.T) {
			const each = 300
			members := startAll(t, safe, 5)
			var sending sync.WaitGroup
			for i, m := range members {
				sending.Go(func() {
					for n := range each {
						if m.Broadcast(t.Context(), "t", fmt.Appendf(nil, "%d-%d", i, n)) != nil {
							return
						}
						time.Sleep(time.Duration(n%3) * 200 * time.Microsecond)
					}
				})
			}
			testutil.Eventually(t, "message", func() bool { return len(members[4].texts()) > 20 })
			_ = members[0].Abort()
			late := start(t, safe, members[2])
			testutil.Eventually(t, "joiner", func() bool { return late.Stats().Leader >= 0 })
			_ = members[1].Abort()
			sending.Wait()

			left := append(members[2:], late)
			testutil.Eventually(t, "equal state", func() bool {
				own := count(left[0].texts(), func(s string) bool {
					return strings.HasPrefix(s, "t:2-") || strings.HasPrefix(s, "t:3-") || strings.HasPrefix(s, "t:4-")
				})
				return own == 3*each &&
					!slices.ContainsFunc(left, func(m *member) bool { return !slices.Equal(m.texts(), left[0].texts()) })
			})
			check(t, left[0].texts())
			if safe {
				for i, gone := range members[:2] {
					if had := gone.texts(); !slices.Equal(had, left[0].texts()[:len(had)]) {
						t.Errorf("member %d, which is dead, has delivered something else", i)
					}
				}
			}
		})
	}
}

func count(list []string, is func(string) bool) (n int) {
	for _, s := range list {
		if is(s) {
			n++
		}
	}
	return n
}

// check checks that the messages of each member are there once, and in its order.
func check(t *testing.T, list []string) {
	t.Helper()
	next := make(map[int]int)
	for _, s := range list {
		var member, n int
		if _, err := fmt.Sscanf(s, "t:%d-%d", &member, &n); err != nil || n != next[member] {
			t.Fatalf("%q after %d of member %d", s, next[member], member)
		}
		next[member]++
	}
}

// A program that receives nothing for a while throttles the others and loses nothing.
func TestSlowMemberGetsAll(t *testing.T) {
	members := startAll(t, true, 3)
	slow := members[2]
	slow.mu.Lock()
	go func() {
		defer slow.mu.Unlock()
		time.Sleep(300 * time.Millisecond)
	}()
	data := make([]byte, 8<<10)
	for n := range 500 {
		if err := members[n%2].Broadcast(t.Context(), "", data); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Eventually(t, "messages", func() bool { return len(slow.texts()) == 500 })
}

func TestSettingsThatBreakTheOrderAreRefused(t *testing.T) {
	for field, c := range map[string]ordered.Config{
		"Group.OnMessage":        {Group: pleach.Config{OnMessage: func(pleach.Message, error) {}}},
		"Group.Static":           {Group: pleach.Config{Static: true}},
		"Group.AllowMinority":    {Group: pleach.Config{AllowMinority: true}},
		"Group.Limits.Overflow":  {Group: pleach.Config{Limits: pleach.Limits{Overflow: pleach.Drop}}},
		"Group.Recovery.DataDir": {Safe: true, Group: pleach.Config{Recovery: pleach.Recovery{DataDir: t.TempDir()}}},
	} {
		var refused *pleach.ConfigError
		if _, err := ordered.Join(t.Context(), c); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestBroadcastEnds(t *testing.T) {
	m := start(t, false, nil)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Broadcast(t.Context(), "", nil); !errors.Is(err, pleach.ErrClosed) {
		t.Error(err)
	}
}

// Processes that have joined, and have not got the order when the last member dies that knows it,
// end: they do not begin an empty one in its place.
func TestOrderThatIsLostDoesNotBeginAnew(t *testing.T) {
	var orders []*ordered.Order
	var seeds []string
	for range 3 { // the first one receives nothing, so the others get nothing from it
		o, err := ordered.Join(t.Context(), ordered.Config{Safe: true}, seeds...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Abort() })
		orders, seeds = append(orders, o), []string{o.Group().Self().Address}
	}
	_ = orders[0].Abort()
	joined := orders[1:]
	var receiving sync.WaitGroup
	for _, o := range joined {
		receiving.Go(func() {
			for m := range o.Messages(t.Context()) {
				t.Errorf("%+v", m)
			}
		})
	}
	testutil.Eventually(t, "end", func() bool {
		return slices.ContainsFunc(joined, func(o *ordered.Order) bool { return errors.Is(o.Err(), ordered.ErrStateLost) })
	})
	for _, o := range joined {
		_ = o.Abort()
	}
	receiving.Wait()
}

// Messages up to the limit arrive, also where that is small, and longer ones are refused at once.
func TestLongMessages(t *testing.T) {
	const limit = 4096
	var orders []*ordered.Order
	var seeds []string
	var got sync.WaitGroup
	for range 2 {
		o, err := ordered.Join(t.Context(), ordered.Config{Group: pleach.Config{Limits: pleach.Limits{MaxMessage: limit}}},
			seeds...)
		if err != nil {
			t.Fatal(err)
		}
		got.Add(40)
		var receiving sync.WaitGroup
		receiving.Go(func() {
			for range o.Messages(t.Context()) {
				got.Done()
			}
		})
		t.Cleanup(func() { _ = o.Abort(); receiving.Wait() })
		orders, seeds = append(orders, o), []string{o.Group().Self().Address}
		testutil.Eventually(t, "leader", func() bool { return o.Stats().Leader >= 0 })
	}
	for n := range 20 {
		for _, o := range orders {
			if err := o.Broadcast(t.Context(), "t", make([]byte, o.MaxMessage()-n%2)); err != nil {
				t.Fatal(err)
			}
			if err := o.Broadcast(t.Context(), "t", make([]byte, limit)); err == nil {
				t.Error("too long, and taken")
			}
		}
	}
	got.Wait()
}
