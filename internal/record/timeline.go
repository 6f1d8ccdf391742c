package record

import (
	"fmt"
	"strings"

	"github.com/pleach-go/pleach/internal/member"
	"github.com/pleach-go/pleach/internal/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Event is something that happens to a member, for people.
type Event struct {
	At protocol.Time // since the member began
	// Kind is view, suspects, trusts, silent, heard, up, down, freezes, thaws, quorum,
	// slow, impaired, candidate, forced, leaves or ends.
	Kind string
	Text string
}

// watch finds events in a replay.
type watch struct {
	replay *replay
	tell   func(Event)
	frozen bool
	state  membership.State
}

// attach has a machine tell its events.
func (w *watch) attach(p *replay, c *member.Config, tell func(Event)) {
	if w.replay, w.tell = p, tell; tell == nil {
		return
	}
	c.OnView = func(v *membership.View) { w.event("view", "%s", viewText(v)) }
	c.OnReport = func(r member.Report, about membership.Member) {
		if r.Alive {
			w.event("trusts", "rank %d (%s)", about.Rank, about.Identity)
		} else {
			w.event("suspects", "rank %d (%s): %v", about.Rank, about.Identity, r.Cause)
		}
	}
	c.OnSilence = func(r protocol.Rank, silent bool) {
		if silent {
			w.event("silent", "rank %d sends no heartbeats", r)
		} else {
			w.event("heard", "rank %d sends heartbeats again", r)
		}
	}
	c.OnSlow = func(after protocol.Time, why string) {
		w.event("slow", "leaves: %s for %.1f s", why, float64(after)/1e9)
	}
	c.OnState = w.checkState
	w.event("view", "%s", viewText(&c.View))
}

// event tells of something.
func (w *watch) event(kind, format string, args ...any) {
	w.tell(Event{At: w.replay.now, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// look finds out what an input was, and what it did.
func (w *watch) look(in *input) {
	if w.tell == nil {
		return
	}
	switch in.kind {
	case up:
		w.event("up", "rank %d is connected", in.peer)
	case down:
		w.event("down", "rank %d is not connected", in.peer)
	case setImpaired:
		w.event("impaired", "this process lacks the means to reach others: %t", in.number != 0)
	case join:
		m := decoded[membership.Member](in.data)
		w.event("candidate", "%s at %s asks to join", m.Identity, m.Address)
	case leave:
		w.event("leaves", "this member asks to leave")
	case forceView:
		w.event("forced", "an operator forces a view with ranks %v", decoded[[]protocol.Rank](in.data))
	case raiseVersion:
		w.event("raised", "an operator raises the protocol version to %d", in.number)
	case evict:
		w.event("evicted", "rank %d is to be removed: cause %d", in.peer, in.data[0])
	case learn:
		w.event("learns", "a process that has joined since passes decisions on")
	}
	if frozen := w.replay.Stream().Frozen(); frozen != w.frozen {
		if w.frozen = frozen; frozen {
			w.event("freezes", "for a view change")
		} else {
			w.event("thaws", "messages flow again")
		}
	}
}

// checkState tells that the quorum is lost or regained, and that the membership ends.
func (w *watch) checkState() {
	state, err := w.replay.Machine.State()
	before := w.state
	if w.state = state; state == before {
		return
	}
	switch state {
	case membership.NoQuorum:
		w.event("quorum", "%v", err)
	case membership.Active:
		w.event("quorum", "regained")
	default:
		w.event("ends", "%v", err)
	}
}

// maxNamed bounds the members that the text of a view names.
const maxNamed = 16

// viewText is a view on one line.
func viewText(v *membership.View) string {
	var names []string
	for i, m := range v.Members.All() {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", v.Members.Len()-i))
			break
		}
		names = append(names, strings.TrimSuffix(fmt.Sprintf("%d %s", m.Rank, m.Identity), " "))
	}
	return fmt.Sprintf("view %d: %s", v.Number, strings.Join(names, ", "))
}
