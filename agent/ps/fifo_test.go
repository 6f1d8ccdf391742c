//go:build unix

package ps

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Any user can name a pipe in the environment of a process. Looking for jobs does not wait for
// somebody to write to it: case 100.
func TestPipesAreNotRead(t *testing.T) {
	proc := t.TempDir()
	pipe, file := filepath.Join(proc, "pipe"), filepath.Join(proc, "file")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("127.0.0.1:1 127.0.0.1:2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for pid, name := range map[string]string{"7": pipe, "8": file, "9": os.DevNull} {
		environment := "PLEACH_RANK=0\x00PLEACH_SIZE=2\x00PLEACH_GROUP=x\x00PLEACH_ADDRESS_FILE=" + name + "\x00"
		if err := os.Mkdir(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "environ"), []byte(environment), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if jobs := FindJobs(proc, ""); len(jobs) != 1 || len(jobs[0].PIDs) != 1 || jobs[0].PIDs[0] != 8 {
		t.Errorf("%+v", jobs)
	}
}
