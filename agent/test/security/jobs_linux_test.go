package security

// Another user of the host against a job of pleach run: it sees the ports of the ranks and
// their arguments, and must get no further.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/launch"
	"github.com/pleach-go/pleach/agent/ps"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/machine/member"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

const (
	rankRole   = "PLEACH_SECURITY_RANK"
	nobodyRole = "PLEACH_SECURITY_NOBODY"
	nobody     = 65534
	jobSize    = 6
)

func init() {
	testutil.PlayRole(rankRole, rank.run)
	testutil.PlayRole(nobodyRole, otherUser.run)
}

// rank is a process of the job. It makes calls until the standard input of rank 0 ends, and
// prints what it gets beside them.
type rank struct {
	Seconds int  // after which it gives up
	Idle    bool // it makes no call, so that some ranks are not connected to each other
}

func (r rank) run() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.Seconds)*time.Second)
	defer cancel()
	w, err := pleach.NewWorld(ctx, pleach.Config{})
	if err != nil {
		panic(err)
	}
	go func() {
		for m := range w.Group().Messages(ctx) {
			fmt.Printf("message from %d: %q\n", m.From, m.Data)
		}
	}()
	if r.Idle {
		fmt.Println("runs")
		<-ctx.Done()
		return
	}
	over := make(chan struct{})
	if w.Rank() == 0 {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			close(over)
		}()
	}
	pace := time.Tick(time.Millisecond)
	for calls := 0; ; calls++ {
		mine := []int{1, 0}
		select {
		case <-over:
			mine[1] = 1
		default:
		}
		sum, err := collective.Allreduce(ctx, w, mine, collective.Sum[int]())
		if err != nil || sum[0] != jobSize {
			fmt.Println("disturbed:", sum, err)
			os.Exit(1)
		}
		if calls == 0 {
			fmt.Println("runs")
		}
		if sum[1] > 0 {
			break
		}
		<-pace
	}
	// A call that needs connections which were not there before.
	if _, err := collective.Alltoall(ctx, w, slices.Repeat([][]int{{1}}, jobSize)); err != nil {
		fmt.Println("disturbed:", err)
		os.Exit(1)
	}
	fmt.Println("ends with", w.Group().Size(), w.Finalize(ctx))
}

// otherUser is a process of another user. It prints what it was able to do.
type otherUser struct {
	Group     string // more than it can see
	Addresses []string
	PIDs      []int
}

func (o otherUser) run() {
	for _, pid := range o.PIDs {
		o.read(pid)
	}
	for to := range o.Addresses {
		for from := range o.Addresses {
			o.claim(from, to)
		}
	}
	for _, address := range o.Addresses {
		o.ask(address)
	}
	var visits atomic.Int64
	for to := range o.Addresses {
		go func() {
			for {
				o.visit(to)
				visits.Add(1)
			}
		}()
	}
	if !testutil.Within(time.Minute, func() bool { return visits.Load() >= floodVisits }) {
		panic(fmt.Sprint("only ", visits.Load(), " visits in a minute"))
	}
	fmt.Println("ends") // and goes on
	select {}
}

// floodVisits is how often another user visits before the ranks connect to each other: far
// more than a host may make in vain.
const floodVisits = 1000 * jobSize

// visit says a Hello that is worth nothing, from the address that the ranks have, too.
func (o *otherUser) visit(to int) {
	c, err := net.Dial("tcp", o.Addresses[to])
	if err != nil {
		return
	}
	_, _ = c.Write(wire.AppendFrame(nil, wire.AppendHello(nil, &wire.Hello{Group: o.Group, Attempt: math.MaxUint64})))
	_ = c.(*net.TCPConn).SetLinger(0) // it leaves no ports behind
	_ = c.Close()
}

// read looks at what the kernel shows of a process.
func (o *otherUser) read(pid int) {
	proc := fmt.Sprintf("/proc/%d/", pid)
	for _, name := range []string{"environ", "mem", "maps", "fd/3"} {
		f, err := os.Open(proc + name)
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			_ = f.Close()
		}
		if !errors.Is(err, fs.ErrPermission) {
			fmt.Printf("done: read %s%s (%v)\n", proc, name, err)
		}
	}
	if b, err := os.ReadFile(proc + "cmdline"); err != nil || bytes.Contains(b, []byte("PLEACH_")) {
		fmt.Printf("done: read arguments %q (%v)\n", b, err)
	}
}

// ask makes every request that needs no place in the view.
func (o *otherUser) ask(address string) {
	c := pleach.Config{Group: o.Group}
	for what, ask := range map[string]func(context.Context) error{
		"inspect":       func(ctx context.Context) error { _, err := pleach.Inspect(ctx, c, address); return err },
		"force a view":  func(ctx context.Context) error { _, err := pleach.ForceView(ctx, c, address); return err },
		"raise version": func(ctx context.Context) error { _, err := pleach.RaiseVersion(ctx, c, address); return err },
		"join":          func(ctx context.Context) error { _, err := pleach.Join(ctx, c, address); return err },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		if err := ask(ctx); err == nil {
			fmt.Println("done:", what)
		}
		cancel()
	}
}

