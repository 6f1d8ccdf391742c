package ps

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/pleach-go/pleach/collective"
)

// A process that does not answer is taken for a straggler, and comes first.
func TestStragglers(t *testing.T) {
	in := collective.CallStatus{Call: 17, Name: "Allreduce", Seconds: 12.3}
	agree := collective.CallStatus{Call: 3, Agreement: 2, Name: "Agree", Seconds: 1}
	process := func(rank int, w ...collective.Progress) Process { return Process{Rank: rank, Worlds: w} }
	s := Survey{Processes: []Process{
		process(0, collective.Progress{Calls: 18, Agreements: 2, Current: []collective.CallStatus{in, agree}}),
		process(1, collective.Progress{Calls: 18, Agreements: 1}),
		process(2, collective.Progress{Calls: 17, Agreements: 2, Last: &collective.CallStatus{
			Call: 16, Name: "Barrier",
			Seconds: 200, Error: "x",
		}}),
		{Rank: 3, Error: "stopped"},
		process(4, collective.Progress{Calls: 4, Agreements: 2, Revoked: true}),
	}}
	s.findStragglers()
	want := []Straggler{
		{Rank: 3, Call: in, Silent: true},
		{Rank: 2, Call: in, Last: s.Processes[1].Worlds[0].Last},
		{Rank: 1, Call: agree},
	}
	if !reflect.DeepEqual(s.Stragglers, want) {
		t.Errorf("%+v", s.Stragglers)
	}
	if ranks := fmt.Sprint(s.Processes[0].Rank, s.Processes[1].Rank, s.Processes[2].Rank); ranks != "3 2 1" {
		t.Error(ranks)
	}
}

// A process that has not come to a call because it waits for another in an earlier
// one is not to blame: the other is.
func TestWaitingProcessesAreNoStragglers(t *testing.T) {
	in := func(rank int, call uint64, waitsFor ...int) Process {
		doing := []collective.CallStatus{{Call: call, Name: "Allreduce", WaitsFor: waitsFor}}
		return Process{Rank: rank, Worlds: []collective.Progress{{Calls: call + 1, Current: doing}}}
	}
	busy := Process{Rank: 2, Worlds: []collective.Progress{{Calls: 4}}}
	s := Survey{Processes: []Process{in(0, 5, 2), in(1, 4, 2), busy, in(3, 5, 0)}}
	s.findStragglers()
	if len(s.Stragglers) != 1 || s.Stragglers[0].Rank != 2 || s.Stragglers[0].Call.Call != 4 {
		t.Errorf("%+v", s.Stragglers)
	}
}
