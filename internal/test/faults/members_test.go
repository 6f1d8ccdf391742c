//go:build unix

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/netns"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// memberRole is the environment variable that makes this test binary a member, as its
// value, a memberConfig, says.
const memberRole = "PLEACH_FAULTS_MEMBER"

// memberConfig is how a member process starts. Its fields are those of pleach.Config.
type memberConfig struct {
	Create      bool
	Expect      int
	Listen, ID  string
	Seeds       []string
	DataDir     string
	JoinTimeout time.Duration
	// Version, if not 0, is how new the state is that the member can offer.
	Version          uint64
	SuspicionTimeout time.Duration
	// Rejoin has the member join again when it was removed.
	Rejoin bool
	// Flood has the member broadcast as much as it can, and print why that ends.
	Flood bool
}

func init() { testutil.PlayRole(memberRole, memberConfig.run) }

// run is a member that prints "joined", each view as "view NUMBER ID,…", "no quorum"
// in place of a view if that is lost, and "over" with the reason at the end. It
// broadcasts its ID all the time, and prints "from ID" for the first message of each
// other member in a view.
func (c memberConfig) run() {
	config := pleach.Config{
		Group: "faults", Listen: c.Listen, ID: c.ID, Expect: c.Expect, Recovery: pleach.Recovery{DataDir: c.DataDir},
		Detection: pleach.Detection{SuspicionTimeout: c.SuspicionTimeout},
		Logger:    slog.New(slog.NewTextHandler(os.Stdout, nil)),
	}
	if c.Version != 0 {
		config.State = &versionedState{c.Version}
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(c.JoinTimeout, time.Minute))
	defer cancel()
	var g *pleach.Group
	var err error
	if c.Create {
		g, err = pleach.Create(ctx, config)
	} else {
		g, err = pleach.Join(ctx, config, c.Seeds...)
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test has ended
		os.Exit(0)
	}()
	go leaveOnTerm(g)
	fmt.Println("joined", g.Rank())
	c.live(g)
	for c.Rejoin && errors.Is(g.Err(), pleach.ErrEvicted) {
		if err := g.Rejoin(context.Background()); err != nil {
			fmt.Println("error", err)
			return
		}
		c.live(g)
	}
	fmt.Println("over", g.Err())
}

// live is one membership.
func (c *memberConfig) live(g *pleach.Group) {
	go func() {
		heard := map[string]bool{}
		for m, err := range g.Messages(context.Background()) {
			if line := fmt.Sprintf("message %d %s", m.View, m.Data); err == nil && !heard[line] {
				heard[line] = true
				fmt.Println(line)
			}
		}
	}()
	for range 3 {
		if c.Flood {
			go flood(g)
		}
	}
	go func() {
		for g.Err() == nil && !c.Flood {
			_ = g.Broadcast(context.Background(), []byte(c.ID)) // it fails without a quorum
			time.Sleep(20 * time.Millisecond)
		}
	}()
	for v := range g.Views(context.Background()) {
		if v.Err != nil {
			fmt.Println("no quorum:", v.Err)
			continue
		}
		fmt.Println("view", v.Number, strings.Join(ids(v), ","))
	}
}

func ids(v pleach.View) (ids []string) {
	for _, m := range v.Members() {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

// members are the processes of a group that a test starts, kills and starts again, each
// time by the same command.
type members struct {
	t       *testing.T
	configs []memberConfig
	running []*testutil.Process
	// network, if not nil, has a host for each process.
	network *netns.Net
}

// onNetwork gives each process a host of its own.
func (ms *members) onNetwork() {
	ms.t.Helper()
	ms.network = netns.New(ms.t, len(ms.configs))
	addresses := hosts(ms.network, len(ms.configs))
	for i := range ms.configs {
		ms.configs[i].Listen, ms.configs[i].Seeds = addresses[i], addresses
	}
}

// newMembers describes processes that know the first seeds addresses of all.
func newMembers(t *testing.T, n, seeds int, change func(i int, c *memberConfig)) *members {
	t.Helper()
	addresses := testutil.FreeAddresses(t, n)
	ms := &members{t: t, configs: make([]memberConfig, n), running: make([]*testutil.Process, n)}
	for i := range n {
		ms.configs[i] = memberConfig{Listen: addresses[i], ID: fmt.Sprint("m", i), Expect: n, Seeds: addresses[:seeds]}
		if change != nil {
			change(i, &ms.configs[i])
		}
	}
	t.Cleanup(func() {
		for i, p := range ms.running {
			if t.Failed() && p != nil {
				t.Logf("m%d:\n\t%s", i, strings.Join(p.All(), "\n\t"))
			}
		}
	})
	return ms
}

// start starts processes.
func (ms *members) start(which ...int) {
	ms.t.Helper()
	for _, i := range which {
		text, err := json.Marshal(ms.configs[i])
		if err != nil {
			ms.t.Fatal(err)
		}
		if ms.network == nil {
			ms.running[i] = testutil.StartProcess(ms.t, memberRole, string(text))
		} else {
			ms.running[i] = testutil.StartCommand(ms.t, ms.network.Command(i, os.Args[0]), memberRole, string(text))
		}
	}
}

// kill kills processes, all at once.
func (ms *members) kill(which ...int) {
	for _, i := range which {
		ms.running[i].Signal(syscall.SIGKILL)
	}
	for _, i := range which {
		ms.running[i].Kill()
	}
}

// lastView is the view that a process has printed last, and whether the quorum is lost
// since.
func (ms *members) lastView(i int) (view string, lost bool) {
	for _, line := range ms.running[i].All() {
		switch {
		case strings.HasPrefix(line, "view "):
			view, lost = strings.TrimPrefix(line, "view "), false
		case strings.HasPrefix(line, "no quorum"):
			lost = true
		}
	}
	return view, lost
}

// await waits until processes are in one view that holds just some, and returns it.
func (ms *members) await(some, in []int) (view string, took time.Duration) {
	ms.t.Helper()
	var names []string
	for _, i := range in {
		names = append(names, fmt.Sprint("m", i))
	}
	slices.Sort(names)
	began := time.Now()
	for {
		view, _ = ms.lastView(some[0])
		same := strings.HasSuffix(view, " "+strings.Join(names, ","))
		for _, i := range some {
			v, lost := ms.lastView(i)
			same = same && v == view && !lost
		}
		if same {
			return view, time.Since(began)
		}
		if time.Since(began) > 50*time.Second {
			ms.t.Fatalf("no common view of %v", names)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// all are the numbers of all processes.
func (ms *members) all() (all []int) {
	for i := range ms.configs {
		all = append(all, i)
	}
	return all
}
