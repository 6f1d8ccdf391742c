package archtest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Only machines, which start no goroutine, are left out where the race detector looks
// because of that.
func TestRaceDetectorSeesWhatIsNoMachine(t *testing.T) {
	script, err := os.ReadFile("../../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)\nmachines=\((.*?)\)`).FindSubmatch(script)
	if list == nil {
		t.Fatal(".ci/run has no list of machines")
	}
	listed := strings.Fields(string(list[1]))
	var pure []string
	for _, r := range rules {
		if r.pure {
			pure = append(pure, r.pkg)
		}
	}
	slices.Sort(pure)
	slices.Sort(listed)
	if !slices.Equal(listed, pure) {
		t.Errorf(".ci/run lists the machines\n%v, but the rules have\n%v", listed, pure)
	}
}
