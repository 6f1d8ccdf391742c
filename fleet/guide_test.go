package fleet_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// aroundGuide makes a program of the guide's lines.
const aroundGuide = `package main

import (
	"context"
	cryptotls "crypto/tls"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
)

func use(ctx context.Context, tls *cryptotls.Config, data []byte) error {
	LINES
	return err
}

func ignore(...any) {}

func main() { _ = use(context.Background(), nil, nil) }
`

// loops are those whose bodies the guide leaves out.
var loops = regexp.MustCompile(`for (\w+), (\w+) := range ([^{]*)\{ … \}`)

// The guide's program compiles as it is printed.
func TestGuideToFleetsCompiles(t *testing.T) {
	block := testutil.CodeBlocks(t, "../docs/guide/fleet.md", "Fleets: many zones as one")[0]
	if block.Language != "go" || !strings.Contains(block.Text, "fleet.Join(") {
		t.Fatalf("%+v", block)
	}
	lines := loops.ReplaceAllString(block.Text, "for $1, $2 := range $3{ ignore($1, $2) }")
	lines = strings.ReplaceAll(lines, "ignore(_, ", "ignore(")
	folder := t.TempDir()
	source, replace := filepath.Join(folder, "main.go"), filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(source, []byte(strings.Replace(aroundGuide, "LINES", lines, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(
		map[string]map[string]string{"Replace": {filepath.Join(root, "fleet/internal/printed/main.go"): source}})
	if err == nil {
		err = os.WriteFile(replace, overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", os.DevNull, "-overlay", replace, "./internal/printed")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as other builds, also with the race detector
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
