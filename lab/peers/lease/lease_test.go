package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain is also a holder, if this program is started as one.
func TestMain(m *testing.M) {
	if os.Args[0] == "holder" {
		if err := hold(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// Leases of a process that was killed are held again, after a TTL or so, by one process.
func TestLeasesAreHeldAgain(t *testing.T) {
	systems := pleachName
	if _, err := exec.LookPath("etcd"); err == nil {
		systems += "," + etcdName
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{
		"lease", "--systems", systems, "--leases", "4", "--kills", "1", "--ttl", "2s",
		"--json",
	}, &out, &out); err != nil {
		t.Fatal(err)
	}
	var object struct{ Results []Result }
	if err := json.Unmarshal(out.Bytes(), &object); err != nil || len(object.Results) != strings.Count(systems, ",")+1 {
		t.Fatalf("%v: %s", err, &out)
	}
	for _, r := range object.Results {
		if r.Kills != 1 || r.Leases < 2 || r.P50 <= 0 || r.Max < r.P50 || r.TwoHolders != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--systems raft":   "--systems raft: choose of pleach, etcd",
		"--processes 2":    "--processes",
		"--ttl 1ms --json": "--ttl",
		"now":              `"now" is not a flag`,
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"lease"}, strings.Fields(flags)...), &out, &out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
