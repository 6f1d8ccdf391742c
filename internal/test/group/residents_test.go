package group_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach/internal/test/testutil"
)

// residents are a group of them, as the test sees it. See residentConfig for what
// they tell.
type residents struct {
	t   *testing.T
	all []*observed
}

// observed is one resident.
type observed struct {
	who   int // its place among the residents
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // closed when its output has ended

	mu     sync.Mutex
	ranks  []int // at each beginning
	spans  []span
	sent   []int // numbers of its messages
	failed []string
	over   []string
	have   []arrival
	quiet  bool
	late   time.Duration // the longest the system has let it wait
	err    string
	log    []string // all it has said but for messages
}

// span is a membership from one beginning to the next: the views it was seen in.
type span []seen

// seen is a view as a resident has told of it.
type seen struct {
	number  uint64
	members []int
	at      time.Time
}

// arrival is a message as a resident has told of it.
type arrival struct {
	view         uint64
	root, number int
	sent         int64 // nanoseconds
}

// startResidents starts them; they wait for the word to join.
func startResidents(t *testing.T, n int, command func(who int) *exec.Cmd,
	config func(who int) residentConfig,
) *residents {
	t.Helper()
	rs := &residents{t: t}
	for who := range n {
		c := config(who)
		text, err := json.Marshal(memberConfig{Resident: &c})
		if err != nil {
			t.Fatal(err)
		}
		rs.all = append(rs.all, startResident(t, who, command(who), string(text)))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, o := range rs.all {
				o.show(t)
			}
		}
	})
	return rs
}

func startResident(t *testing.T, who int, cmd *exec.Cmd, config string) *observed {
	t.Helper()
	cmd.Env = append(os.Environ(), memberProgram+"="+config)
	cmd.Stderr = os.Stderr
	o := &observed{who: who, cmd: cmd, ended: make(chan struct{})}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.stdin = stdin
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			o.observe(lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-o.ended
		_ = cmd.Wait()
	})
	return o
}

// observe notes what a resident tells.
func (o *observed) observe(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "have":
		var a arrival
		_, _ = fmt.Sscan(rest, &a.view, &a.root, &a.number, &a.sent)
		o.have = append(o.have, a)
		return
	case "sent":
		var number int
		_, _ = fmt.Sscan(rest, &number)
		o.sent = append(o.sent, number)
		return
	case "begin":
		var rank int
		_, _ = fmt.Sscan(rest, &rank)
		o.ranks, o.spans = append(o.ranks, rank), append(o.spans, nil)
	case "view":
		v := seen{at: time.Now()}
		number, ranks, _ := strings.Cut(rest, " ")
		_, _ = fmt.Sscan(number, &v.number)
		for _, text := range strings.Split(ranks, ",") {
			var rank int
			_, _ = fmt.Sscan(text, &rank)
			v.members = append(v.members, rank)
		}
		last := &o.spans[len(o.spans)-1]
		*last = append(*last, v)
	case "failed":
		o.failed = append(o.failed, rest)
	case "over":
		o.over = append(o.over, rest)
	case "quiet":
		o.quiet = true
	case "late":
		late, _ := time.ParseDuration(rest)
		o.late = max(o.late, late)
	case "error":
		o.err = rest
	}
	o.log = append(o.log, time.Now().Format("05.000 ")+line)
}

// show shows the latest of what a resident has said.
func (o *observed) show(t *testing.T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t.Logf("resident %d: %d sent, %d messages had; the latest:\n\t%s",
		o.who, len(o.sent), len(o.have), strings.Join(o.log[max(0, len(o.log)-60):], "\n\t"))
}

// now is the view a resident was last seen in.
func (o *observed) now() seen {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.spans) == 0 || len(o.spans[len(o.spans)-1]) == 0 {
		return seen{}
	}
	s := o.spans[len(o.spans)-1]
	return s[len(s)-1]
}

// latest is the longest the system has let a resident wait since the last call.
func (o *observed) latest() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := o.late
	o.late = 0
	return late
}

// troubles are why a resident was no member any more, and why broadcasts failed.
func (o *observed) troubles() (over, failed []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.over), slices.Clone(o.failed)
}

