package group_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Done is closed when the membership has ended, and Err has the reason then.
func TestDone(t *testing.T) {
	for name, recovery := range map[string]pleach.Recovery{"once": {}, "with Rejoin": {Rejoin: true}} {
		t.Run(name, func(t *testing.T) {
			g, err := pleach.Create(t.Context(), pleach.Config{Recovery: recovery})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-g.Done():
				t.Errorf("a member is done: %v", g.Err())
			default:
			}
			done := g.Done()
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("not done after Close")
			}
			if err := g.Err(); !errors.Is(err, pleach.ErrLeft) && !errors.Is(err, pleach.ErrClosed) {
				t.Errorf("done, and the error is %v", err)
			}
		})
	}
}

// With Rejoin, a removed process is not done.
func TestDoneSpansMemberships(t *testing.T) {
	_, slow, _ := outpacedBeside(t, func(*pleach.Group) {})
	done := slow.Done()
	for _, err := range slow.Messages(t.Context()) {
		if _, ok := errors.AsType[*pleach.GapError](err); ok {
			break // it is a member again
		}
	}
	select {
	case <-done:
		t.Errorf("done in its second membership: %v", slow.Err())
	default:
	}
}
