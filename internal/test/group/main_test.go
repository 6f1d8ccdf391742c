package group_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// This test binary is also the program that tests run as processes of their own:
// a member of a group, or a crowd of attackers.
func TestMain(m *testing.M) {
	for variable, run := range map[string]func(string) error{
		memberProgram: runMember,
		attackProgram: runAttack,
	} {
		if config := os.Getenv(variable); config != "" {
			if err := run(config); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			return
		}
	}
	goleak.VerifyTestMain(m)
}