// lacks names a root of whom a resident has no message of a view or a later one,
// or returns -1.
func (o *observed) lacks(view uint64, roots []int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, root := range roots {
		if root != o.who && !slices.ContainsFunc(o.have, func(a arrival) bool { return a.root == root && a.view >= view }) {
			return root
		}
	}
	return -1
}

// tell says a line to all.
func (rs *residents) tell(line string) {
	rs.t.Helper()
	for _, o := range rs.all {
		if _, err := io.WriteString(o.stdin, line+"\n"); err != nil {
			rs.t.Fatalf("resident %d: %v", o.who, err)
		}
	}
}

// signal sends one a signal.
func (rs *residents) signal(who int, s syscall.Signal) {
	rs.t.Helper()
	if err := rs.all[who].cmd.Process.Signal(s); err != nil {
		rs.t.Fatal(err)
	}
}

// await waits until nothing is missing any more for some residents, and returns
// how long that took.
func (rs *residents) await(patience time.Duration, what string, some []int,
	missing func(*observed) string,
) time.Duration {
	rs.t.Helper()
	start, lacking := time.Now(), ""
	complete := testutil.Within(patience, func() bool {
		lacking = ""
		for _, who := range some {
			if text := missing(rs.all[who]); text != "" {
				lacking = fmt.Sprintf("resident %d: %s", who, text)
			}
			rs.alive(who)
		}
		return lacking == ""
	})
	if !complete {
		rs.t.Fatalf("%s: after %v, %s", what, patience, lacking)
	}
	return time.Since(start)
}

// alive fails the test if a resident has given up.
func (rs *residents) alive(who int) {
	rs.t.Helper()
	o := rs.all[who]
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != "" {
		rs.t.Fatalf("resident %d: %s", who, o.err)
	}
}

// awaitMembers waits until some residents are in one view of just these members.
func (rs *residents) awaitMembers(patience time.Duration, what string,
	some, members []int,
) (view uint64, took time.Duration) {
	rs.t.Helper()
	took = rs.await(patience, what, some, func(o *observed) string {
		v, first := o.now(), rs.all[some[0]].now()
		if v.number != first.number || !slices.Equal(v.members, members) {
			return fmt.Sprintf("is in view %d of %v", v.number, v.members)
		}
		return ""
	})
	return rs.all[some[0]].now().number, took
}

// awaitTalk waits until some residents have messages of each other, of a view or
// a later one.
func (rs *residents) awaitTalk(what string, some []int, view uint64) {
	rs.t.Helper()
	rs.await(20*time.Second, what, some, func(o *observed) string {
		if root := o.lacks(view, some); root >= 0 {
			return fmt.Sprintf("has no message of root %d since view %d", root, view)
		}
		return ""
	})
}

// hush has all be quiet, and waits until all have the last message of all. Who
// begins anew meanwhile is not waited for.
func (rs *residents) hush(everybody []int) {
	rs.t.Helper()
	lives := make([]int, len(rs.all))
	for who, o := range rs.all {
		lives[who] = o.lives()
	}
	rs.tell("quiet")
	rs.await(20*time.Second, "quiet", everybody, func(o *observed) string {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !o.quiet {
			return "is not quiet"
		}
		return ""
	})
	rs.await(20*time.Second, "the last messages", everybody, func(o *observed) string {
		for root, other := range rs.all {
			last := other.last()
			if o.lives() == lives[o.who] && other.lives() == lives[root] && !o.has(root, last) {
				return fmt.Sprintf("lacks message %d of root %d", last, root)
			}
		}
		return ""
	})
}

// last is the number of the last message a resident has sent, or 0.
func (o *observed) last() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sent) == 0 {
		return 0
	}
	return o.sent[len(o.sent)-1]
}

// broadcasts is how many messages a resident has sent.
func (o *observed) broadcasts() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sent)
}

// lives is how often a resident has begun.
func (o *observed) lives() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ranks)
}

// has reports whether a resident has a message, or has sent it.
func (o *observed) has(root, number int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return root == o.who ||
		slices.ContainsFunc(o.have, func(a arrival) bool { return a.root == root && a.number == number })
}
