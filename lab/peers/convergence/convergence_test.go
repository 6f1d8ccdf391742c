package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/lab/bench/stabilization"
)

// TestMain is also a member, if this program is started as one.
func TestMain(m *testing.M) {
	if os.Args[0] == "survivor" {
		if err := serve(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Survivors of each system drop who was killed, and let it in again.
func TestConvergence(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"convergence", "--members", "4", "--kills", "2", "--systems",
		"pleach,memberlist-tuned,serf", "--json",
	}, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Results []stabilization.Result }
	if err := json.Unmarshal(out.Bytes(), &object); err != nil || len(object.Results) != 3 {
		t.Fatalf("%v: %s", err, &out)
	}
	for _, r := range object.Results {
		if r.Kills != 2 || r.Complete != 2 || r.P50 <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--systems raft": "--systems raft: choose of pleach, memberlist, ",
		"--members 2":    "--members 2: ",
		"--turns 11":     "--turns 11: ",
		"now":            `"now" is not a flag`,
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"convergence"}, strings.Fields(flags)...), &out, &out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
