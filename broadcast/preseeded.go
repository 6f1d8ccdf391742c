package broadcast

import (
	"errors"

	"github.com/pleach-go/pleach/protocol"
)

// Preseeded is dissemination that is over before the broadcast begins: the message
// came by other means, and only correction is left to do. One correction then repairs
// a whole burst of messages that were disseminated one by one.
type Preseeded struct{}

func (Preseeded) check(c *Config) error {
	switch {
	case c.Correction == nil:
		return errors.New("a message that has already arrived, and no correction: nothing is left to do")
	case c.Start == Synchronized:
		return errors.New("a message that has already arrived came at another time to each process: choose an overlapped start")
	}
	return nil
}

func (Preseeded) hop() protocol.Time { return 0 }

func (Preseeded) states(n int) func(i int) disseminator {
	return slab(n, preseededState{}, func(p *preseededState) disseminator { return p })
}

type preseededState struct{}

func (*preseededState) begin(*Process, protocol.Time, *Message) {}

func (*preseededState) handle(*Process, protocol.Time, *Message) {}

func (*preseededState) next(_ *Process, _ protocol.Time, a *Action) { a.Done() }
