package simulation

import (
	"testing"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// mistaken is a [lifecycle.Member] with a bug: what goes in or comes out is changed. Its functions
// may be nil.
type mistaken struct {
	contact
	self     membership.Member
	asks     map[uint64]control.Request
	extra    []lifecycle.Action
	deaf     bool          // to new seeds
	hasty    protocol.Time // replies seem to be older by this
	deadline func(protocol.Time) protocol.Time
	early    func(protocol.Rank) protocol.Rank
	action   func(lifecycle.Action) bool                             // false: it is left out
	reply    func(*mistaken, control.Request, *lifecycle.Reply) bool // false: it is not taken
	answer   func(request control.Request, reply []byte) (wrong []byte)
}

func (b *mistaken) SetSeeds(seeds []string) {
	if !b.deaf {
		b.contact.SetSeeds(seeds)
	}
}

func (b *mistaken) Deadline() protocol.Time {
	if b.deadline != nil {
		return b.deadline(b.contact.Deadline())
	}
	return b.contact.Deadline()
}

func (b *mistaken) Early(now protocol.Time, peer protocol.Rank) {
	if b.early != nil {
		peer = b.early(peer)
	}
	b.contact.Early(now, peer)
}

func (b *mistaken) Next(now protocol.Time) lifecycle.Action {
	if len(b.extra) > 0 {
		a := b.extra[0]
		b.extra = b.extra[1:]
		return a
	}
	for {
		a := b.contact.Next(now)
		if ask, ok := a.(lifecycle.Ask); ok {
			b.asks[ask.Token] = ask.Request
		}
		if a == nil || b.action == nil || b.action(a) {
			return a
		}
	}
}

func (b *mistaken) Replied(now protocol.Time, token uint64, r lifecycle.Reply) {
	if b.reply == nil || b.reply(b, b.asks[token], &r) {
		b.contact.Replied(now-b.hasty, token, r)
	}
}

func (b *mistaken) Requested(now protocol.Time, request control.Request) ([]byte, bool) {
	reply, ok := b.contact.Requested(now, request)
	if ok && b.answer != nil {
		reply = b.answer(request, reply)
	}
	return reply, ok
}

// without leaves out actions of a type.
func without[A lifecycle.Action](a lifecycle.Action) bool {
	_, is := a.(A)
	return !is
}

// withoutAsking leaves out requests of a type.
func withoutAsking[R control.Request](a lifecycle.Action) bool {
	ask, ok := a.(lifecycle.Ask)
	if !ok {
		return true
	}
	_, is := ask.Request.(R)
	return !is
}

// introducesNextView answers with the number of the next view.
func introducesNextView(request control.Request, reply []byte) []byte {
	if _, ok := request.(control.Introduce); !ok {
		return reply
	}
	body, _ := control.Open(reply)
	i, err := control.DecodeIntroduction(body)
	if err != nil || i.View == nil {
		return reply
	}
	i.View.Number++
	return control.Accept(i.Encode(nil))
}

// never is later than any run.
const never = 1 << 60

// bugsOutside are the bugs that are planted in how members communicate outside their views.
var bugsOutside = []struct {
	name string
	mistaken
}{
	{"it asks the lowest rank to catch up", mistaken{early: func(protocol.Rank) protocol.Rank { return 0 }}},
	{"it forgets its deadline", mistaken{deadline: func(protocol.Time) protocol.Time { return never }}},
	{"it asks seeds without a pause", mistaken{hasty: 3 * second}},
	{"an older view without it removes it", mistaken{reply: func(b *mistaken, _ control.Request, r *lifecycle.Reply) bool {
		i, err := control.DecodeIntroduction(r.Body)
		if r.Err == nil && err == nil && i.View != nil && !i.View.Holds(b.self.Rank, b.self.Incarnation) {
			i.View.Number += never
			r.Body = i.Encode(nil)
		}
		return true
	}}},
	{"it does not report its removal", mistaken{action: without[lifecycle.Remove]}},
	{"silence counts as removal", mistaken{reply: func(b *mistaken, request control.Request, r *lifecycle.Reply) bool {
		if _, ok := request.(control.Introduce); ok && r.Err != nil {
			b.extra = append(b.extra, lifecycle.Remove{View: never})
		}
		return true
	}}},
	{"it answers with a view that it has not installed", mistaken{answer: introducesNextView}},
	{"it agrees to catch up, and asks nobody", mistaken{action: withoutAsking[control.Decisions]}},
	{"it drops decisions", mistaken{action: without[lifecycle.Learn]}},
	{"it tells no seed of the group", mistaken{action: withoutAsking[control.Founding]}},
	{"it asks the members of its view only", mistaken{deaf: true}},
	{"it waits forever for a seed that does not answer", mistaken{
		reply: func(_ *mistaken, _ control.Request, r *lifecycle.Reply) bool { return r.Err == nil },
	}},
	{"the search for a successor does not end", mistaken{action: without[lifecycle.Ended]}},
}

// Bugs in how members communicate outside their views are found. With PLEACH_FULL=1, all 1,000 seeds
// are run with each.
func TestFindsBugsOutsideViews(t *testing.T) {
	for _, bug := range bugsOutside {
		o := Options{Apart: true, Contact: func(c contact, self membership.Member) contact {
			b := bug.mistaken
			b.contact, b.self, b.asks = c, self, make(map[uint64]control.Request)
			return &b
		}}
		t.Run(bug.name, func(t *testing.T) {
			if !testutil.Full.On() {
				findFrom(t, rare[bug.name], o)
				return
			}
			first, found := findAll(o)
			t.Logf("found by %d of %d seeds, first by seed %d", found, plantedSeeds, first)
		})
	}
}

// findAll runs all seeds, and returns the first one that fails, and how many do.
func findAll(o Options) (first, found uint64) {
	first = plantedSeeds
	for seed := range uint64(plantedSeeds) {
		if r := Run(seed, o); r.Err != nil {
			first = min(first, seed)
			found++
		}
	}
	return first, found
}
