package lifecycle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// candidate returns the machine of a process that only joins, with a disk.
func candidate(seeds ...string) *Machine {
	m := New(Config{Self: membership.Member{Identity: "a", Address: "a:1", Nonce: 1}, Seeds: seeds, Durable: true})
	m.Start(1)
	return m
}

// drain takes all actions.
func drain(m *Machine, now protocol.Time) (asks []Ask) {
	for {
		switch a := m.Next(now).(type) {
		case nil:
			return asks
		case Ask:
			asks = append(asks, a)
		}
	}
}

// A process with more contacts than questions on their way waits for the answers: the
// question that is due cannot be sent before.
func TestDeadlineWithManyContacts(t *testing.T) {
	var seeds []string
	for i := range maxAsked + 1 {
		seeds = append(seeds, fmt.Sprint("seed:", i+1))
	}
	m := candidate(seeds...)
	drain(m, 1)
	if due := m.Deadline(); due <= 1 {
		t.Errorf("the deadline is %d, and nothing can be done then", due)
	}
}

// A process asks those to let it join that have introduced themselves, not only its seeds,
// which may have moved.
func TestJoinsProcessesThatItHasMet(t *testing.T) {
	m := candidate("old:1")
	drain(m, 1)
	m.Requested(2, control.Introduce{Question: control.Question{From: control.Contact{ID: "b", Address: "b:2"}}})
	var asked []string
	for now := protocol.Time(3); now < 3000*millisecond; now += 10 * millisecond {
		for _, a := range drain(m, now) {
			if _, ok := a.Request.(control.Join); ok {
				asked = append(asked, a.Address)
			}
			m.Replied(now, a.Token, Reply{Err: fmt.Errorf("refused"), Gone: true})
		}
		for token := range m.asks {
			m.Replied(now, token, Reply{Err: fmt.Errorf("refused"), Gone: true})
		}
	}
	if !slices.Contains(asked, "b:2") {
		t.Errorf("it has asked %v", asked)
	}
}
