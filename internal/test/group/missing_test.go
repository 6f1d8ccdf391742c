package group_test

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// outrun makes a group whose member 1 has lost messages of member 0, which has sent so many of one topic or of none.
func outrun(t *testing.T, subscribe string) (sender, slow *pleach.Group, topic *pleach.Subscription, sent int) {
	t.Helper()
	groups := joinWhole(t, 2, func(c *pleach.Config) {
		c.Limits.KeepBytes, c.Limits.InboxBytes, c.Limits.Overflow = 128<<10, 64<<10, pleach.Drop
	})
	meet(t, groups)
	var err error
	broadcast := groups[0].Broadcast
	if subscribe != "" {
		topic, err = groups[1].Subscribe(subscribe)
		if err != nil {
			t.Fatal(err)
		}
		broadcast = func(ctx context.Context, data []byte) error { return groups[0].BroadcastTopic(ctx, subscribe, data) }
	}
	for ; groups[1].Stats().Refused < 50 && t.Context().Err() == nil; sent++ {
		if err := broadcast(t.Context(), numbered(0, sent, 16<<10)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	return groups[0], groups[1], topic, sent
}

// A LostError comes behind all messages before the lost ones and before all later ones, and its
// count is exact, whether one loop receives everything or each loop is left after one element.
func TestLossIsInItsPlace(t *testing.T) {
	for name, test := range map[string]struct {
		topic string
		most  int // elements for each loop
	}{
		"one loop": {"", 1 << 30}, "many loops": {"", 1},
		"subscription": {"news", 1 << 30}, "many loops over a subscription": {"news", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, slow, topic, sent := outrun(t, test.topic)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			messages := func() iter.Seq2[pleach.Message, error] { return slow.Messages(ctx) }
			if topic != nil {
				messages = func() iter.Seq2[pleach.Message, error] { return topic.Messages(ctx) }
			}
			next, losses := 0, 0
			for next < sent && ctx.Err() == nil {
				n := 0
				for m, err := range messages() {
					if lost, ok := errors.AsType[*pleach.LostError](err); ok {
						if lost.From != 0 || lost.View == 0 || lost.Count == 0 || m.Data != nil {
							t.Errorf("%+v with %+v", lost, m)
						}
						losses++
						next += int(lost.Count)
					} else if number := int(binary.BigEndian.Uint32(m.Data[4:])); number != next || m.From != 0 {
						t.Fatalf("message %d of rank %d instead of %d of rank 0, after %d losses", number, m.From, next, losses)
					} else {
						next++
					}
					n++
					if n == test.most || next == sent {
						break
					}
				}
			}
			if next != sent || losses == 0 {
				t.Errorf("%d of %d messages, %d losses, %v", next, sent, losses, ctx.Err())
			}
		})
	}
}
