package bootstrap

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// variables is an environment as people write it down.
func variables(text string) environment {
	values := make(map[string]string)
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

func TestLaunchers(t *testing.T) {
	for _, c := range []struct {
		about, env string
		want       Assignment
	}{
		{
			"pleach run", "PLEACH_RANK=1 PLEACH_SIZE=2 PLEACH_ADDRESSES=127.0.0.1:7,127.0.0.1:8 PLEACH_GROUP=g PLEACH_LISTEN_FD=3",
			Assignment{
				Rank: 1, Size: 2, LocalRank: 1, Launcher: "pleach run", Addresses: []string{"127.0.0.1:7", "127.0.0.1:8"},
				Group: "g", listenFD: 3,
			},
		},
		{
			"static", "PLEACH_RANK=1 PLEACH_ADDRESSES=a:1,[::1]:2",
			Assignment{Rank: 1, Size: 2, Launcher: "static", Addresses: []string{"a:1", "[::1]:2"}},
		},
		{
			"replacement", "PLEACH_RANK=1 PLEACH_ADDRESSES=a:1,b:2 PLEACH_REPLACEMENT=1",
			Assignment{Rank: 1, Size: 2, Launcher: "static", Addresses: []string{"a:1", "b:2"}, Respawned: true},
		},
		{
			"static wins", "PLEACH_RANK=1 PLEACH_SIZE=2 PLEACH_ADDRESSES=a:1,b:2 SLURM_PROCID=0 SLURM_NTASKS=1",
			Assignment{Rank: 1, Size: 2, Launcher: "static", Addresses: []string{"a:1", "b:2"}},
		},
		{
			"torchrun on one host",
			"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 TORCHELASTIC_RUN_ID=j",
			Assignment{
				Rank: 1, Size: 2, LocalRank: 1, Launcher: "torchrun",
				Addresses: []string{loopback("torchrun-j", runtime.GOOS) + ":27600", loopback("torchrun-j", runtime.GOOS) +
					":27601"}, Group: "torchrun-j",
			},
		},
		{
			"torchrun on several hosts", "RANK=2 WORLD_SIZE=4 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2",
			Assignment{Rank: 2, Size: 4, Launcher: "torchrun"},
		},
		{
			"torchrun in Slurm, where srun started one on each node",
			"RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0",
			Assignment{Rank: 3, Size: 4, LocalRank: 1, Launcher: "torchrun"},
		},
		{
			"Open MPI on one host",
			"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 PLEACH_PORT=99",
			Assignment{Rank: 0, Size: 1, Launcher: "Open MPI", Addresses: []string{"127.0.0.1:99"}},
		},
		{
			"Open MPI in a batch script of Slurm",
			"OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=n SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_LOCALID=0",
			Assignment{Rank: 5, Size: 8, LocalRank: 1, Launcher: "Open MPI", Group: "ompi-n"},
		},
		{
			"Open MPI with addresses",
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 PLEACH_ADDRESSES=a:1,b:1",
			Assignment{Rank: 1, Size: 2, Launcher: "Open MPI", Addresses: []string{"a:1", "b:1"}},
		},
		{
			"a secret", "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 SLURM_STEP_NODELIST=n1 PLEACH_SECRET=0123456789abcdef",
			Assignment{Size: 1, Launcher: "Slurm", Addresses: []string{"n1:27600"}, Secret: []byte("0123456789abcdef")},
		},
		{
			"PMI", "PMI_RANK=1 PMI_SIZE=2 PMI_FD=7",
			Assignment{Rank: 1, Size: 2, Launcher: "PMI"},
		},
		{
			"hydra on one host", "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 SLURM_PROCID=0 SLURM_NTASKS=2",
			Assignment{
				Rank: 1, Size: 2, LocalRank: 1, Launcher: "PMI",
				Addresses: []string{"127.0.0.1:27600", "127.0.0.1:27601"},
			},
		},
		{
			"srun with PMI", "PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_NODELIST=n[1-2]",
			Assignment{Rank: 1, Size: 2, Launcher: "Slurm", Addresses: []string{"n1:27600", "n2:27600"}},
		},
		{
			"Slurm, block", "SLURM_PROCID=2 SLURM_NTASKS=3 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NODELIST=n[09-10] SLURM_STEP_TASKS_PER_NODE=2,1 SLURM_JOB_ID=7 SLURM_STEP_ID=0",
			Assignment{
				Rank: 2, Size: 3, Launcher: "Slurm", Addresses: []string{"n09:27600", "n09:27601", "n10:27600"},
				Group: "slurm-7.0",
			},
		},
		{
			"Slurm, cyclic", "SLURM_PROCID=2 SLURM_NTASKS=5 SLURM_LOCALID=0 SLURM_NODEID=2 SLURM_STEP_NODELIST=a,b,c SLURM_STEP_TASKS_PER_NODE=2(x2),1 SLURM_DISTRIBUTION=cyclic",
			Assignment{Rank: 2, Size: 5, Launcher: "Slurm", Addresses: []string{
				"a:27600", "b:27600", "c:27600", "a:27601",
				"b:27601",
			}},
		},
		{
			"Slurm, plane", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_NODELIST=a SLURM_DISTRIBUTION=plane",
			Assignment{Size: 2, Launcher: "Slurm", hint: "start the program with srun --distribution=block or cyclic"},
		},
		{
			"Slurm, in a batch script", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_JOB_ID=7",
			Assignment{Size: 2, Launcher: "Slurm", Group: "slurm-7", hint: "start the program with srun"},
		},
		{
			"Kubernetes", "JOB_COMPLETION_INDEX=1 PLEACH_SIZE=2 PLEACH_SUBDOMAIN=svc HOSTNAME=my-job-1 PLEACH_PORT=80",
			Assignment{
				Rank: 1, Size: 2, Launcher: "Kubernetes", Addresses: []string{"my-job-0.svc:80", "my-job-1.svc:80"},
				Group: "job-my-job",
			},
		},
		{
			"Kubernetes with addresses", "JOB_COMPLETION_INDEX=1 PLEACH_ADDRESSES=a:1,b:1 HOSTNAME=elsewhere",
			Assignment{Rank: 1, Size: 2, Launcher: "Kubernetes", Addresses: []string{"a:1", "b:1"}},
		},
		{
			"Kubernetes without a service", "JOB_COMPLETION_INDEX=0 PLEACH_SIZE=2 HOSTNAME=j-0",
			Assignment{
				Size: 2, Launcher: "Kubernetes", Group: "job-j",
				hint: "set PLEACH_SUBDOMAIN to the name of the headless service in the job's spec.subdomain",
			},
		},
	} {
		got, err := Detect(variables(c.env))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %s\ngot  %+v, %v\nwant %+v", c.about, c.env, got, err, c.want)
		}
		missing, isMissing := errors.AsType[*MissingError](got.Check())
		if isMissing != (c.want.Addresses == nil) {
			t.Errorf("%s: Check says %v", c.about, got.Check())
		}
		if isMissing && (!strings.Contains(missing.Error(), c.want.hint) ||
			!strings.Contains(missing.Error(), "PLEACH_ADDRESSES")) {
			t.Errorf("%s: Check says %v", c.about, missing)
		}
	}
}

