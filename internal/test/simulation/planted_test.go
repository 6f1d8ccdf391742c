package simulation

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/detection"
	"github.com/pleach-go/pleach/internal/machine/lifecycle"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// A simulation that finds nothing is worth nothing: planted bugs are found within 1,000
// seeds.
const plantedSeeds = 1000

// find runs seeds until one fails, and returns what it says.
func find(t *testing.T, o Options) string {
	t.Helper()
	return findFrom(t, 0, o)
}

// rare are bugs that few seeds find, and where the search for them begins.
var rare = map[string]uint64{
	"it asks the lowest rank to catch up":    900,
	"it agrees to catch up, and asks nobody": 900,
	"it drops decisions":                     500,
	"a lease counts from the reply":          700,
}

// findFrom is find with other seeds, for a bug that few seeds find.
func findFrom(t *testing.T, first uint64, o Options) string {
	t.Helper()
	if testutil.RaceEnabled {
		t.Skip("there is one goroutine, and the race detector makes it slow")
	}
	for seed := first; seed < first+plantedSeeds; seed++ {
		if r := Run(seed, o); r.Err != nil {
			t.Logf("seed %d: %v", seed, r.Err)
			return r.Err.Error()
		}
	}
	t.Errorf("%d seeds do not find it", plantedSeeds)
	return ""
}

// Kinds of frames of internal/machine/stream, which a planted bug reads and writes.
const (
	pollFrame = 7
	ackFrame  = 8
)

// A member that acknowledges what it may not have: receipts count messages that are lost.
func TestFindsReceiptThatCountsLostMessages(t *testing.T) {
	found := find(t, Options{Tamper: func(frame []byte) [][]byte {
		if frame[0] != pollFrame {
			return nil
		}
		ack := bytes.Clone(frame)
		ack[0] = ackFrame
		return [][]byte{ack}
	}})
	if found != "" && !strings.Contains(found, "receipt") {
		t.Errorf("found something else: %s", found)
	}
}

// A member that answers for a program that has yet to process the messages.
func TestFindsReceiptOfUnprocessedMessages(t *testing.T) {
	const aboutProcessed = 1 // the flag of a poll and an acknowledgment
	found := find(t, Options{Rich: true, Tamper: func(frame []byte) [][]byte {
		if frame[0] != pollFrame || frame[1]&aboutProcessed == 0 {
			return nil
		}
		ack := bytes.Clone(frame)
		ack[0] = ackFrame
		return [][]byte{ack}
	}})
	if found != "" && !strings.Contains(found, "has processed") {
		t.Errorf("found something else: %s", found)
	}
}

// An attempt at a view that never ends, although a member does not answer: the others
// stay frozen.
func TestFindsAttemptThatNeverEnds(t *testing.T) {
	const never = 3600 * second
	find(t, Options{Configure: func(c *member.Config) {
		c.Membership.AttemptTimeout, c.Membership.RetryInterval = never, never
	}})
}

// A protocol that repeats what was not acknowledged without backing off.
func TestFindsRetriesThatNeverBackOff(t *testing.T) {
	find(t, Options{Configure: func(c *member.Config) { c.Membership.RetryInterval = 1 }})
}

// Messages that a member forgets while others lack them.
func TestFindsWindowLargerThanWhatIsKept(t *testing.T) {
	// No seed below 894 finds it.
	findFrom(t, 850, Options{Configure: func(c *member.Config) {
		if c.Self.Rank%3 == 2 {
			c.Stream.KeepBytes /= 16
		}
	}})
}

// Bugs in what a detector reports, and in what it takes the results of probes for.
func TestFindsBugsOfDetectors(t *testing.T) {
	for name, report := range map[string]func(r *member.Report) bool{
		"nobody is suspected":                   func(r *member.Report) bool { return r.Alive },
		"a suspicion is never withdrawn":        func(r *member.Report) bool { return !r.Alive },
		"a suspicion is about the next process": func(r *member.Report) bool { r.Incarnation++; return true },
	} {
		t.Run(name, func(t *testing.T) { find(t, Options{Report: report}) })
	}
	// No seed below 873 finds it.
	findFrom(t, 850, Options{Dialed: func(detection.Result) detection.Result { return detection.Refused }})
}

// Bugs in how joiners get the state of the group.
func TestFindsBugsOfStates(t *testing.T) {
	for name, bug := range map[string]Bug{
		"a state is taken before the program has its messages": stateTakenEarly,
		"a state counts from the next view on":                 stateLabeledLater,
		"nobody hears which state the group begins with":       choiceForgotten,
	} {
		t.Run(name, func(t *testing.T) { find(t, Options{State: true, Bug: bug}) })
	}
}

// Bugs in how members live, which are in lifecycle, control or what saves.
func TestFindsBugsOfLives(t *testing.T) {
	introduction := func(change func(*control.Introduction)) func(control.Request, *lifecycle.Reply) {
		return func(request control.Request, r *lifecycle.Reply) {
			if _, ok := request.(control.Introduce); !ok || r.Err != nil {
				return
			}
			if i, err := control.DecodeIntroduction(r.Body); err == nil {
				change(i)
				r.Body = i.Encode(nil)
			}
		}
	}
	for _, bug := range []struct {
		name string
		Options
	}{
		{"a vote is told before it is saved", Options{Bug: voteToldBeforeSaved}},
		{"a member begins before its place is saved", Options{Bug: memberBeginsUnsaved}},
		{"what is not synced replaces what was", Options{Bug: unsyncedReplacesSaved}},
		{"what only follows the view counts, although a vote was saved since", Options{Bug: olderFileCounts}},
		{"members are looked for at their old addresses", Options{Bug: addressKept}},
		{"a place comes back without its votes", Options{Live: func(c *lifecycle.Config) {
			if p := c.Place; p != nil {
				c.Place = membership.NewSavedVote(p.Self, p.View, p.Decisions())
			}
		}}},
		{
			"a view that a candidate knows counts as that of a member",
			Options{Reply: introduction(func(i *control.Introduction) { i.Role = control.Member })},
		},
		{
			"an address that refuses counts as silent",
			Options{Reply: func(_ control.Request, r *lifecycle.Reply) { r.Gone = false }},
		},
		{"a place on the disk is forgotten", Options{Live: func(c *lifecycle.Config) { c.Place = nil }}},
		{"a process never shows a later view", Options{Reply: introduction(func(i *control.Introduction) { i.View = nil })}},
	} {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			bug.Disks = true
			find(t, bug.Options)
		})
	}
}
