//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pleach-go/pleach/bootstrap"
)

// Processes find each other: each takes over its socket, and says a word to its
// right neighbor, who may not have started yet.
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

// The dead refuse: nobody else holds their sockets.
func TestRunChildIsRefused(t *testing.T) {
	place := placeOfChild(t)
	if place.Rank == 1 {
		return
	}
	for range 500 {
		c, err := net.Dial("tcp", place.Addresses[1])
		if errors.Is(err, syscall.ECONNREFUSED) {
			fmt.Println("refused")
			return
		}
		if err == nil {
			c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("still listens")
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

// Whatever pieces output comes in, lines are whole, and nothing is lost but the
// ends that were missing.
func TestOutputLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"\n", "[7] \n"},
		{"a\nb", "[7] a\n[7] b\n"},
		{strings.Repeat("x", 5000) + "\ny\n", "[7] " + strings.Repeat("x", 5000) + "\n[7] y\n"},
		{
			strings.Repeat("x", maxLine+10) + "\n",
			"[7] " + strings.Repeat("x", maxLine) + "\n[7] " + strings.Repeat("x", 10) + "\n",
		},
	} {
		var out bytes.Buffer
		newOutput(&out, io.Discard, true, false).copyLines(&out, 7, iotest.DataErrReader(strings.NewReader(c.text)))
		if out.String() != c.want {
			t.Errorf("%.20q: got %d bytes, %.40q, want %d", c.text, out.Len(), out.String(), len(c.want))
		}
	}
}

func TestOutputColor(t *testing.T) {
	var out bytes.Buffer
	o := newOutput(&out, io.Discard, true, false)
	o.color[&out] = true
	o.line(&out, 1, []byte("a"))
	o.line(&out, 11, []byte("b"))
	if want := "\x1b[32m[1]\x1b[0m a\n\x1b[32m[11]\x1b[0m b\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestOutputBroken(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	o := newOutput(w, io.Discard, true, false)
	o.line(w, 0, []byte("a"))
	o.line(w, 0, []byte("b"))
	if err := <-o.broken; err != io.ErrClosedPipe {
		t.Errorf("got %v", err)
	}
}

// A reader that is slow loses nothing of what a dead process has printed, and a
// pipe that somebody holds open is not read for ever.
func TestLastWords(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close() // held open
	text := bytes.Repeat([]byte("0123456789abcde\n"), 2048)
	if _, err := write.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := read.SetReadDeadline(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(&lastWords{file: read})
	if !bytes.Equal(got, text) || !os.IsTimeout(err) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(text), err)
	}
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

func TestParseStrike(t *testing.T) {
	for text, want := range map[string]strike{
		"3@2s":         {strikeStop, 3, 2 * time.Second, 0},
		"0@0":          {strikeStop, 0, 0, 0},
		"3@1m+500ms":   {strikeStop, 3, time.Minute, time.Second / 2},
		"4095@1.5h+1h": {strikeStop, 4095, 90 * time.Minute, time.Hour},
	} {
		if got, err := parseStrike(strikeStop, text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":               "there is no @",
		"3":              "there is no @",
		"@2s":            `"" is not a rank`,
		"-1@2s":          `"-1" is not a rank`,
		"99999999999@2s": "is not a rank",
		"3@":             `"" is not a duration`,
		"3@2":            `"2" is not a duration`,
		"3@-2s":          "-2s is not between 0s and 24h",
		"3@25h":          "25h is not between",
		"3@2s+":          `"" is not a duration`,
		"3@2s+0s":        "a stop for no time is none",
		"3@2s+1s+1s":     `"1s+1s" is not a duration`,
		"3@2s@1s":        `"2s@1s" is not a duration`,
	} {
		if got, err := parseStrike(strikeStop, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %s", text, got, err, want)
		}
	}
}

// What happens comes in order of time, whatever the order of the flags.
func TestStrikesInOrder(t *testing.T) {
	r := runCommand{size: 100}
	for rank := range 50 {
		r.kill = append(r.kill, fmt.Sprintf("%d@%dms", rank, rand.IntN(100)))
		r.stop = append(r.stop, fmt.Sprintf("%d@%dms+%dms", 50+rank, rand.IntN(100), 1+rand.IntN(100)))
	}
	strikes, err := r.strikes()
	if err != nil || len(strikes) != 150 {
		t.Fatalf("%d strikes, %v", len(strikes), err)
	}
	for i := range strikes[1:] {
		if strikes[i].at > strikes[i+1].at {
			t.Errorf("%v is before %v", strikes[i], strikes[i+1])
		}
	}
}

// What is understood is bounded, and is written as it is read.
func FuzzParseStrike(f *testing.F) {
	for _, text := range []string{"3@2s", "3@2s+500ms", "@", "3@1h2m3.4s", "+@+", "0@0+1ns"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, stop bool) {
		kind := strikeKill
		if stop {
			kind = strikeStop
		}
		s, err := parseStrike(kind, text)
		if err != nil {
			return
		}
		if s.rank < 0 || s.at < 0 || s.at > maxStrike || s.lasts < 0 || s.lasts > maxStrike || !stop && s.lasts != 0 {
			t.Fatalf("%q: %+v", text, s)
		}
		again, err := parseStrike(kind, strings.TrimPrefix(s.String(), string(kind)+" "))
		if err != nil || again != s {
			t.Fatalf("%q: %v, again %v, %v", text, s, again, err)
		}
	})
}
