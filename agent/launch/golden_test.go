//go:build unix

package launch

import (
	"slices"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes that pleach run starts may be programs of another version: they learn
// their rank and the others' addresses by these variables.
func TestGoldenLauncherEnvironment(t *testing.T) {
	few := &Sockets{
		Addresses: []string{"127.0.0.1:7001", "127.0.0.1:7002"}, group: "run-ABC",
		secret: "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	}
	many := &Sockets{Addresses: few.Addresses, group: "run-ABC", secret: few.secret, file: "addresses.txt"}
	var lines []string
	for way, s := range map[string]*Sockets{"addresses in a variable": few, "addresses in a file": many} {
		for _, variable := range s.environment(1) {
			if name, _, _ := strings.Cut(variable, "="); slices.Contains(ownedVariables, name) {
				lines = append(lines, way+": "+variable)
			}
		}
	}
	recorded := testutil.GoldenLines(t, "testdata/launcher-environment.golden", lines)
	got, err := bootstrap.Detect(func(name string) string {
		for _, line := range recorded {
			if value, ok := strings.CutPrefix(line, "addresses in a variable: "+name+"="); ok {
				return value
			}
		}
		return ""
	})
	if err != nil || got.Rank != 1 || got.Size != 2 || got.LocalRank != 1 || got.Group != "run-ABC" ||
		string(got.Secret) != few.secret || !slices.Equal(got.Addresses, few.Addresses) {
		t.Errorf("%+v, %v", got, err)
	}
}
