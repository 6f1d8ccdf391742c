package archtest

import (
	"os/exec"
	"strings"
	"testing"
)

// The command of operators links nothing that plots: an agent runs on every host.
func TestCommandLinksNoPlotting(t *testing.T) {
	for _, pkg := range linkedBy(t, "agent/cmd/pleach") {
		if strings.HasPrefix(pkg, "gonum.org/") || strings.HasPrefix(pkg, module+"/internal/bench/") {
			t.Errorf("agent/cmd/pleach links %s, which belongs to lab/cmd/pleach-lab", pkg)
		}
	}
	// The laboratory does, or this test looks for the wrong name.
	if !strings.Contains(strings.Join(linkedBy(t, "lab/cmd/pleach-lab"), "\n"), "gonum.org/v1/plot") {
		t.Error("lab/cmd/pleach-lab links no gonum.org/v1/plot")
	}
}

func linkedBy(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", module+"/"+pkg).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
