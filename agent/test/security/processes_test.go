package security

// Revocation, eviction and rotation of the secret with members that are processes, and are killed as
// such. revoke_test.go has the same with members in one process, and more of what may go wrong.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

const memberRole = "PLEACH_SECURITY_MEMBER"

func init() { testutil.PlayRole(memberRole, memberProcess.run) }

// memberProcess is a member that broadcasts and receives until it is killed. It prints each view, what it
// misses, and how it ends.
type memberProcess struct {
	ID, Seed             string
	SecretFile, DenyFile string
	TLS                  *testutil.Credentials
}

// order is what the test asks of a member: to stop sending, or to wait for so many messages of others.
type order struct {
	Stop   bool
	Expect map[string]int64
}

func (p memberProcess) run() {
	c := pleach.Config{Group: group, ID: p.ID, Listen: "127.0.0.1:0", Security: pleach.Security{
		SecretFile: p.SecretFile,
		DenyFile:   p.DenyFile,
	}}
	if p.TLS != nil {
		var err error
		c.Security.TLS, err = p.TLS.TLS()
		if err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var g *pleach.Group
	var err error
	if p.Seed == "" {
		g, err = pleach.Create(ctx, c)
	} else {
		g, err = pleach.Join(ctx, c, p.Seed)
	}
	cancel()
	if err != nil {
		fmt.Println("locked out:", err)
		return
	}
	m := &runningMember{group: g, got: make(map[string]int64)}
	fmt.Println("address", g.Self().Address)
	go m.send(p.ID)
	go m.receive()
	go m.obey()
	known := make(map[string]bool)
	for v := range g.Views(context.Background()) {
		var ids []string
		for _, other := range v.Members() {
			ids = append(ids, other.ID)
		}
		slices.Sort(ids)
		for _, h := range g.Status().History {
			for _, change := range h.Changes {
				if gone := fmt.Sprint(h.Number, change.ID); change.Gone() && !known[gone] {
					known[gone] = true
					fmt.Printf("gone %d %s %s\n", h.Number, change.ID, change.Cause)
				}
			}
		}
		fmt.Printf("view %s\n", strings.Join(ids, ","))
		if v.Err != nil {
			fmt.Println("fault:", v.Err)
		}
	}
	fmt.Println("ended", g.Err())
	select {}
}

// runningMember counts the messages of the others.
type runningMember struct {
	group   *pleach.Group
	mu      sync.Mutex
	got     map[string]int64 // the next number of each sender
	stopped bool
}

// send broadcasts numbers until the test says stop.
func (m *runningMember) send(id string) {
	pace := time.Tick(2 * time.Millisecond)
	for n := 0; ; n++ {
		m.mu.Lock()
		stopped := m.stopped
		m.mu.Unlock()
		if stopped {
			fmt.Println("sent", n)
			return
		}
		if err := m.group.Broadcast(context.Background(), fmt.Appendf(nil, "%s %d", id, n)); err != nil {
			return
		}
		<-pace
	}
}

func (m *runningMember) receive() {
	for message, err := range m.group.Messages(context.Background()) {
		var id string
		var n int64
		if err != nil {
			fmt.Println("fault:", err)
			continue
		}
		if _, err := fmt.Sscanf(string(message.Data), "%s %d", &id, &n); err != nil {
			fmt.Printf("fault: got %q\n", message.Data)
			continue
		}
		m.mu.Lock()
		if next, known := m.got[id]; known && n != next && n != 0 { // a sender that was killed begins with 0 again
			fmt.Println("fault: message", n, "of", id, "instead of", next)
		}
		m.got[id] = n + 1
		m.mu.Unlock()
	}
}

// obey reads orders.
func (m *runningMember) obey() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			panic(err)
		}
		m.mu.Lock()
		m.stopped = m.stopped || o.Stop
		m.mu.Unlock()
		if len(o.Expect) == 0 {
			continue
		}
		complete := func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			for id, n := range o.Expect {
				if m.got[id] < n {
					return false
				}
			}
			return true
		}
		if testutil.Within(time.Hour, complete) { // the test waits for less
			fmt.Println("complete")
		}
	}
}

// startMember starts a process, and waits until it is a member.
func startMember(t *testing.T, c memberProcess) (p *testutil.Process, address string) {
	t.Helper()
	p = testutil.StartRole(t, memberRole, c)
	address, _ = p.Wait(t, "address ")
	return p, address
}

// faults are the lines of a member that should not be.
func faults(p *testutil.Process) (all []string) {
	for _, line := range p.All() {
		if strings.HasPrefix(line, "fault") || strings.HasPrefix(line, "ended") || strings.HasPrefix(line, "locked out") {
			all = append(all, line)
		}
	}
	return all
}

// awaitView waits until the last view of a member has these members and no others.
func awaitView(t *testing.T, p *testutil.Process, ids ...string) {
	t.Helper()
	want := "view " + strings.Join(ids, ",")
	for ctx := timed(t, 60*time.Second); ; {
		views := slices.DeleteFunc(p.All(), func(line string) bool { return !strings.HasPrefix(line, "view ") })
		if len(views) > 0 && views[len(views)-1] == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no %s in %q", want, views)
		case <-time.After(time.Millisecond):
		}
	}
}

