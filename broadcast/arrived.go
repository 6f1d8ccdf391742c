package broadcast

import (
	"errors"

	"github.com/pleach-go/pleach/protocol"
)

// Arrived is dissemination that is already over: the message came by other
// means, and only correction is left to do. It lets one correction mend a whole
// burst of messages that were disseminated one by one.
type Arrived struct{}

func (Arrived) check(c *Config) error {
	switch {
	case c.Correction == nil:
		return errors.New("a message that has already arrived, and no correction: nothing is left to do")
	case c.Start == Synchronized:
		return errors.New("a message that has already arrived came at another time to each process: choose an overlapped start")
	}
	return nil
}

func (Arrived) hop() protocol.Time { return 0 }

func (Arrived) parts(n int) func(i int) disseminator {
	return slab(n, arrivedPart{}, func(p *arrivedPart) disseminator { return p })
}

type arrivedPart struct{}

func (*arrivedPart) begin(*Process, protocol.Time, *Message) {}

func (*arrivedPart) hear(*Process, protocol.Time, *Message) {}

func (*arrivedPart) next(_ *Process, _ protocol.Time, a *Action) { a.Done() }
