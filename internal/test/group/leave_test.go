package group_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Close is a graceful departure: the others install a view without the process at
// once, and none of them suspects it. After Abort they have to find out.
func TestCloseLeaves(t *testing.T) {
	groups := joinWhole(t, 4, nil)
	meet(t, groups)
	if err := groups[3].Close(); err != nil {
		t.Fatal(err)
	}
	// Close has returned, so the coordinator has installed the view.
	if v := groups[0].View(); v.Has(3) || groups[0].Size() != 3 || v.Slots != 4 {
		t.Errorf("after Close: %+v", v)
	}
	if err := groups[3].Err(); !errors.Is(err, pleach.ErrLeft) {
		t.Errorf("Err is %v, want ErrLeft", err)
	}
	if err := groups[2].Abort(); err != nil {
		t.Fatal(err)
	}
	if err := groups[2].Err(); !errors.Is(err, pleach.ErrClosed) {
		t.Errorf("Err is %v, want ErrClosed", err)
	}
	awaitView(t, groups[0], "without rank 2", without(2))
}

// All members that close at once are gone within the bound of one.
func TestAllCloseAtOnce(t *testing.T) {
	groups := joinWhole(t, 8, nil)
	meet(t, groups)
	began := time.Now()
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	testutil.Took(t, "Close of all members", time.Since(began), 2*time.Second)
}

// The last member closes at once.
func TestLastCloses(t *testing.T) {
	g, err := pleach.Create(context.Background(), pleach.Config{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	testutil.Took(t, "Close", time.Since(began), 500*time.Millisecond)
}

// Case 69: Close and Abort return in time even if Config.OnMessage does not, and the error names
// it. The others see that this process has left, or a crash.
func TestCloseWhileHandlerBlocks(t *testing.T) {
	for name, end := range map[string]func(*pleach.Group) error{
		"Close": (*pleach.Group).Close,
		"Abort": (*pleach.Group).Abort,
	} {
		t.Run(name, func(t *testing.T) {
			first, err := pleach.Create(t.Context(), pleach.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = first.Abort() })
			blocked, release := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(release) })
			second, err := pleach.Join(t.Context(), pleach.Config{OnMessage: func(pleach.Message, error) {
				close(blocked)
				<-release
			}}, first.Self().Address)
			if err != nil {
				t.Fatal(err)
			}
			awaitView(t, first, "both", ofSize(2))
			if err := first.Broadcast(t.Context(), []byte("x")); err != nil {
				t.Fatal(err)
			}
			<-blocked
			var stuck *pleach.StuckError
			if err := end(second); !errors.As(err, &stuck) || stuck.Callback != "Config.OnMessage" {
				t.Errorf("%s: %v", name, err)
			}
			if !errors.Is(second.Err(), pleach.ErrLeft) && !errors.Is(second.Err(), pleach.ErrClosed) {
				t.Errorf("the group has ended with %v", second.Err())
			}
			awaitView(t, first, "alone", ofSize(1))
		})
	}
}
