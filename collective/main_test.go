package collective_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// This test binary is also the program that tests run as processes of a job.
func TestMain(m *testing.M) {
	if config := os.Getenv(jobProgram); config != "" {
		if err := runJob(config); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
