package pleach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/membership"
	"github.com/pleach-go/pleach/transport/tcp"
)

// tellWork answers whoever asks what this process is doing: which calls it is in,
// never what is in them. The process's own goroutines are not waited for, so one
// that is busy elsewhere answers, too.
func (g *Group) tellWork() []byte {
	p, ok := g.parts.courier.(*post)
	if !ok {
		return refusal(errors.New("this member is not in a World: it makes no collective calls"))
	}
	b, err := json.Marshal(collective.Comm(p.engine.Comm()).Progress())
	if err != nil {
		return refusal(err)
	}
	return append([]byte{answerYes}, b...)
}

// LookAtWork asks the process of a job at an address what it is doing: which calls
// of package collective it is in, since when, for whom it waits, and which was the
// last that was over, in the job's world and in those that were made of it by
// Shrink. The process need not be in a call. Of the config, Group and TLS count.
func LookAtWork(ctx context.Context, c Config, address string) ([]collective.Progress, error) {
	b, err := tcp.Knock(ctx, tcp.Config{Group: c.Group, TLS: c.TLS}, address, request(knockWork, &membership.Member{}))
	var worlds []collective.Progress
	switch {
	case err != nil:
	case len(b) == 0 || b[0] != answerYes:
		err = fmt.Errorf("%w: %s", ErrRefused, b[min(1, len(b)):])
	default:
		err = json.Unmarshal(b[1:], &worlds)
	}
	if err == nil && len(worlds) == 0 {
		err = errors.New("it tells of no world")
	}
	if err != nil {
		return nil, fmt.Errorf("pleach: look at %s: %w", address, err)
	}
	return worlds, nil
}
