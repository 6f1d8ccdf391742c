package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/agent/api"
	"github.com/pleach-go/pleach/agent/client"
	"github.com/pleach-go/pleach/agent/config"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// testAgent is an agent in this process.
type testAgent struct {
	*client.Client
	file   string
	reload chan struct{}
	log    *testutil.LogBuffer
	stop   context.CancelFunc
	ended  chan error
}

// start starts an agent with the text of its file, and waits until it is a member.
func start(t *testing.T, text string) *testAgent {
	t.Helper()
	a, joined := begin(t, text)
	select {
	case <-joined:
	case err := <-a.ended:
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("not a member after a minute")
	}
	return a
}

func begin(t *testing.T, text string) (*testAgent, <-chan struct{}) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	a := &testAgent{
		Client: client.Socket(socket), file: filepath.Join(dir, "agent.yaml"),
		reload: make(chan struct{}), log: &testutil.LogBuffer{}, ended: make(chan error, 1),
	}
	a.write(t, text)
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	joined, started := make(chan struct{}), make(chan struct{})
	go func() {
		a.ended <- Run(ctx, Options{
			Load:   func() (*config.Config, error) { return config.Load(a.file, []string{"PLEACH_SOCKET=" + socket}, nil) },
			Reload: a.reload, Version: "v1", Logger: a.log.Logger(),
			Started: func(*config.Config) { close(started) },
			Joined:  func(*pleach.Group) { close(joined) },
		})
		close(a.ended)
	}()
	t.Cleanup(func() {
		stop()
		<-a.ended
	})
	select {
	case <-started:
	case err := <-a.ended:
		t.Fatal(err)
	}
	return a, joined
}

func (a *testAgent) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(a.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startAll starts agents alike, with ids a, b, c….
func startAll(t *testing.T, n int, more string) (agents []*testAgent) {
	t.Helper()
	addresses := testutil.FreeAddresses(t, n)
	var joined []<-chan struct{}
	for i, address := range addresses {
		a, j := begin(t, fmt.Sprintf("listen: %s\nid: %c\nseeds: [%s]\nexpect: %d\n%s", address, 'a'+i,
			strings.Join(addresses, ", "), n, more))
		agents, joined = append(agents, a), append(joined, j)
	}
	for i, j := range joined {
		select {
		case <-j:
		case err := <-agents[i].ended:
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatal("not a member after a minute")
		}
	}
	return agents
}

// subscribe returns the texts of events, and the function that cuts the subscriber.
func (a *testAgent) subscribe(t *testing.T, s client.Subscription) (<-chan client.Event, func()) {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	events, subscribed := make(chan client.Event, 1000), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- a.Messages(ctx, s, func() { close(subscribed) }, func(e client.Event) error { events <- e; return nil })
	}()
	select {
	case <-subscribed:
	case err := <-ended:
		t.Fatal(err)
	}
	return events, cut
}

func next(t *testing.T, events <-chan client.Event) client.Event {
	t.Helper()
	select {
	case e := <-events:
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event after a minute")
		return client.Event{}
	}
}

