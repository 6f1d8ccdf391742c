package security

// The table of docs/operate/security.md for clients of an agent: users of its host at the socket, clients
// of its loopback address with and without tokens, readers of metrics, and pages in a browser.

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	agentconfig "github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/agent/rights"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// use is a request that a client of an agent tries.
type use struct{ name, method, target string }

// uses are the columns of the table.
var uses = []use{
	{"probe", "GET", "/healthz"},
	{"metrics", "GET", "/metrics"},
	{"read", "GET", "/v1/status"},
	{"send", "POST", "/v1/broadcast?topic=t"},
	{"keys", "PUT", "/v1/kv/k"},
	{"locks", "POST", "/v1/locks/ACTOR?ttl=10s"},
	{"files", "POST", "/v1/files?dir=.&name=ACTOR"},
	{"operate", "PUT", "/v1/shards/s?partitions=1"},
	{"audit", "GET", "/v1/events?audit=true"},
	// The most that a client may have learned of the lock of another one is its fencing token.
	{"unlock for another", "DELETE", "/v1/locks/held-ACTOR?handle=TOKEN"},
	{"topic of agents", "POST", "/v1/broadcast?topic=pleach/shard/s"},
	{"internal key", "PUT", "/v1/kv/pleach/shards/s"},
}

// everything is what a client with all rights may do.
const everything = "pmrsklfoa"

// localActor is a client of an agent, and what it may do: the first letters of the columns.
type localActor struct {
	name         string
	at           listener
	uid, gid     int // at the socket; 0: the user of the agent
	token        string
	host, origin string // the headers
	may          string
}

// listener is where a client connects.
type listener int

const (
	atSocket listener = iota
	atAPI
	atMetrics
)

func (a *localActor) allows(use string) bool { return strings.Contains(a.may, use[:1]) }

// localSetting is an agent with its clients.
type localSetting struct {
	name   string
	rules  string // the rights-file; empty: none
	actors []localActor
}

// Users and groups, which need not have a name, and what clients know.
const (
	anotherUser = 65001
	firstUser   = 65010
	firstGroup  = 65100
	tokenFile   = "the token of token-file"
	otherSite   = "http://evil.example"
	otherHost   = "evil.example"
)

// localTable is the table of clients of agents.
func localTable() []localSetting {
	without := localSetting{name: "agent without rights-file", actors: []localActor{
		{name: "the agent's user", may: everything},
		{name: "user of the agent's group", uid: anotherUser, gid: os.Getegid(), may: everything},
		{name: "another user", uid: anotherUser, gid: anotherUser},
		{name: "API client", at: atAPI, may: "p"},
		{name: "API client with a wrong token", at: atAPI, token: "guess", may: "p"},
		{name: "API client with the token", at: atAPI, token: tokenFile, may: everything},
		{name: "page of another site with the token", at: atAPI, token: tokenFile, origin: otherSite, may: "pmra"},
		{name: "page of another host name with the token", at: atAPI, token: tokenFile, host: otherHost},
		{name: "reader of metrics", at: atMetrics, may: "pm"},
		{name: "reader of metrics with the token", at: atMetrics, token: tokenFile, may: "pm"},
		{name: "page of another host name at metrics", at: atMetrics, host: otherHost},
	}}
	hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("a token that is in the file as its hash")))
	with := localSetting{name: "agent with rights-file", rules: "token hashed " + hash + " = all\n", actors: []localActor{
		{name: "the agent's user", may: everything},
		{name: "another user", uid: anotherUser, gid: anotherUser, may: "p"},
		{name: "another user with the token", uid: anotherUser, gid: anotherUser, token: tokenFile, may: everything},
		{name: "API client", at: atAPI, may: "p"},
		{name: "API client with a wrong token", at: atAPI, token: "guess", may: "p"},
		{name: "API client with the hash of a token", at: atAPI, token: hash, may: "p"},
		{name: "API client with the token", at: atAPI, token: tokenFile, may: everything},
		{name: "reader of metrics", at: atMetrics, may: "pm"},
	}}
	for i, r := range []struct {
		right rights.Right
		may   string
	}{
		{rights.Read, "pmr"},
		{rights.Send, "ps"},
		{rights.Keys, "pk"},
		{rights.Locks, "pl"},
		{rights.Files, "pf"},
		{rights.Operate, "po"},
	} {
		token := fmt.Sprintf("the-token-for-%v", r.right)
		with.rules += fmt.Sprintf("token t%d %s = %v\nuser %d = %v\ngroup %d = %v\n", i, token, r.right, firstUser+i, r.right,
			firstGroup+i, r.right)
		with.actors = append(with.actors,
			localActor{name: fmt.Sprintf("user with the right %v", r.right), uid: firstUser + i, gid: anotherUser, may: r.may},
			localActor{name: fmt.Sprintf("group with the right %v", r.right), uid: anotherUser, gid: firstGroup + i, may: r.may},
			localActor{name: fmt.Sprintf("token with the right %v", r.right), at: atAPI, token: token, may: r.may},
		)
	}
	return []localSetting{without, with}
}

// localCells returns the cells of the table.
func localCells() (cells []cell) {
	for _, s := range localTable() {
		for i := range s.actors {
			for _, u := range uses {
				cells = append(cells, cell{s.name + "/" + s.actors[i].name + "/" + u.name, s.actors[i].allows(u.name)})
			}
		}
	}
	return cells
}

