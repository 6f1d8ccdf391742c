//go:build unix

package stabilization

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/lab/bench/ulfm"
)

// TestMain is also a member, if [Run] starts this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[0] == "survivor" {
		run := PleachMember
		switch os.Args[1] {
		case "deaf":
			run = deaf
		case "bad":
			os.Exit(1)
		}
		if err := Serve(os.Args[2], run); err != nil {
			println(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deaf reports all members again and again, whichever is killed.
func deaf(ctx context.Context, s *Survivor) error {
	s.Ready()
	for pace := time.Tick(5 * time.Millisecond); ctx.Err() == nil; <-pace {
		s.Sees(1, nil)
	}
	return nil
}

func TestRun(t *testing.T) {
	for _, coordinator := range []bool{false, true} {
		done := 0
		c := Config{
			System: "pleach", Members: 5, Kills: 3, Coordinator: coordinator, Seed: 7,
			Command: []string{"survivor", "pleach"}, Progress: func(n int) { done = n },
		}
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		// The dead leave, and come back.
		if r.Kills != 3 || r.Complete != 3 || done != 3 || r.Views < 6 || r.Coordinator != coordinator {
			t.Errorf("%+v, %d done", r, done)
		}
		if r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 || r.DetectionP50 <= 0 || r.StabilizationP50 <= 0 ||
			r.StabilizationP99 > r.Max {
			t.Errorf("%+v", r)
		}
	}
}

// A system that never notices is not waited for for ever, and has no times.
func TestRunIncomplete(t *testing.T) {
	r, err := Run(t.Context(), Config{
		Members: 3, Kills: 2, Limit: 50 * time.Millisecond, Command: []string{"survivor", "deaf"},
	})
	if err != nil || r.Kills != 2 || r.Complete != 0 || r.Max != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What was measured before the end of the context is returned with it.
func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, Config{
		Members: 3, Kills: 1000, Command: []string{"survivor", "pleach"}, Progress: func(n int) {
			if n == 2 {
				cancel()
			}
		},
	})
	if err == nil || ctx.Err() == nil || r.Kills != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		members, kills int
		want           string
	}{{2, 1, "--members 2"}, {maxMembers + 1, 1, "--members"}, {3, 0, "--kills 0"}} {
		err := (&Config{Members: c.members, Kills: c.kills}).Check()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%d members, %d kills: %v", c.members, c.kills, err)
		}
	}
}

// Times are counted from the kill, of complete ones only.
func TestResult(t *testing.T) {
	ms := func(n uint64) uint64 { return n * 1e6 }
	r := (&Config{}).result([]kill{
		{ms(100), ms(102), ms(110), 7 * time.Millisecond, 70},
		{ms(200), ms(203), 0, 1 * time.Millisecond, 10}, // too late
		{ms(300), ms(301), ms(330), 9 * time.Millisecond, 90},
		{ms(400), 0, ms(402), 5 * time.Millisecond, 50}, // no member has reported a suspicion
	})
	want := Result{
		Kills: 4, Processors: r.Processors, Complete: 3, P50: 10, P99: 30, Max: 30,
		DetectionP50: 1, StabilizationP50: 8, StabilizationP99: 29, CPUP50: 7, Timeslices: 70,
	}
	want.kills = r.kills
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

// Interleaved or not, all kills count, and one system's failure is its own.
func TestRunInterleaved(t *testing.T) {
	c := Config{System: "pleach", Members: 3, Kills: 3, Command: []string{"survivor", "pleach"}}
	bad := c
	bad.System, bad.Command = "bad", []string{"survivor", "bad"}
	r, err := RunInterleaved(t.Context(), []Config{c, bad}, 2)
	if err == nil || len(r) != 2 || r[1].Kills != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r[0].System != "pleach" || r[0].Kills != 3 || r[0].Complete != 3 || r[0].Views < 6 || r[0].Max < r[0].P50 ||
		r[0].P50 <= 0 {
		t.Errorf("%+v", r[0])
	}
}

// ulfmStandIn is an ULFM program whose mpirun is a script. Its arguments end with the
// directory for reports, the victim and a limit.
func ulfmStandIn(t *testing.T, mpirun string) *ulfm.Program {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"ompi_info": "echo ident:5.0.7; echo options:ft_mpi_support:yes",
		"mpicc":     "exit 0",
		"mpirun":    "while [ $# -gt 3 ]; do shift; done; cd $1; " + mpirun,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("TMPDIR", t.TempDir())
	p, without, err := ulfm.Find(t.Context(), "")
	if err != nil || p == nil {
		t.Fatal(without, err)
	}
	t.Cleanup(p.Remove)
	return p
}

// Both get all kills, in turns. If ULFM fails, what was measured until then is
// returned.
func TestRunBesideULFM(t *testing.T) {
	var done []int
	c := Config{
		System: "pleach", Members: 3, Kills: 2, Command: []string{"survivor", "pleach"},
		Progress: func(n int) { done = append(done, n) },
	}
	p := ulfmStandIn(t, "for r in 0 1 2; do echo 3000000 5000000 6000000 2 >$r; done; echo 1000000 >$2")
	r, u, err := RunBesideULFM(t.Context(), c, p)
	if err != nil || r.Kills != 2 || r.Complete != 2 || !slices.Equal(done, []int{1, 2}) {
		t.Errorf("%+v, %v, %v", r, done, err)
	}
	want := ulfm.Result{
		Version: "5.0.7", Ranks: 3, Kills: 2, Complete: 2,
		FirstErrorP50: 2, LastErrorP50: 2, ShrinkP50: 4, AgreeP50: 5, Ratio: u.Ratio,
	}
	if u != want || u.Ratio <= 0 {
		t.Errorf("%+v, want %+v", u, want)
	}
	r, u, err = RunBesideULFM(t.Context(), c, ulfmStandIn(t, "exit 1"))
	if err == nil || r.Kills != 1 || u.Kills != 0 {
		t.Errorf("%+v, %+v, %v", r, u, err)
	}
}
