package pleach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/control"
	"github.com/pleach-go/pleach/internal/job"
	"github.com/pleach-go/pleach/transport/tcp"
)

// Inspection is what a member tells a process outside its group.
type Inspection struct {
	// View is the member's current view. Its Err tells whether the quorum is lost.
	View View
	// Progress tells which collective calls the member is in, since when, and for
	// which ranks it waits, in its World and in those derived by Shrink. It is nil
	// for a member that is not in a World.
	Progress []collective.Progress
}

// Inspect asks the member at an address for its view and for the progress of its
// collective calls, without joining the group. A member answers even while its
// program is busy. Of the config, Group, TLS, Secret and Dial apply. Inspect tries
// again until ctx ends, unless that cannot help.
func Inspect(ctx context.Context, c Config, address string) (*Inspection, error) {
	err := c.check(modeInspect)
	if err == nil {
		var i *Inspection
		if i, err = inspect(ctx, c.client(nil), address); err == nil {
			return i, nil
		}
	}
	return nil, fmt.Errorf("pleach: Inspect %s: %w", address, err)
}

func inspect(ctx context.Context, c tcp.Config, address string) (*Inspection, error) {
	reply, err := sendRequest(ctx, c, []string{address}, control.View{}, 0)
	if err != nil {
		return nil, err
	}
	i := &Inspection{}
	if i.View, err = decodeView(reply); err != nil {
		return nil, err
	}
	b, err := tcp.Request(ctx, c, address, control.Encode(control.Progress{}))
	if err != nil {
		return nil, err
	}
	body, err := control.Open(b)
	if err != nil {
		return i, nil // it is not in a World
	}
	return i, json.Unmarshal(body, &i.Progress)
}

// encodeProgress encodes the reply to a request for progress: the calls that this
// process is in, never their contents. It does not wait for the program's
// goroutines, so a process that is busy elsewhere answers too.
func (g *session) encodeProgress() []byte {
	l, ok := g.machine.Unicast().(*job.Link)
	if !ok {
		return refuse(errors.New("this member is not in a World: it makes no collective calls"))
	}
	b, err := json.Marshal(collective.Comm(l.Engine().Comm()).Progress())
	if err != nil {
		return refuse(err)
	}
	return control.Accept(b)
}