func TestAgents(t *testing.T) {
	agents := startAll(t, 3,
		"handlers:\n  - {query: sum, run: 'read x; echo $((x + 1))'}\n  - {query: broken, run: exit 7}\n")
	a, b := agents[0], agents[1]
	ctx := t.Context()

	// All tell their version. The first view cannot have it yet, and that is no event.
	testutil.Eventually(t, "three versions", func() bool {
		m, err := a.Members(ctx)
		return err == nil && !slices.ContainsFunc(m.Members, func(m api.Member) bool { return m.Meta != "pleach=v1" })
	})
	if v, err := a.Views(ctx); err != nil ||
		slices.ContainsFunc(v.Views, func(v pleach.ViewChange) bool { return len(v.Changes) > 0 }) {
		t.Errorf("%+v, %v", v, err)
	}

	// A broadcast reaches the subscribers of every agent, and a receipt names the members.
	own, cutOwn := a.subscribe(t, client.Subscription{})
	topic := "t"
	others, cut := b.subscribe(t, client.Subscription{Topic: &topic})
	receipt, err := a.Broadcast(ctx, "t", []byte("hello"), true, 0)
	if err != nil || !receipt.Stable || len(receipt.Members) != 3 || receipt.Members[1].ID == "" {
		t.Fatalf("%+v, %v", receipt, err)
	}
	for _, events := range []<-chan client.Event{own, others} {
		if m := next(t, events).Message; m == nil || m.Data != "hello" || m.From.ID != "a" || m.Topic != "t" {
			t.Errorf("got %+v", m)
		}
	}
	cutOwn()

	// One that is cut gets what it has missed when it comes back.
	first, err := a.Broadcast(ctx, "t", []byte("\xff"), false, 0)
	if err != nil || first.Stable || len(first.Members) != 0 {
		t.Errorf("%+v, %v", first, err)
	}
	last := next(t, others)
	if b, err := last.Message.Bytes(); err != nil || string(b) != "\xff" {
		t.Errorf("%q, %v", b, err)
	}
	cut()
	for i := range 10 {
		for _, topic := range []string{"t", "", "u"} {
			if _, err := a.Broadcast(ctx, topic, fmt.Append(nil, i), false, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	again, cut := b.subscribe(t, client.Subscription{Topic: &topic, After: last.ID})
	defer cut()
	for i := range 10 {
		if m := next(t, again).Message; m == nil || m.Data != fmt.Sprint(i) {
			t.Fatalf("message %d is %+v", i, m)
		}
	}

	// A message to one member reaches it alone.
	direct, cut := b.subscribe(t, client.Subscription{Direct: true})
	defer cut()
	if sent, err := a.Send(ctx, "b", []byte("psst"), 0); err != nil || sent.To.ID != "b" {
		t.Errorf("%+v, %v", sent, err)
	}
	if m := next(t, direct).Message; m == nil || m.Data != "psst" || !m.Direct {
		t.Errorf("got %+v", m)
	}
	var refused *client.RefusedError
	if _, err := a.Broadcast(ctx, "\n", nil, false, 0); !errors.As(err, &refused) ||
		refused.Status != http.StatusBadRequest {
		t.Errorf("got %v", err)
	}
	if _, err := a.Send(ctx, "nobody", nil, 0); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("got %v", err)
	}

	// Queries: every member answers, by itself or by a command, or says why not.
	for name, want := range map[string]string{
		"ping": "pong/", "sum": "42\n/", "broken": "/exit 7: exit status 7",
		"none": `/it has no handler for the query "none"`,
	} {
		answers, err := a.Query(ctx, name, []byte("41\n"), false, 0)
		if err != nil || len(answers.Answers) != 3 || len(answers.Unanswered) != 0 {
			t.Fatalf("%s: %+v, %v", name, answers, err)
		}
		for _, answer := range answers.Answers {
			if got := answer.Data + "/" + answer.Error; got != want {
				t.Errorf("%s: %q answers %q, want %q", name, answer.ID, got, want)
			}
		}
	}

	// A member that leaves is gone from the status of the others.
	agents[2].stop()
	if err := <-agents[2].ended; err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "two members", func() bool {
		s, err := a.Status(ctx)
		return err == nil && s.Members == 2 && s.Quorum.OK && s.Quorum.Reachable == 2
	})
	views, err := a.Views(ctx)
	if n := len(views.Views); err != nil || n < 2 || len(views.Views[n-1].Changes) != 1 ||
		views.Views[n-1].Changes[0].Cause != pleach.CauseLeft {
		t.Errorf("%+v, %v", views, err)
	}
}

// Handlers run for messages, and SIGHUP changes them and the tags.
func TestHandlersAndReload(t *testing.T) {
	dir := t.TempDir()
	handler := func(topic, name string) string {
		return fmt.Sprintf("expect: 1\nid: a\ntags: {role: %s}\nhandlers:\n  - {on: '%s', run: 'cat >> %s; echo \" $PLEACH_FROM $PLEACH_ID\" >> %s'}\n", name, topic, filepath.Join(dir, name), filepath.Join(dir, name))
	}
	a := start(t, handler("*", "one"))
	wrote := func(name, text string) {
		t.Helper()
		testutil.Eventually(t, "handled "+text, func() bool {
			b, _ := os.ReadFile(filepath.Join(dir, name))
			return string(b) == text
		})
	}
	send := func(topic, text string) {
		t.Helper()
		if _, err := a.Broadcast(t.Context(), topic, []byte(text), false, 0); err != nil {
			t.Fatal(err)
		}
	}
	send("t", "x")
	send("u", "y")
	wrote("one", "x a a\ny a a\n")
	a.write(t, handler("t", "two"))
	a.reload <- struct{}{}
	a.log.Await(t, "settings reloaded")
	send("u", "other")
	send("t", "z")
	wrote("two", "z a a\n")
	wrote("one", "x a a\ny a a\n")
	if m, err := a.Members(t.Context()); err != nil || m.Members[0].Meta != "pleach=v1 role=two" {
		t.Errorf("%+v, %v", m, err)
	}
	a.write(t, "handlers: 1")
	a.reload <- struct{}{}
	a.log.Await(t, "settings not reloaded")
}

// Over TCP, a client needs the token. Probes and the page for browsers do not.
func TestTCPNeedsToken(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	address := testutil.FreeAddresses(t, 1)[0]
	agent := start(t, fmt.Sprintf("expect: 1\napi: %s\ntoken-file: %s\n", address, token))
	testutil.Eventually(t, "ready", func() bool { return agent.Ready(t.Context()) == nil })
	text, err := config.ReadToken(token)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := client.TCP(address, text).Status(t.Context()); err != nil || s.Members != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	var refused *client.RefusedError
	if _, err := client.TCP(address, "guess").Status(t.Context()); !errors.As(err, &refused) ||
		refused.Status != http.StatusUnauthorized {
		t.Errorf("got %v", err)
	}
	for path, want := range map[string]string{"/readyz": "ok\n", "/ui/": "<!doctype html>"} {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if b, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusOK || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s: %d: %s", path, response.StatusCode, b)
		}
	}

	// Prometheus sends the token, too.
	scrape, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	scrape.Header.Set("Authorization", "Bearer "+text)
	scraped, err := http.DefaultClient.Do(scrape)
	if err != nil {
		t.Fatal(err)
	}
	defer scraped.Body.Close()
	b, _ := io.ReadAll(scraped.Body)
	for _, want := range []string{
		"pleach_agent_member 1\n", "pleach_agent_retained_messages 0\n",
		`pleach_members{group=""} 1`, "go_goroutines ",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in %s", want, b)
		}
	}
}

