//go:build unix

package replicated_test

// Replicas as processes of their own, which are killed, stopped and started again. The parent
// asks them by lines on their input, and keeps the history.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/replicated"
)

// replicaProgram is the variable that makes this binary a replica: the address that it listens
// on, if it is given one, and its seeds, with commas.
const replicaProgram = "PLEACH_TEST_REPLICA"

func TestMain(m *testing.M) {
	if addresses, ok := os.LookupEnv(replicaProgram); ok {
		listen, seeds, _ := strings.Cut(addresses, ",")
		if err := runReplica(listen, strings.FieldsFunc(seeds, func(r rune) bool { return r == ',' })); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// line is a question, or the answer to it.
type line struct {
	ID           int
	Key, Command string
	Value, Err   string
}

// runReplica prints its address, and then answers lines until its input ends.
func runReplica(listen string, seeds []string) error {
	ctx := context.Background()
	table := registers{}
	r, err := replicated.Join(ctx, replicated.Config{
		Group: pleach.Config{
			Listen: listen, Recovery: pleach.Recovery{Rejoin: true},
			Detection: pleach.Detection{SuspicionTimeout: 700 * time.Millisecond},
		},
		Machines: map[string]replicated.Machine{"table": table},
	}, seeds...)
	if err != nil {
		return err
	}
	if err := r.Read(ctx, func() {}); err != nil {
		return err
	}
	fmt.Println(r.Group().Self().Address)
	var mu sync.Mutex
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var l line
		if in.Decode(&l) != nil {
			return r.Abort()
		}
		go func() {
			o := (&replica{r, table}).do(ctx, time.Now(), 0, input{l.Key, l.Command}).Output.(output)
			l.Value = o.value
			if o.unknown {
				l.Err = "unknown"
			}
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(&l)
		}()
	}
}

// child is a replica as its parent sees it.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	address string
	mu      sync.Mutex
	waiting map[int]chan line // nil: its output has ended
	next    int
}

// startChild starts a replica on this host.
func startChild(t *testing.T, seeds ...string) *child {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0]), "", seeds...)
}

// startCommand starts a replica by a command that runs this binary.
func startCommand(t *testing.T, cmd *exec.Cmd, listen string, seeds ...string) *child {
	t.Helper()
	c := &child{cmd: cmd, waiting: make(map[int]chan line)}
	c.cmd.Env = append(os.Environ(), replicaProgram+"="+strings.Join(append([]string{listen}, seeds...), ","))
	c.cmd.Stderr = os.Stderr
	var err error
	c.in, err = c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); reading.Wait(); _ = c.cmd.Wait() })
	out := bufio.NewReader(pipe)
	first, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.address = strings.TrimSpace(first)
	reading.Go(func() { c.read(json.NewDecoder(out)) })
	return c
}

// read hands answers to those that wait, until the child is dead.
func (c *child) read(out *json.Decoder) {
	for {
		var l line
		err := out.Decode(&l)
		c.mu.Lock()
		if err != nil {
			for _, w := range c.waiting {
				w <- line{Err: "dead"}
			}
			c.waiting = nil
			c.mu.Unlock()
			return
		}
		c.waiting[l.ID] <- l
		delete(c.waiting, l.ID)
		c.mu.Unlock()
	}
}

// ask does an operation at a child. It reports false if the child is dead.
func (c *child) ask(ctx context.Context, began time.Time, client int, in input) (porcupine.Operation, bool) {
	answer := make(chan line, 1)
	o := porcupine.Operation{
		ClientId: client, Input: in, Call: int64(time.Since(began)), Output: output{unknown: true},
		Return: int64(time.Hour),
	}
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return o, false
	}
	c.next++
	id := c.next
	c.waiting[id] = answer
	_ = json.NewEncoder(c.in).Encode(&line{ID: id, Key: in.key, Command: in.command})
	c.mu.Unlock()
	select {
	case l := <-answer:
		if l.Err == "" {
			o.Output, o.Return = output{value: l.Value}, int64(time.Since(began))
		}
		return o, l.Err == ""
	case <-ctx.Done():
		return o, false
	}
}

// load has clients do operations at children, and keeps the history.
type load struct {
	began   time.Time
	ctx     context.Context
	stop    context.CancelFunc
	clients sync.WaitGroup
	mu      sync.Mutex
	history []porcupine.Operation
}

func newLoad(t *testing.T) *load {
	l := &load{began: time.Now()}
	l.ctx, l.stop = context.WithCancel(t.Context())
	return l
}

// add adds a client of a child, which ends with the child.
func (l *load) add(c *child, number int) {
	l.clients.Go(func() {
		rng := rand.New(rand.NewPCG(2, uint64(number)))
		pace := time.Tick(5 * time.Millisecond)
		for n, alive := 0, true; alive && l.ctx.Err() == nil; n++ {
			var o porcupine.Operation
			o, alive = c.ask(l.ctx, l.began, number, inputAtRandom(rng, number, n))
			l.mu.Lock()
			l.history = append(l.history, o)
			l.mu.Unlock()
			<-pace
		}
	})
}

// more waits until the clients have done so many operations more.
func (l *load) more(t *testing.T, n int) {
	t.Helper()
	awaitMore(t, &l.mu, &l.history, n)
}

// finish waits until all children answer, and checks the history. One that has just joined again does
// not know what has become of an operation.
func (l *load) finish(t *testing.T, children []*child) {
	t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	for i, c := range children {
		answers := func() bool {
			_, ok := c.ask(ctx, l.began, 100+i, input{key: "k0"})
			return ok
		}
		if !testutil.Within(patience, answers) {
			t.Errorf("child %d does not answer", i)
		}
	}
	l.stop()
	l.clients.Wait()
	checkHistory(t, l.history)
}

// Replicas are killed with SIGKILL and started again, and stopped for so long that the others
// remove them: they join again by themselves, and answer what they were asked before.
func TestProcessesAreLinearizableUnderKillsAndStops(t *testing.T) {
	children := []*child{startChild(t)}
	for range 4 {
		children = append(children, startChild(t, children[0].address))
	}
	l := newLoad(t)
	for i, c := range children {
		l.add(c, i)
	}
	for round := range testutil.Rounds.Or(2) {
		victim, stopped := children[0], children[1] // the leader, and the one after it
		l.more(t, 50)
		_ = stopped.cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(100 * time.Millisecond)
		_ = victim.cmd.Process.Kill()
		time.Sleep(1500 * time.Millisecond)
		_ = stopped.cmd.Process.Signal(syscall.SIGCONT)
		late := startChild(t, children[2].address)
		l.add(late, 5+round)
		children = append(children[2:], stopped, late)
	}
	l.more(t, 50)
	l.finish(t, children)
}
