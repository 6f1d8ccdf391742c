//go:build unix

package transfer

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A lock that is given up after a moment, as by a program that is being started, does not
// keep a member from receiving a file. One that is kept does.
func TestLockIsAwaited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	open := func() *os.File {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	holder, next := open(), open()
	if err := awaitLock(holder, nil); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	close(stop)
	if awaitLock(next, stop) == nil {
		t.Fatal("two have locked a file")
	}
	go func() {
		time.Sleep(lockWait / 20)
		_ = holder.Close()
	}()
	if err := awaitLock(next, nil); err != nil {
		t.Errorf("the lock was given up: %v", err)
	}
}
