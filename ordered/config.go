package ordered

import (
	"cmp"
	"context"
	"maps"

	"github.com/pleach-go/pleach"
)

// Config configures [Join].
type Config struct {
	// Group is the config of the group. Its OnMessage must be nil: receive by
	// [Order.Messages]. Its State, if there is one, is written and restored between two
	// messages of that. Its Static and AllowMinority must be false, its Transport nil and its
	// Limits.Overflow Block. With Safe, its DataDir must be empty: a vote that outlives the
	// messages in memory could begin a view without them.
	Group pleach.Config
	// Safe delivers a message only when a majority of the view's voters has it. All members use the
	// same. If false, a message is delivered when it arrives.
	Safe bool
}

// Limits of this package.
const (
	maxBatch   = 64 << 10  // bytes of messages in one frame, and one message more; less if Limits.MaxMessage is small
	maxPending = 1 << 20   // bytes of a process's messages that have no number yet; Broadcast blocks beyond it
	maxQueued  = 256 << 10 // bytes that wait in a leader to be broadcast; it accepts nothing beyond it
)

// requestName is the name of requests by which members forward messages to the leader.
const requestName = "pleach.ordered"

// maxMessage is Config.Group.Limits.MaxMessage if that is zero.
const maxMessage = 1 << 30

// limits returns how many bytes of messages go into one frame, and how long a message may be: a
// frame of a leader, with a batch more than that and its heads, is a message of the group.
func (c *Config) limits() (batch, message int) {
	most := cmp.Or(c.Group.Limits.MaxMessage, maxMessage)
	return min(maxBatch, most/8), most / 2
}

// check returns an error for a setting that an order cannot keep its promises with.
func (c *Config) check() error {
	for _, check := range []struct {
		field  string
		wrong  bool
		reason string
	}{
		{"Group.OnMessage", c.Group.OnMessage != nil, "must be nil: receive by Messages"},
		{"Group.Static", c.Group.Static, "must be false: an order needs views"},
		{"Group.AllowMinority", c.Group.AllowMinority, "must be false: both sides of a partition would continue the order"},
		{"Group.Transport", c.Group.Network.Transport != nil, "must be nil: processes join over TCP"},
		{"Group.Limits.Overflow", c.Group.Limits.Overflow != pleach.Block, "must be Block: an order has no holes"},
		{
			"Group.Recovery.DataDir", c.Safe && c.Group.Recovery.DataDir != "",
			"must be empty: a vote that outlives the messages could begin a view without them",
		},
	} {
		if check.wrong {
			return &pleach.ConfigError{Field: check.field, Reason: check.reason}
		}
	}
	return nil
}

// groupConfig returns the config of the group, with what this package adds.
func (o *Order) groupConfig() pleach.Config {
	c := o.config.Group
	c.State = &state{o, c.State}
	c.Delivery.Handlers = maps.Clone(c.Delivery.Handlers)
	if c.Delivery.Handlers == nil {
		c.Delivery.Handlers = make(map[string]func(ctx context.Context, r pleach.Request) ([]byte, error))
	}
	c.Delivery.Handlers[requestName] = o.serve
	return c
}
