// Package tests runs programs of C with libpleach as jobs, and kills their processes. It is apart from the
// library, so that it builds without cgo.
package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// build makes the library, and programs of C with it, as users do: by make and gcc.
var build = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "libpleach")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("make", "-C", "../../..", "libpleach", "LIBPLEACH="+folder).CombinedOutput(); err != nil {
		return folder, fmt.Errorf("make libpleach: %w: %s", err, out)
	}
	flags := exec.Command("pkg-config", "--cflags", "--libs", "libpleach")
	flags.Env = append(os.Environ(), "PKG_CONFIG_PATH="+folder)
	config, err := flags.Output()
	if err != nil {
		return folder, fmt.Errorf("pkg-config: %w", err)
	}
	for program, source := range map[string]string{
		"calls": "testdata/calls.c", "calls-checked": "testdata/calls.c", "trouble": "testdata/trouble.c",
		"allreduce": "../../../examples/c/allreduce/allreduce.c",
	} {
		gcc := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1",
			"-o", filepath.Join(folder, program), source, "-Wl,-rpath,"+folder)
		gcc.Args = append(gcc.Args, strings.Fields(string(config))...)
		if strings.HasSuffix(program, "-checked") {
			gcc.Args = append(gcc.Args, "-fsanitize=address", "-g")
		}
		if out, err := gcc.CombinedOutput(); err != nil {
			return folder, fmt.Errorf("gcc: %w: %s", err, out)
		}
	}
	return folder, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder, _ := build(); folder != "" {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// run runs a program of C as a job, and returns what it prints and how its processes end. A job that has
// ended before a process could be killed is run again.
func run(t *testing.T, size int, kill []string, args ...string) (string, *launch.Report) {
	t.Helper()
	for range 10 {
		if out, report := runOnce(t, size, kill, args...); len(report.Missed) == 0 {
			return out, report
		}
	}
	t.Fatalf("%v: the job has always ended before", kill)
	return "", nil
}

func runOnce(t *testing.T, size int, kill []string, args ...string) (string, *launch.Report) {
	t.Helper()
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	faults, err := launch.Schedule(size, kill, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	report, err := launch.Run(launch.Job{
		Size: size, Program: filepath.Join(folder, args[0]), Args: args, Faults: faults, Grace: time.Second,
		Output: &launch.Output{Stdout: launch.Stream{Writer: &out}, Stderr: launch.Stream{Writer: &complaints}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Unmatched) > 0 {
		t.Errorf("no process has printed %v", report.Unmatched)
	}
	if complaints.Len() > 0 { // of a process that fails
		t.Logf("%v: %s", kill, complaints.String())
	}
	return out.String(), report
}

// mustSucceed fails the test if a process has failed that was not killed.
func mustSucceed(t *testing.T, report *launch.Report) {
	t.Helper()
	if o, failed := report.FirstFailure(); failed {
		t.Errorf("rank %d: %s", o.Rank, o.Text)
	}
}

// The result is the failure-free one, whichever rank dies at whichever step.
func TestExampleIsKilled(t *testing.T) {
	result := regexp.MustCompile(`result: \d+ hits`)
	out, report := run(t, 4, nil, "allreduce")
	mustSucceed(t, report)
	want := result.FindString(out)
	if want == "" {
		t.Fatalf("no result in %q", out)
	}
	kills := [][]string{{"2@/step 50/"}, {"0@/step 0:/", "3@/step 90/"}, {"0@/step 40/", "1@/step 40/", "2@/step 40/"}}
	if testutil.Full.On() {
		for rank := range 4 {
			for step := 0; step < 100; step += 10 {
				for range 25 {
					kills = append(kills, []string{fmt.Sprintf("%d@/step %d:/", rank, step)})
				}
			}
		}
	}
	for _, kill := range kills {
		out, report := run(t, 4, kill, "allreduce")
		mustSucceed(t, report)
		if got := result.FindString(out); got != want {
			t.Errorf("%v: %q, want %q", kill, got, want)
		}
	}
}

// Every kind of call returns what it returns without failures.
func TestCallsAreKilled(t *testing.T) {
	out, report := run(t, 4, nil, "calls")
	mustSucceed(t, report)
	var phases []string
	for _, m := range regexp.MustCompile(`phase (\w+)`).FindAllStringSubmatch(out, -1) {
		if !slices.Contains(phases, m[1]) {
			phases = append(phases, m[1])
		}
	}
	if len(phases) < 18 {
		t.Fatalf("phases are %v", phases)
	}
	for i, phase := range phases {
		for rank := range 4 {
			if rank != i%4 && !testutil.Full.On() {
				continue
			}
			_, report := run(t, 4, []string{fmt.Sprintf("%d@/phase %s$/", rank, phase)}, "calls")
			mustSucceed(t, report)
		}
	}
}

// The library frees what it allocates for a program, and writes nowhere else (AddressSanitizer).
func TestMemory(t *testing.T) {
	for _, kill := range [][]string{nil, {"1@/phase gather$/"}} {
		_, report := run(t, 4, kill, "calls-checked")
		mustSucceed(t, report)
	}
}

// What programs do wrong, and what happens to them, ends with an error that says what to do.
func TestTrouble(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
	}{{"fork", 2}, {"late", 2}, {"mismatch", 2}, {"report", 3}, {"unrestored", 3}, {"arguments", 1}, {"operator", 3}} {
		t.Run(c.name, func(t *testing.T) {
			_, report := run(t, c.size, nil, "trouble", c.name)
			mustSucceed(t, report)
		})
	}
	t.Run("signals", func(t *testing.T) {
		out, report := run(t, 2, nil, "trouble", "signals")
		if o := report.Outcomes[0]; !strings.Contains(out, "interrupted") || !strings.Contains(o.Text, "terminated") {
			t.Errorf("%q: %+v", out, o)
		}
	})
}

// The library exports what pleach.h declares, and nothing else; symbols.txt records it, as api/ records
// the public packages.
func TestSymbolsAreTheRecordedOnes(t *testing.T) {
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("nm", "-D", "--defined-only", filepath.Join(folder, "libpleach.so")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for line := range strings.Lines(string(out)) {
		exported = append(exported, strings.Fields(line)[2])
	}
	slices.Sort(exported)
	header, err := os.ReadFile("../pleach.h")
	if err != nil {
		t.Fatal(err)
	}
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^(?:int|const char \*)\s?(pleach_\w+)\(`).FindAllSubmatch(header, -1) {
		declared = append(declared, string(m[1]))
	}
	slices.Sort(declared)
	if !slices.Equal(exported, declared) {
		t.Errorf("pleach.h declares\n%v\nand the library exports\n%v", declared, exported)
	}
	surface := prototypes(string(header))
	if testutil.RecordAPI.On() {
		if err := os.WriteFile("../symbols.txt", []byte(surface), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded, err := os.ReadFile("../symbols.txt")
	if err != nil {
		t.Fatal(err)
	}
	if surface != string(recorded) {
		t.Errorf("pleach.h is not what symbols.txt has recorded: if that is on purpose, run make bindings-api and tell users in CHANGELOG.md:\n%s", surface)
	}
}

// Packages for Debian have all that a program is built and run with.
func TestDeb(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip(err)
	}
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	out, root := t.TempDir(), t.TempDir()
	command := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		libraries, _ := filepath.Glob(root + "/usr/lib/*")
		cmd.Env = append(os.Environ(), "PKG_CONFIG_SYSROOT_DIR="+root, "PKG_CONFIG_PATH="+strings.Join(libraries, "")+
			"/pkgconfig",
			"LD_LIBRARY_PATH="+strings.Join(libraries, ""))
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", cmd.Args, err, text)
		}
		return string(text)
	}
	command("../deb.sh", folder, out)
	packages, _ := filepath.Glob(out + "/libpleach*.deb")
	if len(packages) != 2 {
		t.Fatalf("packages are %v", packages)
	}
	for _, p := range packages {
		command("dpkg-deb", "--extract", p, root)
	}
	program := filepath.Join(root, "arguments")
	gcc := append([]string{"-D_GNU_SOURCE", "-o", program, "testdata/trouble.c"},
		strings.Fields(command("pkg-config", "--cflags", "--libs", "libpleach"))...)
	command("gcc", gcc...)
	if got := command("ldd", program); !strings.Contains(got, root+"/usr/lib") {
		t.Errorf("the program runs with another library: %s", got)
	}
}

// prototypes is a header without comments and empty lines.
func prototypes(header string) string {
	text := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(header, "")
	return regexp.MustCompile(`[ \t]*\n\s*\n*`).ReplaceAllString(text, "\n")
}
