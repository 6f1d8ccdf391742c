package tcp

import (
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

func TestDialWithoutDescriptorsIsALocalError(t *testing.T) {
	var log testutil.LogBuffer
	members := startGroup(t, 2, Config{Logger: log.Logger(), BackoffMin: time.Millisecond, BackoffMax: time.Millisecond})
	if _, err := members[0].LocalError(); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	restore := sync.OnceFunc(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) })
	defer restore()
	eventually(t, "three failed dials", func() bool {
		_ = members[0].Send(1, []byte("hello"))
		return members[0].Stats().DialsFailed >= 3
	})
	if _, err := members[0].LocalError(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("local error %v", err)
	}
	restore()
	if warned, blamed := len(log.Lines("rank=0 cause=")), len(log.Lines("peer=1")); warned != 1 || blamed != 0 {
		t.Errorf("%d warnings, and %d lines about the peer", warned, blamed)
	}
}
