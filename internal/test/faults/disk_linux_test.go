package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// busyDisk makes a member's next save take until the end of the test, or until release is
// called. A lease on the file (fcntl F_SETLEASE) keeps the open from returning.
func busyDisk(t *testing.T, folder string) (release func()) {
	t.Helper()
	const setLease = 1024
	f, err := os.OpenFile(filepath.Join(folder, "member.new"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, syscall.F_WRLCK); errno != 0 {
		t.Skipf("this file system has no leases: %v", errno)
	}
	release = func() { _ = f.Close() }
	t.Cleanup(release)
	return release
}

// groupWithDataDirs makes a group of members in this process, each with a data directory.
func groupWithDataDirs(t *testing.T, n int) (members []*pleach.Group, folders []string) {
	t.Helper()
	for i := range n {
		c := pleach.Config{Group: "faults", ID: fmt.Sprint("m", i), Recovery: pleach.Recovery{DataDir: t.TempDir()}}
		var g *pleach.Group
		var err error
		if i == 0 {
			g, err = pleach.Create(t.Context(), c)
		} else {
			g, err = pleach.Join(t.Context(), c, members[0].Self().Address)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Abort() })
		members, folders = append(members, g), append(folders, c.Recovery.DataDir)
	}
	for _, g := range members {
		awaitSize(t, g, n)
	}
	time.Sleep(100 * time.Millisecond) // the last view is saved
	return members, folders
}

// awaitSize waits until a member is in a view of so many.
func awaitSize(t *testing.T, g *pleach.Group, n int) {
	t.Helper()
	for began := time.Now(); g.Size() != n; time.Sleep(5 * time.Millisecond) {
		if g.Err() != nil || time.Since(began) > 20*time.Second {
			t.Fatalf("rank %d has a view of %d members, not of %d: %v", g.Rank(), g.Size(), n, g.Err())
		}
	}
}

// talk broadcasts from a member for a while, and returns the longest time between two
// messages that another one has received.
func talk(t *testing.T, from, to *pleach.Group, d time.Duration) (longest time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_ = from.Broadcast(ctx, []byte("hello"))
			time.Sleep(10 * time.Millisecond)
		}
	}()
	last := time.Now()
	for m := range to.Messages(ctx) {
		if m.From == from.Rank() {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	}
	return max(longest, time.Since(last))
}

// Case 39: the disk of the coordinator is busy when a member dies. The coordinator goes on
// sending and receiving, and tells why there is no view yet. Nobody else is removed.
func TestCase39BusyDisk(t *testing.T) {
	const busy = 4700 * time.Millisecond
	members, folders := groupWithDataDirs(t, 4)
	release := busyDisk(t, folders[0])
	if err := members[3].Abort(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	longest := make(chan time.Duration, 2)
	go func() { longest <- talk(t, members[0], members[1], busy) }()
	go func() { longest <- talk(t, members[1], members[0], busy) }()
	silent := max(<-longest, <-longest)
	told := members[0].Status().LastError
	release()
	for _, g := range members[:3] {
		awaitSize(t, g, 3)
	}
	took := time.Since(began)
	if view := members[1].View(); !view.Has(0) {
		t.Errorf("the coordinator was removed: %v", view)
	}
	if !strings.Contains(told, "the disk is slow") {
		t.Errorf("the status tells %q", told)
	}
	testutil.Took(t, "the longest time without a message", silent, time.Second)
	figures(t, map[string]any{
		"case": 39, "busy_ms": busy.Milliseconds(), "silent_ms": silent.Milliseconds(),
		"view_ms": took.Milliseconds(),
	})
}

// Case 40: the disk of a member is full when the view is to change. The member stays one,
// tells why it does not vote, and tries again less and less often. When there is space, the
// view comes.
func TestCase40FullDisk(t *testing.T) {
	const full = 3 * time.Second
	members, folders := groupWithDataDirs(t, 3)
	obstacle := filepath.Join(folders[2], "member.new") // a directory, which no file can be written to
	if err := os.Mkdir(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	before := members[0].View().Number
	joined := make(chan error, 1)
	go func() {
		g, err := pleach.Join(t.Context(), pleach.Config{Group: "faults", ID: "m3"}, members[0].Self().Address)
		if err == nil {
			t.Cleanup(func() { _ = g.Abort() })
		}
		joined <- err
	}()
	time.Sleep(full)
	if err := members[2].Err(); err != nil {
		t.Fatalf("the member has ended: %v", err)
	}
	views, told := members[0].View().Number-before, members[2].Status().LastError
	if views > 0 || !strings.Contains(told, folders[2]) {
		t.Errorf("%d views without its vote; its status tells %q", views, told)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	awaitSize(t, members[2], 4)
	took := time.Since(began)
	testutil.Took(t, "the view after there was space", took, 4*time.Second)
	figures(t, map[string]any{"case": 40, "full_ms": full.Milliseconds(), "views": views, "view_ms": took.Milliseconds()})
}