// Errors name the variable and its value.
func TestWrongVariables(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"PLEACH_RANK=2 PLEACH_ADDRESSES=a:1,b:1", "PLEACH_RANK=2: it must be less than PLEACH_SIZE=2"},
		{
			"PLEACH_RANK=0 PLEACH_ADDRESSES=a:1 PLEACH_SECRET=guessed",
			"PLEACH_SECRET=…: it must have at least 16 random bytes",
		},
		{"PLEACH_RANK=x PLEACH_ADDRESSES=a:1", "PLEACH_RANK=x: it must be a number from 0 to"},
		{"PLEACH_RANK=-1 PLEACH_ADDRESSES=a:1", "PLEACH_RANK=-1: it must be a number"},
		{"PLEACH_RANK=0 PLEACH_SIZE=3 PLEACH_ADDRESSES=a:1", "PLEACH_ADDRESSES=a:1: 1 addresses, but PLEACH_SIZE=3"},
		{"PLEACH_RANK=0 PLEACH_ADDRESSES=a", `PLEACH_ADDRESSES=a: "a" is not an address: write host:port`},
		{"PLEACH_RANK=0 PLEACH_ADDRESSES=:1", `":1" is not an address`},
		{"PLEACH_RANK=0 PLEACH_ADDRESSES=a:0", `"a:0": the port must be a number from 1 to 65535`},
		{"PLEACH_RANK=0 PLEACH_ADDRESSES=a:1,b:1,a:1", `"a:1" is the address of rank 0 and of rank 2`},
		{"PLEACH_RANK=0 PLEACH_ADDRESSES=,", "PLEACH_ADDRESSES=,: 0 addresses"},
		{
			"PLEACH_RANK=0 PLEACH_ADDRESS_FILE=/does/not/exist",
			"PLEACH_ADDRESS_FILE=/does/not/exist: cannot read addresses: open",
		},
		{"PLEACH_LISTEN_FD=1 PLEACH_RANK=0 PLEACH_SIZE=1", "PLEACH_LISTEN_FD=1: it must be a number from 3"},
		{"PLEACH_LISTEN_FD=3 PLEACH_RANK=0", "PLEACH_SIZE is not set"},
		{"RANK=1 WORLD_SIZE=0 LOCAL_RANK=1", "WORLD_SIZE=0: it must be a number from 1 to 1048576"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=2", "LOCAL_RANK=2: it must be a number from 0 to 1"},
		{"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=3", "LOCAL_WORLD_SIZE=3: it must be a number from 1 to 2"},
		{
			"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 PLEACH_PORT=65535",
			"PLEACH_PORT=65535: it must be a number from 1 to 65534",
		},
		{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE is not set: it must be a number"},
		{"PMI_RANK=0 PMI_SIZE=1048577", "PMI_SIZE=1048577: it must be a number from 1 to 1048576"},
		{"SLURM_PROCID=0 SLURM_NTASKS=1", "SLURM_LOCALID is not set"},
		{
			"SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 SLURM_STEP_NODELIST=n[1",
			`SLURM_STEP_NODELIST=n[1: "n[1": a bracket is not closed`,
		},
		{
			"SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_LOCALID=0 SLURM_STEP_NODELIST=a,b",
			"SLURM_STEP_TASKS_PER_NODE is not set: it must be set: 3 tasks do not fit evenly on 2 nodes",
		},
		{
			"SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_LOCALID=0 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE=1(x2)",
			"SLURM_STEP_TASKS_PER_NODE=1(x2): 2 tasks on 2 nodes, but SLURM_NTASKS=3",
		},
		{
			"SLURM_PROCID=0 SLURM_NTASKS=3 SLURM_LOCALID=0 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE=1(x99999999999)",
			"it must be written as in 2(x3),1",
		},
		{
			"SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_NODELIST=a,b",
			"SLURM_DISTRIBUTION is not set: tasks are not distributed as expected: rank 1 should be task 1 of node 0",
		},
		{"JOB_COMPLETION_INDEX=0", "PLEACH_SIZE is not set: set it in the job's manifest"},
		{"JOB_COMPLETION_INDEX=0 PLEACH_SIZE=1 HOSTNAME=h", "HOSTNAME=h: it must be the job's name followed by -0"},
	} {
		_, err := Detect(variables(c.env))
		if _, ok := errors.AsType[*VariableError](err); !ok || !strings.HasPrefix(err.Error(), "bootstrap: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.env, err, c.want)
		}
	}
	long := &VariableError{Name: "X", Value: strings.Repeat("n", 1e6)}
	if n := len(long.Error()); n > 200 {
		t.Errorf("an error of %d bytes", n)
	}
}

