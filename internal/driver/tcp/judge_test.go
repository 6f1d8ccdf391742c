package tcp

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport"
)

// Which process a view has at a rank decides what becomes of one that claims the rank.
func TestJudgments(t *testing.T) {
	for name, c := range map[string]struct {
		view   uint64
		member *transport.Member
		theirs wire.Hello
		want   wire.Status
	}{
		"no views":          {0, nil, wire.Hello{Incarnation: 9}, wire.Accepted},
		"no views, another": {0, &transport.Member{Incarnation: 3}, wire.Hello{Incarnation: 9}, wire.Accepted},
		"the member": {
			5, &transport.Member{Incarnation: 3, Nonce: 7},
			wire.Hello{Incarnation: 3, Process: 7},
			wire.Accepted,
		},
		"the member, not yet known": {
			5, &transport.Member{Incarnation: 3},
			wire.Hello{Incarnation: 3, Process: 7},
			wire.Accepted,
		},
		"another of its incarnation": {
			5, &transport.Member{Incarnation: 3, Nonce: 7},
			wire.Hello{Incarnation: 3, Process: 8},
			wire.Taken,
		},
		"a former one":                   {5, &transport.Member{Incarnation: 3}, wire.Hello{Incarnation: 2}, wire.Removed},
		"one since, which has gone":      {5, &transport.Member{Incarnation: 3}, wire.Hello{Incarnation: 4}, wire.Removed},
		"of this view, and not in it":    {5, nil, wire.Hello{Incarnation: 5}, wire.Removed},
		"of the next view":               {5, nil, wire.Hello{Incarnation: 6}, wire.Early},
		"of the next view, after others": {5, &transport.Member{Incarnation: 3}, wire.Hello{Incarnation: 6}, wire.Early},
	} {
		r := new(roster)
		r.number.Store(c.view)
		if got := r.judge(c.member, &c.theirs); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A peer's connection is used if it is newer than the last one, and if this side does not dial
// with a lower rank.
func TestConnectionsThatAreUsed(t *testing.T) {
	tr := &Transport{cfg: Config{Rank: 5}}
	for name, c := range map[string]struct {
		rank    protocol.Rank
		dials   bool
		theirs  wire.Hello
		verdict wire.Status
	}{
		"the next attempt":                {7, false, wire.Hello{Incarnation: 4, Attempt: 4}, wire.Accepted},
		"the last attempt again":          {7, false, wire.Hello{Incarnation: 4, Attempt: 3}, wire.Stale},
		"an earlier one":                  {7, false, wire.Hello{Incarnation: 4, Attempt: 2}, wire.Stale},
		"a former process":                {7, false, wire.Hello{Incarnation: 3, Attempt: 9}, wire.Stale},
		"the next process":                {7, false, wire.Hello{Incarnation: 5, Attempt: 1}, wire.Accepted},
		"this side dials, and is lower":   {7, true, wire.Hello{Incarnation: 4, Attempt: 4}, wire.Duplicate},
		"this side dials, and is higher":  {3, true, wire.Hello{Incarnation: 4, Attempt: 4}, wire.Accepted},
		"a former process of one dialed":  {7, true, wire.Hello{Incarnation: 3, Attempt: 9}, wire.Stale},
		"the next process of one dialed":  {7, true, wire.Hello{Incarnation: 5, Attempt: 1}, wire.Duplicate},
		"the next process of a lower one": {3, true, wire.Hello{Incarnation: 5, Attempt: 1}, wire.Accepted},
	} {
		p := &peer{t: tr, rank: c.rank, incarnation: 4, theirs: 3}
		if c.dials {
			p.dial = &dial{}
		}
		if got := p.judge(&c.theirs); got != c.verdict {
			t.Errorf("%s: %v, want %v", name, got, c.verdict)
		}
		former := errors.As(p.refusal(&c.theirs, wire.Stale), new(*formerError))
		if former != (c.theirs.Incarnation < 4) {
			t.Errorf("%s: refused as a former process: %v", name, former)
		}
	}
}

// Of several that wait for a rank's view the newest stays, and one that ends takes only itself
// away.
func TestEarlyOnesTakeTurns(t *testing.T) {
	r := new(roster)
	first := r.enter(1)
	second := r.enter(1)
	other := r.enter(2)
	select {
	case <-first:
	default:
		t.Error("the first one still waits")
	}
	r.leave(1, first)
	if r.early[1] != second {
		t.Error("the second one does not wait any more")
	}
	r.leave(1, second)
	if len(r.early) != 1 || r.early[2] != other {
		t.Errorf("%d wait", len(r.early))
	}
}

// A backoff doubles from its least to its most, and at least half of it is waited for.
func TestBackoff(t *testing.T) {
	p := &peer{t: &Transport{cfg: Config{BackoffMin: 10 * time.Second, BackoffMax: 35 * time.Second}}}
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 35 * time.Second, 35 * time.Second} {
		p.backOff()
		if wait := time.Until(p.retryAt); p.backoff != want || wait > want || wait < want/2-time.Second {
			t.Errorf("failure %d: %v, of which %v are left", i, p.backoff, wait)
		}
	}
}

// What is wrong with a Hello is answered in the words of the protocol, unless it is no Hello.
func TestAnswersToBadHellos(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		worth  bool
		status wire.Status
	}{
		"no Hello":            {&wire.HelloError{Field: "magic"}, false, wire.Refused},
		"another version":     {&wire.VersionError{Theirs: 1}, true, wire.Refused},
		"another group":       {&wire.HelloError{Field: "group"}, true, wire.OtherGroup},
		"another rank":        {&wire.HelloError{Field: "rank"}, true, wire.OtherRank},
		"another wanted rank": {&wire.HelloError{Field: "wanted rank"}, true, wire.OtherRank},
		"another size":        {&wire.HelloError{Field: "size"}, true, wire.Refused},
		"no secret":           {refused(wire.WrongSecret), true, wire.WrongSecret},
		"no certificate":      {&RefusedError{Reason: fmt.Errorf("%w: x", ErrCertificate)}, true, wire.WrongCertificate},
		"no network":          {errors.New("reset"), false, wire.Refused},
	} {
		if worth, status := worthAnswer(c.err), statusOf(c.err); worth != c.worth || status != c.status {
			t.Errorf("%s: answered: %v, %v", name, worth, status)
		}
	}
	for id, want := range map[string]string{"": "is not in view 9", "x": `"x" at there has it, since view 8`} {
		r := &wire.Removal{View: 9, ID: id, Address: "there", Incarnation: 8}
		e := &notMemberError{3, r}
		if !strings.Contains(e.Error(), want) || !errors.Is(e, ErrRemoved) {
			t.Errorf("%v", e)
		}
		removed := new(transport.RemovedError)
		if err := removedError(r); !errors.As(err, &removed) || removed.View != 9 || (removed.Holder != nil) != (id != "") {
			t.Errorf("%v", err)
		}
	}
}

// A member has room for two handshakes with each of its peers and a few more, and for clients if
// it answers them.
func TestRoomForHandshakes(t *testing.T) {
	four := Config{Addresses: make([]string, 4)}
	open := four
	open.Open = true
	for want, tr := range map[int]*Transport{
		24:              {cfg: four, handler: newRecorder()},
		24 + maxClients: {cfg: open, handler: newRecorder()},
	} {
		if got := tr.maxHandshakes(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