// claim says Hello as one rank to another one, with the incarnation that all begin with.
func (o *otherUser) claim(from, to int) {
	c, err := net.Dial("tcp", o.Addresses[to])
	if err != nil {
		fmt.Println("cannot dial:", err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	answer, err := sayHello(c, &wire.Hello{
		Group: o.Group, From: protocol.Rank(from), To: protocol.Rank(to),
		Incarnation: member.FirstIncarnation, Attempt: math.MaxUint64,
	})
	if err == nil && answer.Status == wire.Accepted {
		fmt.Printf("done: speak as rank %d to rank %d\n", from, to)
	}
}

// startAs starts a role of the test binary as another user, who may not enter the directory
// that the binary is in.
func startAs(t *testing.T, uid uint32, variable string, config []byte) *testutil.Process {
	t.Helper()
	folder, err := os.MkdirTemp("", "pleach-security-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	program := filepath.Join(folder, "program")
	binary, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.Chmod(folder, 0o755), os.WriteFile(program, binary, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return testutil.StartCommand(t, cmd, variable, string(config))
}

// Another user reads nothing of a job, injects nothing, and silences no rank. Without the
// secret it does: the same attempts succeed. To speak as a rank, it has to come before that rank.
func TestSecurityOtherUserAndJob(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	t.Run("secret", func(t *testing.T) {
		if done := attackJob(t, rankRole+`={"Seconds": 60}`); len(done) > 0 {
			t.Errorf("another user has done: %q", done)
		}
	})
	t.Run("none", func(t *testing.T) {
		if done := attackJob(t, rankRole+`={"Seconds": 4, "Idle": true}`, "PLEACH_SECRET="); !slices.Contains(done,
			"inspect") ||
			!slices.ContainsFunc(done, func(what string) bool { return strings.HasPrefix(what, "speak as") }) {
			t.Errorf("the attempts do not work where nothing prevents them: %q", done)
		}
	})
}

// attackJob runs a job, lets another user at it, and returns what that one was able to do.
func attackJob(t *testing.T, env ...string) (done []string) {
	t.Helper()
	var printed testutil.Lines
	output := launch.Stream{Writer: lineWriter{&printed}}
	input, end := io.Pipe()
	result := make(chan *launch.Report, 1)
	go func() {
		r, err := launch.Run(launch.Job{
			Size: jobSize, Program: os.Args[0], Args: []string{"rank"}, Env: env, Grace: time.Second,
			Stdin: input, Output: &launch.Output{Stdout: output, Stderr: output},
		})
		if err != nil {
			t.Error(err)
		}
		result <- r
	}()
	printed.Wait(t, "runs")
	job := ownJob(t)
	config := fmt.Sprintf(`{"Group": %q, "Addresses": ["%s"], "PIDs": [%s]}`, job.Group,
		strings.Join(job.Addresses, `","`),
		strings.Trim(strings.ReplaceAll(fmt.Sprint(job.PIDs), " ", ","), "[]"))
	attacker := startAs(t, nobody, nobodyRole, []byte(config))
	attacker.Wait(t, "ends")
	for _, line := range attacker.All() {
		if what, ok := strings.CutPrefix(line, "done: "); ok {
			done = append(done, what)
		} else if line != "ends" {
			t.Error(line)
		}
	}
	// The job's own user is let in although its host has had too many visits in vain: pleach ps asks.
	for _, address := range job.Addresses {
		if len(done) > 0 {
			break // the job is no longer what it was
		}
		if _, err := pleach.Inspect(timed(t, 5*time.Second),
			pleach.Config{Group: job.Group, Security: pleach.Security{Secret: job.Secret}}, address); err != nil {
			t.Errorf("the user of the job is turned away: %v", err)
		}
	}
	_ = end.Close()
	report := <-result
	ends := 0
	for _, line := range printed.All() {
		if line == fmt.Sprintf("ends with %d <nil>", jobSize) {
			ends++
		}
		if strings.HasPrefix(line, "message") && len(done) == 0 {
			t.Error(line)
		}
	}
	if len(done) == 0 && (report == nil || ends != jobSize) {
		t.Errorf("the job is not as it was: %q", printed.All())
	}
	t.Logf("another user has tried to read %d processes, to ask and to speak as %d ranks, and made %d visits in vain; done: %q", len(job.PIDs), jobSize, floodVisits, done)
	return done
}

// ownJob returns the job that this test has started.
func ownJob(t *testing.T) *ps.Job {
	t.Helper()
	for _, j := range ps.FindJobs("/proc", "") {
		if slices.ContainsFunc(j.PIDs, isChild) && len(j.PIDs) == jobSize {
			return j
		}
	}
	t.Fatal("the job is not found")
	return nil
}

// isChild reports whether this process has started another one.
func isChild(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(b, []byte(") "))
	fields := bytes.Fields(rest)
	return len(fields) > 1 && string(fields[1]) == strconv.Itoa(os.Getpid())
}

// lineWriter adds what is written to lines: whole ones, as launch writes them.
type lineWriter struct{ to *testutil.Lines }

func (w lineWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		w.to.Add(strings.TrimSuffix(line, "\n"))
	}
	return len(b), nil
}
