package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/cli/clitest"
	"github.com/pleach-go/pleach/agent/ps"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// psJob makes the processes of a job, all in this one.
func psJob(t *testing.T, size int, c pleach.Config) []*pleach.World {
	t.Helper()
	c.Group, c.Addresses = "job", testutil.FreeAddresses(t, size)
	worlds := make([]*pleach.World, size)
	for r := range worlds {
		c.Rank = r
		w, err := pleach.NewWorld(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		worlds[r] = w
		t.Cleanup(func() { _ = w.Close() })
	}
	return worlds
}

// stuck has all finish a barrier, and all but one come to an allreduce. The
// function it returns lets that one come, too.
func stuck(t *testing.T, worlds []*pleach.World, late int) (release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var ready, all sync.WaitGroup
	ready.Add(len(worlds))
	come := make(chan struct{})
	for r, w := range worlds {
		all.Go(func() {
			err := collective.Barrier(ctx, w)
			ready.Done()
			if r == late {
				<-come
			}
			if err == nil {
				_, err = collective.Allreduce(ctx, w, []int{1}, collective.Sum[int]())
			}
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	ready.Wait()
	release = sync.OnceFunc(func() { close(come); all.Wait(); cancel() })
	t.Cleanup(release)
	testutil.Eventually(t, "all others in the call", func() bool {
		waiting := 0
		for _, w := range worlds {
			waiting += len(w.Progress()[0].Current)
		}
		return waiting == len(worlds)-1
	})
	return release
}

// A straggler is named first, with its last call.
func TestPs(t *testing.T) {
	worlds := psJob(t, 5, pleach.Config{})
	address := worlds[0].View().Members()[1].Address
	release := stuck(t, worlds, 3)
	out := clitest.Printed(t, newPs(), address, "--group", "job")
	if !regexp.MustCompile(`(?m)^rank 3 has not arrived in Allreduce #1; last: Barrier #0, \d+\.\d s ago$`).MatchString(
		out) {
		t.Error(out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4+1+5 || !strings.HasPrefix(lines[5], "3 ") ||
		!regexp.MustCompile(`^0 +2 +Allreduce #1 +\d\.\d s +[1-4,-]+ +Barrier #0, .* ago +0$`).MatchString(lines[6]) {
		t.Errorf("%q", lines)
	}
	var s ps.Survey
	if err := json.Unmarshal([]byte(clitest.Printed(t, newPs(), address, "--group", "job", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Stragglers) != 1 || s.Stragglers[0].Rank != 3 || s.Stragglers[0].Call.Name != "Allreduce" ||
		len(s.Processes) != 5 {
		t.Errorf("%+v", s)
	}
	release()
	if out := clitest.Printed(t, newPs(), address, "--group", "job"); strings.Contains(out, "not arrived") ||
		strings.Count(out, "Allreduce #1, ") != 5 {
		t.Error(out)
	}
}

// A member of a plain group is in no world; a stranger without a certificate is
// told nothing.
func TestPsRefused(t *testing.T) {
	g, err := pleach.Create(t.Context(), pleach.Config{Group: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if out := clitest.Printed(t, newPs(), g.View().Leader().Address, "--group", "plain"); !strings.Contains(out,
		"is not in a World") {
		t.Error(out)
	}
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "me.pem"), filepath.Join(dir, "me.key")
	writeCertificate(t, certificate, key)
	flags := groupFlags{ca: certificate, cert: certificate, key: key}
	c, err := flags.config()
	if err != nil {
		t.Fatal(err)
	}
	worlds := psJob(t, 2, c)
	address := worlds[0].View().Leader().Address
	out := clitest.Printed(t, newPs(), address, "--group", "job", "--tls-ca", certificate, "--tls-cert", certificate,
		"--tls-key", key)
	if !strings.HasPrefix(out, "view 1: 2 of 2 processes\n") {
		t.Error(out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := pleach.Inspect(ctx, pleach.Config{Group: "job"}, address); err == nil {
		t.Error("a stranger may look")
	}
}

// Jobs are found by their processes' environments.
func TestFindJobs(t *testing.T) {
	proc := t.TempDir()
	for pid, environment := range map[string]string{
		"7":    "HOME=/\x00PLEACH_GROUP=a\x00PLEACH_SECRET=0123456789abcdef\x00PLEACH_RANK=0\x00PLEACH_SIZE=2\x00PLEACH_ADDRESSES=127.0.0.1:1,127.0.0.1:2\x00",
		"8":    "PLEACH_GROUP=a\x00PLEACH_RANK=1\x00PLEACH_SIZE=2\x00PLEACH_ADDRESSES=127.0.0.1:1,127.0.0.1:2\x00",
		"9":    "PLEACH_GROUP=b\x00PLEACH_RANK=0\x00PLEACH_SIZE=1\x00PLEACH_ADDRESSES=127.0.0.1:3\x00",
		"10":   "PLEACH_RANK=0\x00PLEACH_ADDRESSES=nonsense\x00",
		"11":   "HOME=/\x00",
		"self": "PLEACH_GROUP=c\x00PLEACH_RANK=0\x00PLEACH_ADDRESSES=127.0.0.1:4\x00",
	} {
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "environ"), []byte(environment), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := onlyJob(ps.FindJobs(proc, "")); err == nil || !strings.Contains(err.Error(), "2 jobs") ||
		!strings.Contains(err.Error(), "--group b") {
		t.Error(err)
	}
	job, err := onlyJob(ps.FindJobs(proc, "a"))
	if err != nil || len(job.PIDs) != 2 || !slices.Equal(job.Addresses, []string{"127.0.0.1:1", "127.0.0.1:2"}) {
		t.Errorf("%+v, %v", job, err)
	}
	if got := jobAt([]*ps.Job{job}, []string{"127.0.0.1:2"}); got != job || string(got.Secret) != "0123456789abcdef" {
		t.Errorf("the job is %+v", got)
	}
	if got := jobAt([]*ps.Job{job}, []string{"127.0.0.1:3"}); got != nil {
		t.Errorf("a job at another address is %+v", got)
	}
	if _, err := onlyJob(ps.FindJobs(filepath.Join(proc, "none"), "")); err == nil {
		t.Error("a job where there is none")
	}
}

// Stragglers are named with the call that they have not come to.
func TestStragglerText(t *testing.T) {
	in := collective.CallStatus{Call: 17, Name: "Allreduce", Seconds: 12.3}
	for _, c := range []struct {
		straggler ps.Straggler
		want      string
	}{
		{ps.Straggler{Rank: 3, Call: in, Silent: true}, "rank 3 does not answer; others are in Allreduce #17 for 12.3 s"},
		{
			ps.Straggler{Rank: 2, Call: in, Last: &collective.CallStatus{Call: 16, Name: "Barrier", Seconds: 200, Error: "x"}},
			"rank 2 has not arrived in Allreduce #17; last: Barrier #16, 3m20s ago, with an error",
		},
		{ps.Straggler{Rank: 1, Call: in}, "rank 1 has not arrived in Allreduce #17; it has finished no call yet"},
	} {
		if got := stragglerText(&c.straggler); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