func TestSecurityLocalTable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be other users")
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, s := range localTable() {
		all.Go(func() { t.Run(s.name, s.test) })
	}
}

// test tries all clients of an agent.
func (s *localSetting) test(t *testing.T) {
	h := s.begin(context.Background(), t)
	h.awaitLocks(t)
	var all sync.WaitGroup
	defer all.Wait()
	for _, a := range s.actors {
		all.Go(func() {
			t.Run(a.name, func(t *testing.T) {
				for _, u := range uses {
					may := a.allows(u.name)
					if planted() && may {
						continue
					}
					t.Run(u.name, func(t *testing.T) {
						if err := h.try(t, &a, u); (err == nil) != may {
							t.Errorf("allowed: %v, want %v: %v", err == nil, may, err)
						}
					})
				}
			})
		})
	}
}

// localHost is an agent that is tried, and where it listens.
type localHost struct {
	socket, api, metrics string
	locks                *client.Client // of the user that holds locks
	ended                <-chan struct{}
}

// begin starts an agent, which ends with ctx or the test.
func (s *localSetting) begin(ctx context.Context, t *testing.T) *localHost {
	t.Helper()
	dir, err := os.MkdirTemp("", "pleach-security-*") // other users may enter it, unlike that of the test
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	addresses := testutil.FreeAddresses(t, 3)
	h := &localHost{
		socket: filepath.Join(dir, "s"),
		api:    "127.0.0.1" + addresses[1][strings.LastIndexByte(addresses[1], ':'):], metrics: addresses[2],
	}
	h.locks = client.Socket(h.socket)
	private := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(private, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := fmt.Sprintf(
		"group: %s\nlisten: %s\nid: a\nexpect: 1\nsocket: %s\napi: %s\ntoken-file: %s\nmetrics-listen: %s\nfile-dirs: [%s]\n",
		group, addresses[0], h.socket, h.api, file("token", tokenFile+"\n"), h.metrics, t.TempDir())
	if s.rules != "" {
		text += "rights-file: " + file("rights", s.rules) + "\n"
	}
	path := file("agent.yaml", text)
	joined, ended := make(chan struct{}), make(chan struct{})
	var failed error
	h.ended = ended
	ctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		failed = agent.Run(ctx, agent.Options{
			Load:    func() (*agentconfig.Config, error) { return agentconfig.Load(path, nil, nil) },
			Version: "v1", Logger: slog.New(slog.DiscardHandler),
			Joined: func(*pleach.Group) { close(joined) },
		})
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case <-joined:
	case <-ended:
		t.Fatal(failed)
	}
	return h
}

// awaitLocks waits until there are locks: a table that has just begun gives none before its TTL is over.
func (h *localHost) awaitLocks(t *testing.T) {
	t.Helper()
	l, err := h.locks.Lock(t.Context(), client.LockRequest{
		Name: "ready", TTL: api.DefaultTTL, Wait: true,
		Timeout: time.Minute,
	})
	if err == nil {
		err = h.locks.Unlock(t.Context(), &l, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// try makes a request of a client.
func (h *localHost) try(t *testing.T, a *localActor, u use) error {
	t.Helper()
	name := strings.ReplaceAll(a.name, " ", "-")
	target := strings.ReplaceAll(u.target, "ACTOR", name)
	if strings.Contains(target, "TOKEN") {
		held, err := h.locks.Lock(t.Context(), client.LockRequest{
			Name: "held-" + name, TTL: api.DefaultTTL,
			Timeout: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		target = strings.ReplaceAll(target, "TOKEN", fmt.Sprint(held.Token))
		defer func() { _ = h.locks.Unlock(context.WithoutCancel(t.Context()), &held, time.Minute) }()
	}
	r, err := http.NewRequestWithContext(t.Context(), u.method, "http://127.0.0.1"+target, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if u.method == "GET" || strings.Contains(target, "/locks/") || strings.Contains(target, "/shards/") {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	if a.origin != "" {
		r.Header.Set("Origin", a.origin)
	}
	if a.host != "" {
		r.Host = a.host
	}
	dial := func(context.Context, string, string) (net.Conn, error) {
		switch a.at {
		case atAPI:
			return net.Dial("tcp", h.api)
		case atMetrics:
			return net.Dial("tcp", h.metrics)
		}
		return dialAs(a.uid, a.gid, h.socket)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}, Timeout: time.Minute}
	response, err := c.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		b, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s: %s", response.Status, b)
	}
	return nil
}

// dialAs connects to a socket as another user, which only the thread of this goroutine becomes. The
// thread ends with the goroutine, because it is locked to it.
func dialAs(uid, gid int, path string) (c net.Conn, err error) {
	if uid == 0 {
		return net.Dial("unix", path)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for _, call := range []struct{ number, a, b, c int }{
			{syscall.SYS_SETGROUPS, 0, 0, 0}, {syscall.SYS_SETRESGID, gid, gid, gid}, {syscall.SYS_SETRESUID, uid, uid, uid},
		} {
			if _, _, errno := syscall.RawSyscall(uintptr(call.number), uintptr(call.a), uintptr(call.b),
				uintptr(call.c)); errno != 0 {
				err = errno
				return
			}
		}
		c, err = net.Dial("unix", path)
	}()
	<-done
	return c, err
}
