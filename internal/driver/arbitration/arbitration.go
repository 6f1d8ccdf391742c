// Package arbitration asks the arbiter of a group what the membership protocol wants to know.
package arbitration

import (
	"context"
	"log/slog"
	"time"

	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Grant asks an arbiter whether the members of a claim may decide the view. An error means that
// this is unknown. It returns when ctx ends.
type Grant func(ctx context.Context, c membership.Claim) (bool, error)

// The bounds of the time in which an arbiter has to answer.
const (
	shortest = time.Second
	longest  = 5 * time.Second
	factor   = 4 // times the time after which a silent member is suspected
)

// Config configures an Asker.
type Config struct {
	Grant Grant
	// Suspicion is how long a member may be silent before it is suspected.
	Suspicion protocol.Time
	// Life ends all calls. Go runs a function concurrently, which the end of the membership waits for.
	Life context.Context
	Go   func(func())
	// Judge is called with each answer, and with why there is none if v is Unanswered.
	Judge  func(c membership.Claim, v membership.Verdict, cause error)
	Logger *slog.Logger
}

// Asker asks an arbiter. The membership protocol has one question at a time.
type Asker struct {
	config  Config
	timeout time.Duration
}

// New returns an asker.
func New(c Config) *Asker {
	return &Asker{c, min(max(factor*time.Duration(c.Suspicion), shortest), longest)}
}

// Ask asks the arbiter. It does not wait for the answer.
func (a *Asker) Ask(c membership.Claim) { a.config.Go(func() { a.ask(c) }) }

func (a *Asker) ask(c membership.Claim) {
	ctx, cancel := context.WithTimeout(a.config.Life, a.timeout)
	defer cancel()
	granted, err := a.config.Grant(ctx, c)
	if a.config.Life.Err() != nil {
		return
	}
	ranks := make([]protocol.Rank, len(c.Side))
	for i := range c.Side {
		ranks[i] = c.Side[i].Rank
	}
	l := a.config.Logger.With("view", c.View, "side", ranks)
	v := membership.Refused
	switch {
	case err != nil:
		v = membership.Unanswered
		l.Warn("the arbiter does not answer: asking again", "cause", err)
	case granted:
		v = membership.Granted
		l.Info("the arbiter lets this side decide the next view")
	default:
		l.Warn("the arbiter has let another side decide this view or a later one")
	}
	a.config.Judge(c, v, err)
}
