package member

import (
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/internal/stream"
	"github.com/pleach-go/pleach/protocol"
)

// A member whose inbox is full leaves if its program does not receive. If a view change
// holds the messages back, the program cannot receive them, and the member stays.
func TestOnlyASlowProgramMakesAMemberLeave(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprintf("frozen=%v", frozen), func(t *testing.T) {
			members := []membership.Member{
				{Rank: 0, Identity: "a", Address: "a", Incarnation: FirstIncarnation},
				{Rank: 1, Identity: "b", Address: "b", Incarnation: FirstIncarnation},
			}
			view := membership.View{Number: 1, Slots: 2, Members: membership.MembersOf(members...)}
			var both [2]*Machine
			for r := range both {
				m, err := New(Config{Self: members[r], View: view, Stream: stream.Config{InboxBytes: 1000}})
				if err != nil {
					t.Fatal(err)
				}
				m.Start(1)
				both[r] = m
			}
			sender, receiver := both[0], both[1]
			if frozen {
				receiver.Freeze()
			}
			if err := sender.stream.Write(make([]byte, 1100), 0); err != nil {
				t.Fatal(err)
			}
			for _, head, body, ok := sender.stream.Next(1); ok; _, head, body, ok = sender.stream.Next(1) {
				if err := receiver.stream.Receive(1, 0, append(head[:len(head):len(head)], body...)); err != nil {
					t.Fatal(err)
				}
			}
			if !receiver.stream.Full() {
				t.Fatal("the inbox is not full")
			}
			for now := protocol.Time(1); now <= 2*defaultSlowTimeout; now += defaultSlowTimeout / 5 {
				receiver.Settle(now)
			}
			if left := receiver.TooSlow(); left == frozen {
				t.Errorf("the member leaves: %v", left)
			}
		})
	}
}
