package deploy

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the directory of the files that they read.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../../deploy"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