func TestNotFound(t *testing.T) {
	_, err := Detect(variables("RANK=1"))
	if _, ok := errors.AsType[*NotFoundError](err); !ok {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"pleach run (PLEACH_LISTEN_FD)", "static (PLEACH_RANK, PLEACH_ADDRESSES)", "torchrun (RANK, WORLD_SIZE, LOCAL_RANK)",
		"Open MPI (OMPI_COMM_WORLD_RANK)", "PMI (PMI_RANK)", "Slurm (SLURM_PROCID)", "Kubernetes (JOB_COMPLETION_INDEX)",
		"only RANK is set",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestAddressFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "addresses")
	if err := os.WriteFile(name, []byte("a:1\nb:1\r\n\nc:1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	place, err := Detect(variables("PLEACH_RANK=2 PLEACH_ADDRESS_FILE=" + name))
	if err != nil || place.Size != 3 || !reflect.DeepEqual(place.Addresses, []string{"a:1", "b:1", "c:1"}) {
		t.Errorf("got %+v, %v", place, err)
	}
}

// Jobs of one host have addresses of their own where the system has enough of them, so that
// they can have the same ports.
func TestJobsOfOneHostDoNotCollide(t *testing.T) {
	a, b := loopback("ompi-1", "linux"), loopback("ompi-2", "linux")
	if a == b || !netip.MustParseAddr(a).IsLoopback() || !netip.MustParseAddr(b).IsLoopback() {
		t.Errorf("%s and %s", a, b)
	}
	if got := loopback("ompi-1", "darwin"); got != "127.0.0.1" {
		t.Error(got)
	}
	if got := loopback("", "linux"); got != "127.0.0.1" {
		t.Error(got)
	}
}
