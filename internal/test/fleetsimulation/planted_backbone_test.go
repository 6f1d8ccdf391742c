package fleetsimulation

import (
	"testing"

	"github.com/pleach-go/pleach/internal/machine/backbone"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// mistaken is a [backbone.Machine] with a bug: what goes in or comes out is changed. Its functions
// may be nil.
type mistaken struct {
	chooser
	inside    bool                                             // the process is in a backbone
	size      int                                              // of that
	leader    string                                           // its leader
	zone      func(*backbone.Zone)                             // changes a view of the zone
	view      func(*backbone.View)                             // changes a view of the backbone
	found     func(*mistaken, *backbone.Found)                 // changes an answer
	action    func(*mistaken, backbone.Action) backbone.Action // nil: it is left out
	deaf      bool                                             // to failures
	left      bool                                             // it is about to look for the next one
	drops     func(*backbone.Found) bool                       // an answer that is not taken
	forgotten bool                                             // the end of a membership
}

func (b *mistaken) SetZone(now backbone.Time, z backbone.Zone) {
	if b.zone != nil {
		b.zone(&z)
	}
	b.chooser.SetZone(now, z)
}

func (b *mistaken) Installed(now backbone.Time, v backbone.View) {
	b.size, b.leader = len(v.Members), v.Members[0].ID
	if b.view != nil {
		b.view(&v)
	}
	b.chooser.Installed(now, v)
}

func (b *mistaken) Found(now backbone.Time, round uint64, f backbone.Found) {
	if b.found != nil {
		b.found(b, &f)
	}
	if b.drops == nil || !b.drops(&f) {
		b.chooser.Found(now, round, f)
	}
}

func (b *mistaken) Entered(now backbone.Time, address string) {
	b.inside = true
	b.chooser.Entered(now, address)
}

func (b *mistaken) Failed(now backbone.Time) {
	if !b.deaf {
		b.chooser.Failed(now)
	}
}

func (b *mistaken) Left(now backbone.Time) {
	b.inside = false
	if !b.forgotten {
		b.chooser.Left(now)
	}
}

func (b *mistaken) Next(now backbone.Time) backbone.Action {
	for {
		a := b.chooser.Next(now)
		if a == nil || b.action == nil {
			return a
		}
		changed := b.action(b, a)
		if changed != nil {
			return changed
		}
	}
}

// without leaves out actions of a type.
func without[A backbone.Action](_ *mistaken, a backbone.Action) backbone.Action {
	if _, ok := a.(A); ok {
		return nil
	}
	return a
}

// bugsOfBackbones are bugs in which backbone a delegate is in.
var bugsOfBackbones = []struct {
	name string
	mistaken
}{
	{"a delegate stays in a backbone without a quorum", mistaken{view: func(v *backbone.View) { v.Quorum = true }}},
	{"a lead in a backbone looks for no other zones", mistaken{action: func(b *mistaken, a backbone.Action) backbone.Action {
		if _, ok := a.(backbone.AskZone); ok && b.inside {
			return nil
		}
		return a
	}}},
	{"a smaller backbone is never entered", mistaken{found: func(b *mistaken, f *backbone.Found) {
		if v := f.View; b.inside && (len(v.Members) < b.size || len(v.Members) == b.size && v.Members[0].ID > b.leader) {
			f.View = backbone.View{}
		}
	}}},
	{"delegates do not follow their lead", mistaken{zone: func(z *backbone.Zone) { z.Lead = "" }}},
	{"no delegate is the lead", mistaken{zone: func(z *backbone.Zone) { z.Index++ }}},
	{"an address is never announced", mistaken{action: func(_ *mistaken, a backbone.Action) backbone.Action {
		if announce, ok := a.(backbone.Announce); ok && announce.Address != "" {
			return nil
		}
		return a
	}}},
	{"a delegate insists on an address that another process has", mistaken{action: func(_ *mistaken, a backbone.Action) backbone.Action {
		switch a := a.(type) {
		case backbone.Join:
			a.SameAddress = true
			return a
		case backbone.Create:
			a.SameAddress = true
			return a
		}
		return a
	}}},
	{"a delegate that could not enter does not try again", mistaken{deaf: true}},
	{"a delegate that was removed does not enter again", mistaken{forgotten: true}},
	{"a lead looks for the backbone in its own zone only", mistaken{action: func(b *mistaken, a backbone.Action) backbone.Action {
		if _, ok := a.(backbone.AskZone); ok && !b.inside {
			return nil
		}
		return a
	}}},
	{"a delegate forgets which backbone it has left the last one for", mistaken{action: func(b *mistaken, a backbone.Action) backbone.Action {
		_, leave := a.(backbone.Leave)
		ask, ok := a.(backbone.AskDelegates)
		b.left = b.left || leave
		if ok && b.left {
			ask.Addresses, b.left = nil, false
			return ask
		}
		return a
	}}},
	{"delegates look for their lead elsewhere although it is in their backbone", mistaken{zone: func(z *backbone.Zone) {
		if z.Lead != "" {
			z.Lead = "elsewhere"
		}
	}}},
	{"a quorum that is regained does not count", mistaken{view: func(v *backbone.View) { v.Quorum = false }}},
	{"a round waits for zones that do not answer", mistaken{drops: func(f *backbone.Found) bool {
		return f.Zone != "" && len(f.View.Members) == 0 && !f.Reachable
	}}},
	{"nobody creates a backbone", mistaken{action: without[backbone.Create]}},
}

// Bugs in which backbone a delegate is in are found within 1,000 seeds. With PLEACH_FULL=1, all of
// these are run with each. PLEACH_SEEDS runs as many.
func TestBugsOfBackbonesAreFound(t *testing.T) {
	if testutil.RaceEnabled {
		t.Skip("the machines have no goroutines")
	}
	most := uint64(testutil.Seeds.Or(1000))
	for _, bug := range bugsOfBackbones {
		o := Options{Chooser: func(c chooser) chooser {
			b := bug.mistaken
			b.chooser = c
			return &b
		}}
		t.Run(bug.name, func(t *testing.T) {
			found := 0
			for seed := uint64(1); seed <= most && (found == 0 || testutil.Full.On()); seed++ {
				r := Run(seed, o)
				if r.Err == nil {
					continue
				}
				found++
				if found == 1 {
					t.Logf("seed %d: %v", seed, r.Err)
				}
			}
			if found == 0 {
				t.Errorf("not found within %d seeds", most)
			} else if testutil.Full.On() {
				t.Logf("found by %d of %d seeds", found, most)
			}
		})
	}
}