// An agent that is not a member yet says so, and joins when its seeds are there.
func TestSeedsAreResolvedAgain(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	late, joined := begin(t, fmt.Sprintf("seeds: ['exec:cat %s']\nid: late\n", list))
	var refused *client.RefusedError
	if _, err := late.Status(t.Context()); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("got %v", err)
	}
	first := start(t, "expect: 1\nid: first\n")
	m, err := first.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte(m.Members[0].Address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-joined:
	case <-time.After(time.Minute):
		t.Fatal("not joined")
	}
}

// An agent without a quorum asks seeds that have moved meanwhile.
func TestSeedsAreResolvedAgainWithoutQuorum(t *testing.T) {
	first, err := pleach.Create(t.Context(), pleach.Config{ID: "first"})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(first.Self().Address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := start(t, fmt.Sprintf("id: a\nseeds: ['exec:cat %s']\n", list))
	if err := first.Abort(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "without quorum", func() bool {
		s, err := a.Status(t.Context())
		return err == nil && !s.Quorum.OK
	})
	seed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer seed.Close()
	if err := os.WriteFile(list, []byte(seed.Addr().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := seed.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	asked, err := seed.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = asked.Close()
}

func TestRefusedStarts(t *testing.T) {
	a := start(t, "expect: 1\n")
	socket := filepath.Join(filepath.Dir(a.file), "s")
	run := func(text string) error {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Run(t.Context(), Options{
			Load:   func() (*config.Config, error) { return config.Load(file, nil, nil) },
			Logger: new(testutil.LogBuffer).Logger(),
		})
	}
	if err := run("expect: 1\nsocket: " + socket); err == nil || !strings.Contains(err.Error(), "answers on") {
		t.Errorf("got %v", err)
	}
	if err := run("socket: " + filepath.Join(t.TempDir(), "s")); !errors.Is(err, errNoSeeds) {
		t.Errorf("got %v", err)
	}
	if err := run("socket: " + a.file + "\nexpect: 1"); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	var none *client.NoAgentError
	if _, err := client.Socket(filepath.Join(t.TempDir(), "s")).Status(t.Context()); !errors.As(err, &none) ||
		!strings.Contains(err.Error(), "start one with pleach agent") {
		t.Errorf("got %v", err)
	}
}

// A command that runs when the agent is asked to end has the time to end on its own.
func TestHandlerEndsByItself(t *testing.T) {
	dir := t.TempDir()
	a := start(t, fmt.Sprintf("expect: 1\nhandlers:\n  - {on: t, run: 'cd %s; touch began; sleep 0.3; touch ended'}\n",
		dir))
	if _, err := a.Broadcast(t.Context(), "t", nil, false, 0); err != nil {
		t.Fatal(err)
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	testutil.Eventually(t, "began", func() bool { return exists("began") })
	a.stop()
	if err := <-a.ended; err != nil || !exists("ended") {
		t.Errorf("the command was killed, or %v", err)
	}
}

// An agent that other hosts reach, in a group without protection, says so once.
func TestOpenGroupsAreWarnedOf(t *testing.T) {
	const warning = "THE GROUP IS OPEN"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of some length\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const open = "group: web\nexpect: 1\nlisten: 0.0.0.0:0\nadvertise: 127.0.0.1:7\n"
	for listen, want := range map[string]bool{
		" 10.0.0.2:7000": true, "127.0.0.1:7 127.0.0.1:8": false, "127.0.0.1:7 10.0.0.2:7000": false, " 127.0.0.1:7": false,
		"0.0.0.0:7 ": true, ":7 ": true, " ": false, " localhost:7 db1:7": true, "localhost:7 db1:7": false,
	} {
		own, seeds, _ := strings.Cut(listen, " ")
		if got := leavesHost(own, strings.Fields(seeds)); got != want {
			t.Errorf("listen %q, seeds %q: other hosts reach it: %v", own, seeds, got)
		}
	}
	for text, want := range map[string]int{
		open: 1,
		strings.Replace(open, "group: web\n", "", 1):   1,
		open + "secret-file: " + secret:                0,
		"group: web\nexpect: 1\nlisten: 127.0.0.1:0\n": 0,
	} {
		if got := len(start(t, text).log.Lines(warning)); got != want {
			t.Errorf("%q: %d warnings, want %d", text, got, want)
		}
	}
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	a, _ := begin(t, open+"secret-file: "+secret)
	if err := <-a.ended; err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("a secret that all users read: %v", err)
	}
}
