package pleach_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
)

// Delivery under killing, among real processes: every member broadcasts while
// some are killed and some are stopped and go on. Every message whose root
// survives must be delivered by every survivor exactly once, in the root's
// order.
//
// The members are this test binary, started anew with deliveryMember set.

const deliveryMember = "PLEACH_TEST_DELIVERY_MESSAGES"

func TestMain(m *testing.M) {
	if n := os.Getenv(deliveryMember); n != "" {
		messages, err := strconv.Atoi(n)
		if err == nil {
			err = runDeliveryMember(messages)
		}
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// deliveryMessage is a message of between 64 B and 256 KiB that says whose and
// which it is, and carries a checksum.
func deliveryMessage(rng *rand.Rand, root, number int) []byte {
	b := make([]byte, 64<<rng.IntN(13))
	binary.BigEndian.PutUint32(b, uint32(root))
	binary.BigEndian.PutUint32(b[4:], uint32(number))
	for i := 16; i < len(b); i++ {
		b[i] = byte(i + number)
	}
	binary.BigEndian.PutUint64(b[8:], checksum(b))
	return b
}

func checksum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b[:8])
	h.Write(b[16:])
	return h.Sum64()
}

// runDeliveryMember is one member: it broadcasts, and tells on its output how
// many messages of each root it has, until its input ends.
func runDeliveryMember(messages int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	group, err := pleach.Join(ctx, pleach.Config{})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go func() {
		rng := rand.New(rand.NewPCG(uint64(group.Rank()), 7))
		for i := range messages {
			if err := group.Broadcast(ctx, deliveryMessage(rng, group.Rank(), i)); err != nil {
				fmt.Println("error", err)
			}
			time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		}
	}()
	next := make([]int, group.Size())
	for m := range group.Messages(ctx) {
		root, number := int(binary.BigEndian.Uint32(m.Data)), int(binary.BigEndian.Uint32(m.Data[4:]))
		if root != m.Root || number != next[root] || m.Lost != 0 || binary.BigEndian.Uint64(m.Data[8:]) != checksum(m.Data) {
			return fmt.Errorf("message %d of root %d after %d, lost %d", number, root, next[root], m.Lost)
		}
		next[root]++
		fmt.Println("have", root, next[root])
	}
	return group.Close()
}

// deliveryProcess is one member as the test sees it.
type deliveryProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when its output has ended

	mu   sync.Mutex
	have []int
	err  string
}

// startDelivery starts the members, with listening sockets opened beforehand.
func startDelivery(t *testing.T, size, messages int) []*deliveryProcess {
	t.Helper()
	files := make([]*os.File, size)
	addresses := make([]string, size)
	for r := range files {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[r] = l.Addr().String()
		if files[r], err = l.(*net.TCPListener).File(); err != nil {
			t.Fatal(err)
		}
		defer files[r].Close()
	}
	processes := make([]*deliveryProcess, size)
	for r := range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(),
			deliveryMember+"="+strconv.Itoa(messages), "PLEACH_LISTEN_FD=3", "PLEACH_GROUP=delivery",
			"PLEACH_RANK="+strconv.Itoa(r), "PLEACH_SIZE="+strconv.Itoa(size), "PLEACH_ADDRESSES="+strings.Join(addresses, ","))
		cmd.ExtraFiles = []*os.File{files[r]}
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
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
		p := &deliveryProcess{cmd: cmd, stdin: stdin, done: make(chan struct{}), have: make([]int, size)}
		processes[r] = p
		go p.read(stdout)
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-p.done
			_ = cmd.Wait()
		})
	}
	return processes
}

// read follows what a member tells.
func (p *deliveryProcess) read(stdout io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var root, number int
		_, err := fmt.Sscanf(lines.Text(), "have %d %d", &root, &number)
		p.mu.Lock()
		if err == nil {
			p.have[root] = number
		} else {
			p.err = lines.Text()
		}
		p.mu.Unlock()
	}
}

// missing says what a survivor still lacks of the survivors' messages.
func (p *deliveryProcess) missing(self, messages int, dead []int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != "" {
		return p.err
	}
	for root, n := range p.have {
		if root != self && !slices.Contains(dead, root) && n < messages {
			return fmt.Sprintf("%d of %d messages of root %d", n, messages, root)
		}
	}
	return ""
}

func TestDeliveryUnderKilling(t *testing.T) {
	size, kills, stops, messages := 32, 10, 3, 20
	if raceEnabled {
		size, kills, stops, messages = 12, 4, 2, 8 // the members run with the race detector too
	}
	seed := uint64(1)
	if s := os.Getenv("PLEACH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("to replay: PLEACH_SEED=%d go test -run DeliveryUnderKilling .", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	processes := startDelivery(t, size, messages)
	victims := rng.Perm(size - 1)
	for i := range victims {
		victims[i]++ // rank 0 lives
	}
	dead, stopped := victims[:kills], victims[kills:kills+stops]
	time.Sleep(300 * time.Millisecond)
	signal := func(rank int, s syscall.Signal) {
		if err := processes[rank].cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	for i, rank := range dead {
		signal(rank, syscall.SIGKILL)
		if i < len(stopped) {
			signal(stopped[i], syscall.SIGSTOP)
		}
		time.Sleep(time.Duration(rng.IntN(250)) * time.Millisecond)
	}
	for _, rank := range stopped {
		signal(rank, syscall.SIGCONT)
	}
	deadline := time.Now().Add(60 * time.Second)
	for rank, p := range processes {
		if slices.Contains(dead, rank) {
			continue
		}
		for missing := p.missing(rank, messages, dead); missing != ""; missing = p.missing(rank, messages, dead) {
			if time.Now().After(deadline) || strings.HasPrefix(missing, "error") {
				t.Fatalf("rank %d, dead %v, stopped %v: %s", rank, dead, stopped, missing)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for rank, p := range processes {
		if slices.Contains(dead, rank) {
			continue
		}
		_ = p.stdin.Close()
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
			t.Errorf("rank %d does not end", rank)
		}
	}
}
