//go:build unix

package ulfm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// ulfmRoot names a root directory that has ULFM, for the tests that need one.
const ulfmRoot = "PLEACH_ULFM_ROOT"

const (
	infoWith    = "package:Open MPI\nident:5.0.7\noptions:mpi_ext:affinity, ftmpi\noptions:ft_mpi_support:yes\n"
	infoWithout = "ident:5.0.7\noptions:mpi_ext:affinity\noptions:ft_mpi_support:no\n"
	infoOld     = "package:Open MPI\nident:4.1.4\n"
)

func TestParseInfo(t *testing.T) {
	for _, c := range []struct {
		info, version string
		supported     bool
	}{{infoWith, "5.0.7", true}, {infoWithout, "5.0.7", false}, {infoOld, "4.1.4", false}, {"", "", false}} {
		if version, supported := parseInfo([]byte(c.info)); version != c.version || supported != c.supported {
			t.Errorf("%q: %s, %v", c.info, version, supported)
		}
	}
}

// commands makes a PATH of shell scripts only. They find /bin and /usr/bin.
func commands(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		text := "#!/bin/sh\nPATH=/bin:/usr/bin\n" + script
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("TMPDIR", t.TempDir())
}

// info is a script that prints a text.
func info(text string) string { return "cat <<'EOF'\n" + text + "EOF\n" }

// What is missing is said, and nothing is left behind.
func TestFindNone(t *testing.T) {
	for what, scripts := range map[string]map[string]string{
		"not found":                         {},
		"Open MPI 4.1.4 is built without":   {"ompi_info": info(infoOld)},
		"Open MPI 5.0.7 is built without":   {"ompi_info": info(infoWithout)},
		"mpicc cannot compile":              {"ompi_info": info(infoWith)},
		"mpicc cannot compile: exit status": {"ompi_info": info(infoWith), "mpicc": "echo no mpi.h >&2; exit 1"},
	} {
		t.Run(what, func(t *testing.T) {
			commands(t, scripts)
			p, without, err := Find(t.Context(), "")
			if p != nil || err != nil || !strings.Contains(without, what) {
				t.Errorf("%+v, %q, %v", p, without, err)
			}
			if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
				t.Errorf("%v is left behind", left)
			}
		})
	}
}

// standIn finds a program whose mpirun is a script. Its arguments end with the
// directory, the victim and the seconds.
func standIn(t *testing.T, script string) *Program {
	t.Helper()
	commands(t, map[string]string{
		"ompi_info": info(infoWith), "mpicc": "exit 0",
		"mpirun": "while [ $# -gt 3 ]; do shift; done\ncd $1\n" + script,
	})
	p, without, err := Find(t.Context(), "")
	if err != nil || without != "" {
		t.Fatal(without, err)
	}
	t.Cleanup(p.Remove)
	return p
}

// A kill's times are those of the last survivor.
func TestKill(t *testing.T) {
	p := standIn(t, "echo 1000000 >$2; echo 4000000 6000000 9000000 2 >0; echo 3000000 7000000 8000000 2 >2")
	k, err := p.Kill(t.Context(), 3, 1)
	ms := time.Millisecond
	if want := (Kill{true, 2 * ms, 3 * ms, 6 * ms, 8 * ms}); err != nil || k != want {
		t.Errorf("%+v, %v, want %+v", k, err, want)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "job-*")); len(left) > 0 {
		t.Errorf("%v is left behind", left)
	}
}

// A kill that a survivor does not report is not complete, nor one after which ranks
// are missing.
func TestKillIncomplete(t *testing.T) {
	for _, script := range []string{
		"echo 10 >$2; echo 40 60 90 2 >0",
		"echo 10 >$2; echo 40 60 90 2 >0; echo 40 60 90 1 >2",
		"echo 10 >$2; echo 40 60 90 2 >0; echo 40 60 >2; exit 1",
	} {
		if k, err := standIn(t, script).Kill(t.Context(), 3, 1); err != nil || k != (Kill{}) {
			t.Errorf("%s: %+v, %v", script, k, err)
		}
	}
}

// A job in which no rank was killed has failed, and says why.
func TestKillFails(t *testing.T) {
	_, err := standIn(t, "echo no slots >&2; exit 7").Kill(t.Context(), 3, 1)
	if err == nil || !strings.Contains(err.Error(), "no rank was killed") || !strings.Contains(err.Error(), "no slots") ||
		!strings.Contains(err.Error(), "7") {
		t.Error(err)
	}
}

// Ranks that have reported are not waited for: these would never end.
func TestAwaitReports(t *testing.T) {
	mpirun, err := launch.Start(launch.Command{Program: "/bin/cat", Args: []string{"cat"}, Input: true})
	if err != nil {
		t.Fatal(err)
	}
	defer mpirun.Stop()
	dir := t.TempDir()
	for _, rank := range []string{"0", "1"} {
		if err := os.WriteFile(filepath.Join(dir, rank), []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	awaitReports(t.Context(), mpirun, dir, 2)
}

// A job ends with its context.
func TestKillEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := standIn(t, "touch ../started; sleep 100")
	started := filepath.Join(p.dir, "started")
	go func() {
		defer cancel()
		testutil.Within(time.Minute, func() bool {
			_, err := os.Stat(started)
			return err == nil
		})
	}()
	if _, err := p.Kill(ctx, 3, 1); err != context.Canceled {
		t.Error(err)
	}
}

// Times are of complete kills.
func TestSummarize(t *testing.T) {
	ms := time.Millisecond
	kills := []Kill{
		{true, 1 * ms, 2 * ms, 30 * ms, 40 * ms},
		{},
		{true, 2 * ms, 3 * ms, 4 * ms, 5 * ms},
		{true, 3 * ms, 4 * ms, 5 * ms, 6 * ms},
	}
	p := &Program{Version: "5.0.7"}
	want := Result{
		Version: "5.0.7", Ranks: 8, Kills: 4, Complete: 3,
		FirstErrorP50: 2, LastErrorP50: 3, ShrinkP50: 5, AgreeP50: 6, Ratio: 0.5,
	}
	if got := p.Summarize(8, kills, 2.5); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := p.Summarize(8, []Kill{{}}, 2.5); got.Ratio != 0 || got.ShrinkP50 != 0 || got.Kills != 1 {
		t.Errorf("%+v of nothing", got)
	}
}

// The real one: each survivor goes on with the others.
func TestKillByULFM(t *testing.T) {
	p, without, err := Find(t.Context(), os.Getenv(ulfmRoot))
	if err != nil {
		t.Fatal(err)
	}
	if without != "" {
		t.Skipf("ULFM is not found: %s (name a root directory by %s)", without, ulfmRoot)
	}
	defer p.Remove()
	for _, victim := range []int{0, 2} {
		k, err := p.Kill(t.Context(), 4, victim)
		if err != nil {
			t.Fatal(err)
		}
		if !k.Complete || k.FirstError <= 0 || k.LastError < k.FirstError || k.Shrink < k.LastError || k.Agree < k.Shrink {
			t.Errorf("rank %d was killed: %+v", victim, k)
		}
	}
}
