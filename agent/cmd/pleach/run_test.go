//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/pleach-go/pleach/bootstrap"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Processes find each other: each takes over its socket, and says a word to its
// right neighbor, which may not have started yet.
func TestRunHandsOverSockets(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(size, child string) string {
		return printed(t, "run", "-n", size, "--env", "GORACE=atexit_sleep_ms=0", self, "-test.run", "^"+child+"$", "-test.v")
	}
	out := run("4", "TestRunChildTalks")
	for rank := range 4 {
		if want := fmt.Sprintf("[%d] heard from %d\n", rank, (rank+3)%4); !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if out := run("2", "TestRunChildIsRefused"); !strings.Contains(out, "[0] refused\n") {
		t.Error(out)
	}
}

// placeOfChild is for what TestRunHandsOverSockets starts.
func placeOfChild(t *testing.T) bootstrap.Assignment {
	t.Helper()
	if os.Getenv("PLEACH_LISTEN_FD") == "" {
		t.Skip("started by another test")
	}
	place, err := bootstrap.Detect(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	return place
}

// A dead process refuses connections: no other holds its socket.
func TestRunChildIsRefused(t *testing.T) {
	place := placeOfChild(t)
	if place.Rank == 1 {
		return
	}
	testutil.Eventually(t, "nobody listens", func() bool {
		c, err := net.Dial("tcp", place.Addresses[1])
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	fmt.Println("refused")
}

func TestRunChildTalks(t *testing.T) {
	place := placeOfChild(t)
	listener, err := place.Listener()
	if err != nil {
		t.Fatal(err)
	}
	right, err := net.Dial("tcp", place.Addresses[(place.Rank+1)%place.Size])
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(right, place.Rank)
	right.Close()
	left, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	word, err := io.ReadAll(left)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("heard from %s\n", word)
}

func TestRankList(t *testing.T) {
	for want, ranks := range map[string][]int{
		"rank 3":            {3},
		"ranks 0-3":         {0, 1, 2, 3},
		"ranks 0-1, 3, 5-7": {0, 1, 3, 5, 6, 7},
		"ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, and more": {
			0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
		},
	} {
		if got := rankList(ranks); got != want {
			t.Errorf("%v: got %s, want %s", ranks, got, want)
		}
	}
}
