package faults

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Case 34: a member joins while another one waits for receipts. A receipt names only
// processes that have the message.
func TestCase34ReceiptsNameMembersThatHaveIt(t *testing.T) {
	config := pleach.Config{Group: "receipts", ID: "a", OnMessage: func(pleach.Message, error) {}}
	a, err := pleach.Create(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Abort()
	config.ID = "b"
	b, err := pleach.Join(t.Context(), config, a.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	var mu sync.Mutex
	later := 0
	for round := range uint32(60) {
		has := make(map[uint32]bool)
		joined := make(chan *pleach.Group, 1)
		go func() {
			c, err := pleach.Join(t.Context(),
				pleach.Config{Group: "receipts", ID: "c", OnMessage: func(m pleach.Message, _ error) {
					mu.Lock()
					defer mu.Unlock()
					has[binary.BigEndian.Uint32(m.Data)] = true
				}}, a.Self().Address)
			if err != nil {
				t.Error(err)
			}
			joined <- c
		}()
		var c *pleach.Group
		receipts := map[uint32]pleach.Receipt{}
		for i := uint32(0); c == nil; i++ {
			number := round<<16 | i
			if err := a.Broadcast(t.Context(), binary.BigEndian.AppendUint32(nil, number)); err != nil {
				t.Fatal(err)
			}
			r, err := a.WaitStable(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			receipts[number] = r
			select {
			case c = <-joined:
			default:
			}
		}
		time.Sleep(20 * time.Millisecond) // the handler is called after the message has arrived
		mu.Lock()
		for number, r := range receipts {
			later += len(r.Joined)
			for _, m := range r.Members {
				if m.Incarnation == c.Self().Incarnation && !has[number] {
					t.Errorf("round %d: the receipt in view %d names incarnation %d, which has not message %x", round, r.View,
						m.Incarnation, number)
				}
			}
		}
		mu.Unlock()
		if err := c.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if later == 0 {
		t.Error("no member has joined while a receipt was waited for")
	}
	figures(t, map[string]any{"case": 34, "joins": 60, "joined_later": later})
}
