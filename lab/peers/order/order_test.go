package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/pleach-go/pleach/lab/bench/order"
)

// Every system brings its messages to all members.
func TestOrder(t *testing.T) {
	systems := "order,jetstream"
	if _, err := exec.LookPath("etcd"); err == nil {
		systems += "," + etcdName
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{
		"--systems", systems, "--members", "3", "--size", "64", "--messages", "10",
		"--time", "300ms", "--json",
	}, &out, &out); err != nil {
		t.Fatal(err)
	}
	var object struct{ Results []order.Result }
	if err := json.Unmarshal(out.Bytes(), &object); err != nil || len(object.Results) != strings.Count(systems, ",")+1 {
		t.Fatalf("%v: %s", err, &out)
	}
	for _, r := range object.Results {
		if r.P50 <= 0 || r.P99 < r.P50 || r.Rate <= 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--systems raft": "--systems raft: choose of broadcast, order",
		"--members 1":    "--members 1: ",
		"--size x":       `--size x: "x" is not a number`,
		"now":            `"now" is not a flag`,
	} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(flags), &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
