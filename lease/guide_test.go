package lease_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// aroundGuide makes a program of the guide's lines.
const aroundGuide = `package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/ordered"
	"github.com/pleach-go/pleach/replicated"
)

TYPES

func writeReport(uint64) {}

func use(ctx context.Context, config pleach.Config, seeds []string) (err error) {
	{
		FIRST
		_ = err
	}
	{
		SECOND
		_, _ = before, err
	}
	{
		THIRD
		return err
	}
}

func main() { _ = use(context.Background(), pleach.Config{}, nil) }
`

// The guide's programs compile as they are printed.
func TestGuideToOrderCompiles(t *testing.T) {
	program := aroundGuide
	for _, part := range []struct {
		marker, section string
		block           int
	}{
		{"FIRST", "One order", 0},
		{"TYPES", "A state machine", 0},
		{"SECOND", "A state machine", 1},
		{"THIRD", "Leases and locks", 0},
	} {
		block := testutil.CodeBlocks(t, "../docs/guide/order.md", part.section)[part.block]
		if block.Language != "go" {
			t.Fatalf("%+v", block)
		}
		program = strings.Replace(program, part.marker, block.Text, 1)
	}
	// Within this module, so that it finds the packages; the go command passes over the directory.
	folder, err := os.MkdirTemp(".", "_guide-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", os.DevNull, "./"+folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as other builds, also with the race detector
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
