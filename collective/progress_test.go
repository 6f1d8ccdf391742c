package collective_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/collective"
)

// The progress of collective calls is JSON that does not change: its golden frame is
// among those of the replies.
func TestGoldenProgress(t *testing.T) {
	frames, err := os.ReadFile("../internal/machine/control/testdata/replies.golden")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(goldenProgress())
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("progress-reply: 01%x\n", b); !strings.Contains(string(frames), want) {
		t.Errorf("no frame %s", want)
	}
}

func goldenProgress() []collective.Progress {
	return []collective.Progress{
		{
			Rank: 1, Size: 4, View: 2, Calls: 7, Agreements: 3, Tasks: []int{1, 3}, Failed: []int{3}, Revoked: true,
			Current: []collective.CallStatus{{
				Call: 6, Name: "Allreduce", What: "Allreduce[float64]", Seconds: 1.5,
				WaitsFor: []int{0, 2},
			}},
			Last: &collective.CallStatus{Call: 5, Agreement: 3, Name: "Agree", What: "Agree", Seconds: 0.25, Error: "too late"},
		},
		{World: "k3x", Tasks: []int{}},
	}
}