// A process that is evicted, or whose certificate or ID is denied, is out of all views, under load, and no
// other process is touched.
func TestSecurityRevokedProcesses(t *testing.T) {
	ca, deny := testutil.NewCA(t), filepath.Join(t.TempDir(), "deny")
	write(t, deny, "# nothing is denied\n")
	issue := func(id string, serial int64) *testutil.Credentials {
		c := ca.IssueNames(t, serialTemplate(t, id, serial))
		return &c
	}
	honest, ids, seed := []*testutil.Process(nil), []string{"a", "b", "c", "d"}, ""
	for i, id := range ids {
		p, address := startMember(t, memberProcess{ID: id, Seed: seed, DenyFile: deny, TLS: issue(id, int64(1+i))})
		honest = append(honest, p)
		if seed == "" {
			seed = address
		}
	}
	operator := pleach.Config{Group: group, Security: pleach.Security{TLS: uriTLS(t, ca, "pleach-operator/web")}}
	list, slowest := "", make(map[string]time.Duration)
	for round := range testutil.Rounds.Or(1) {
		for k, way := range []string{"evict", "serial", "id"} {
			id, serial := fmt.Sprintf("e%d-%d", round, k), int64(0x1000+3*round+k)
			own := issue(id, serial)
			evil, _ := startMember(t, memberProcess{ID: id, Seed: seed, TLS: own}) // it does not deny itself
			for _, p := range honest {
				awaitView(t, p, append(slices.Clone(ids), id)...)
			}
			from, want := time.Now(), pleach.CauseRevoked
			switch way {
			case "evict":
				want = pleach.CauseEvicted
				if _, err := pleach.Evict(timed(t, 20*time.Second), operator, seed, id); err != nil {
					t.Fatal(err)
				}
			case "serial":
				list += fmt.Sprintf("serial %x\n", serial)
				write(t, deny, list)
			case "id":
				list += "id " + id + "\n"
				write(t, deny, list)
			}
			for _, p := range honest {
				awaitView(t, p, ids...)
			}
			slowest[way] = max(slowest[way], time.Since(from))
			for i, p := range honest {
				if lines := p.All(); !slices.ContainsFunc(lines, func(line string) bool {
					return strings.HasPrefix(line, "gone ") && strings.HasSuffix(line, fmt.Sprintf(" %s %s", id, want))
				}) {
					t.Errorf("%s: %s does not say that %s is gone because it is %s", way, ids[i], id, want)
				}
				if all := faults(p); len(all) > 0 {
					t.Fatalf("%s: %s: %q", way, ids[i], all)
				}
			}
			if way == "evict" {
				evil.Wait(t, "ended ")
			} else { // nobody may talk to it, so it need not learn more than that it has no quorum
				c, err := own.TLS()
				if err != nil {
					t.Fatal(err)
				}
				awaitRefusal(t, c, seed)
				_, err = pleach.Join(timed(t, 10*time.Second),
					pleach.Config{Group: group, ID: id, Security: pleach.Security{TLS: c}}, seed)
				refused(t, way+": it joins", err)
			}
			evil.Kill()
		}
	}
	for way, took := range slowest {
		if testutil.Full.On() && took > 2*time.Second {
			t.Errorf("%s: out of all views after %v", way, took)
		}
	}
	t.Logf("%d times each: slowest %v", testutil.Rounds.Or(1), slowest)
}

// The secret is replaced under load, host by host, while processes are killed and started again in the
// middle: no message is lost between those that live, and nobody is locked out.
func TestSecuritySecretRotatesOfProcesses(t *testing.T) {
	secret := func(n int) string { return fmt.Sprintf("the secret number %4d", n) }
	ids, files, seeds := []string{"a", "b", "c", "d", "e"}, make([]string, 5), make([]string, 5)
	processes := make([]*testutil.Process, 5)
	for i, id := range ids {
		files[i] = filepath.Join(t.TempDir(), "secret")
		write(t, files[i], secret(0)+"\n")
		processes[i], seeds[i] = startMember(t, memberProcess{ID: id, Seed: seeds[0], SecretFile: files[i]})
	}
	stay, kills := processes[:3], 0
	rounds := testutil.Rounds.Or(1)
	for round := range rounds {
		old, next := secret(round), secret(round+1)
		for step, text := range []string{old + "\n" + next + "\n", next + "\n" + old + "\n", next + "\n"} {
			for k := range processes { // one host after the other
				write(t, files[k], text)
				if v := 3 + (round+step)%2; step < 2 && k == 2 {
					processes[v].Kill()
					kills++
					processes[v], seeds[v] = startMember(t, memberProcess{ID: ids[v], Seed: seeds[step], SecretFile: files[v]})
				}
			}
			for k := range processes {
				awaitSecretAt(t, ids[k], seeds[k], map[bool]string{true: next, false: old}[step < 2], step == 2)
				awaitSecretAt(t, ids[k], seeds[k], next, false)
			}
		}
	}
	sent := make(map[string]int64)
	for i, p := range stay {
		p.Write(order{Stop: true})
		var n int64
		text, _ := p.Wait(t, "sent ")
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
		sent[ids[i]] = n
	}
	for i, p := range stay {
		expect := make(map[string]int64)
		for id, n := range sent {
			if id != ids[i] {
				expect[id] = n
			}
		}
		p.Write(order{Expect: expect})
		p.Wait(t, "complete")
	}
	for i, p := range processes {
		awaitView(t, p, ids...)
		if all := faults(p); len(all) > 0 {
			t.Errorf("%s: %q", ids[i], all)
		}
	}
	t.Logf("%d rotations, %d processes killed: %v messages sent, lost 0", rounds, kills, sent)
}
