package netns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// The hosts' programs are this test binary, started anew.
const program = "PLEACH_TEST_NETNS"

func TestMain(m *testing.M) {
	switch os.Getenv(program) {
	case "listen":
		fmt.Println("error", listen(os.Args[1]))
	case "dial":
		fmt.Println(dial(os.Args[1]))
	default:
		os.Exit(m.Run())
	}
}

// listen echoes what comes, until it is killed or its input ends.
func listen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}()
	}
}

// dial connects, and asks for an echo of each line it is given.
func dial(address string) string {
	c, err := net.DialTimeout("tcp", address, 500*time.Millisecond)
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "silence"
	case err != nil:
		return err.Error()
	}
	fmt.Println("connected")
	if _, err := io.Copy(c, os.Stdin); err != nil {
		return err.Error()
	}
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// start runs a program on a host, and returns its first line of output.
func start(t *testing.T, n *Net, host int, what, address string) (first string, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd := n.Command(host, os.Args[0], address)
	cmd.Env = append(os.Environ(), program+"="+what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	out = bufio.NewReader(stdout)
	first, _ = out.ReadString('\n')
	return strings.TrimSpace(first), in, out
}

func TestCutIsSilentAndHeals(t *testing.T) {
	n := New(t, 4)
	address := n.Address(1) + ":7000"
	if first, _, _ := start(t, n, 1, "listen", address); first != "listening" {
		t.Fatal(first)
	}
	ask := func(from int, want string) {
		t.Helper()
		first, in, _ := start(t, n, from, "dial", address)
		_ = in.Close()
		if first != want {
			t.Errorf("host %d to host 1: %q, want %q", from, first, want)
		}
	}
	first, in, out := start(t, n, 0, "dial", address)
	if first != "connected" {
		t.Fatal(first)
	}

	n.Cut(1)
	ask(2, "silence")
	_, _ = io.WriteString(in, "sent while cut off")
	_ = in.Close()
	time.Sleep(100 * time.Millisecond)
	n.Heal(1)
	if echo, _ := io.ReadAll(out); strings.TrimSpace(string(echo)) != "sent while cut off" {
		t.Errorf("echo %q: a cut has broken a connection", echo)
	}
	ask(2, "connected")

	n.Partition(1, 2)
	ask(0, "silence")
	ask(3, "silence")
	ask(2, "connected")
	n.HealAll()
	ask(0, "connected")
	ask(2, "connected")
}

// What crosses a long link takes its time, and a cut of it is as silent as any.
func TestDelay(t *testing.T) {
	const delay = 30 * time.Millisecond
	n := New(t, 2)
	if !n.Delay(1, delay) {
		t.Skip("there are no TAP devices here")
	}
	address := n.Address(1) + ":7000"
	if first, _, _ := start(t, n, 1, "listen", address); first != "listening" {
		t.Fatal(first)
	}
	first, in, out := start(t, n, 0, "dial", address)
	if first != "connected" {
		t.Fatal(first)
	}
	began, text := time.Now(), strings.Repeat("long ", 10_000)
	_, _ = io.WriteString(in, text)
	_ = in.Close()
	if echo, _ := io.ReadAll(out); strings.TrimSpace(string(echo)) != strings.TrimSpace(text) {
		t.Errorf("%d bytes of %d came back", len(echo), len(text))
	}
	if took := time.Since(began); took < delay {
		t.Errorf("an echo took %v over a link of %v", took, delay)
	}
	n.Cut(1)
	if first, in, _ := start(t, n, 0, "dial", address); first != "silence" {
		_ = in.Close()
		t.Errorf("a host that is cut off: %q", first)
	}
}

// Namespaces outlive processes; those of dead ones go when the next are made.
func TestLeftoversAreRemoved(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	gone := exec.Command(os.Args[0], "-test.list", "^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("%s%d-1", prefix, gone.Process.Pid)
	if err := ip("", "netns add "+name); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(leftovers(), name) {
		t.Errorf("%s is no leftover", name)
	}
	New(t, 1)
	if _, err := os.Stat(directory + "/" + name); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", name, err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	var names []string
	t.Run("made", func(t *testing.T) { names = New(t, 3).namespaces() })
	for _, name := range names {
		if _, err := os.Stat(directory + "/" + name); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if len(names) == 0 && Available() == nil {
		t.Error("nothing was made")
	}
}
