//go:build unix

package shard_test

// Tokens of shards and leases over stops of all processes, which are processes of their own.

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/shard"
)

// tokensProgram is the variable that makes this binary a member with shards and leases: its
// settings.
const tokensProgram = "PLEACH_TEST_TOKENS"

// tokensMember is the settings of such a member.
type tokensMember struct {
	ID, Listen string
	Seeds      []string
	DataDir    string // of the services
	GroupDir   string // of the group, which has no leases then
	NoClock    bool   // the clock is no floor
	SetBack    int    // hours by which the clock has been set back
}

func TestMain(m *testing.M) {
	if settings, ok := os.LookupEnv(tokensProgram); ok {
		var c tokensMember
		err := json.Unmarshal([]byte(settings), &c)
		if err == nil {
			err = c.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// run joins the group, prints its tokens of one shard and one lease, and leaves when its input
// ends.
func (c *tokensMember) run() error {
	ctx := context.Background()
	floor := func() uint64 {
		return uint64(time.Now().Add(-time.Duration(c.SetBack) * time.Hour).UnixMilli())
	}
	if c.NoClock {
		floor = func() uint64 { return 0 }
	}
	group := pleach.Config{
		Group: "tokens", ID: c.ID, Listen: c.Listen, Expect: len(c.Seeds),
		Recovery: pleach.Recovery{DataDir: c.GroupDir},
	}
	var token uint64
	var g *pleach.Group
	var leave func() error
	if c.GroupDir != "" {
		var err error
		g, err = pleach.Join(ctx, group, c.Seeds...)
		if err != nil {
			return err
		}
		leave = g.Close
	} else {
		table := lease.NewTable()
		r, err := replicated.Join(ctx,
			replicated.Config{Group: group, Machines: map[string]replicated.Machine{"leases": table}}, c.Seeds...)
		if err != nil {
			return err
		}
		g, leave = r.Group(), r.Close
		leases, err := lease.New(lease.Config{
			Replica: r, Machine: "leases", Table: table, TTL: 100 * time.Millisecond,
			TokenFloor: floor, DataDir: c.DataDir,
		})
		if err != nil {
			return err
		}
		token, err = leases.Grant(ctx, c.ID, c.ID, 0)
		if err != nil {
			return err
		}
	}
	shards, err := shard.New(g, shard.Config{
		Partitions: 4, Lease: 100 * time.Millisecond, TokenFloor: floor,
		DataDir: c.DataDir,
	})
	if err != nil {
		return err
	}
	owned := make(map[int]uint64)
	for change := range shards.Changes(ctx) { // until each partition has an owner
		if change.Owner != nil {
			owned[change.Partition] = change.Owner.Token
		}
		if len(owned) == 4 {
			break
		}
	}
	fmt.Println(token, owned[0])
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	if err := shards.Leave(ctx); err != nil {
		return err
	}
	return leave()
}

// start starts a member as a process.
func (c tokensMember) start(t *testing.T) (cmd *exec.Cmd, out *bufio.Reader, stop func()) {
	t.Helper()
	settings, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), tokensProgram+"="+string(settings)), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewReader(pipe), func() { _ = in.Close() }
}

// tokensKind is how tokens of processes that begin again stay above those from before.
type tokensKind struct {
	name                    string
	service, group, setBack bool // directories of services and of the group; the clock goes back
}

// Ways in which all processes are stopped.
const (
	planned       = "planned"
	killed        = "killed"
	oneAfterOther = "one after the other"
)

// Fencing tokens of shards and leases never fall, whatever way all processes of a group are stopped
// and started again: by the clock, by DataDir of the services without a clock or with one that is
// set back an hour each time, and by DataDir of the group (case 66). PLEACH_ROUNDS is how many stops
// of each kind there are.
func TestTokensNeverFallOverFullStops(t *testing.T) {
	stops := testutil.Rounds.Or(4)
	if testing.Short() {
		stops = 2
	}
	slots := make(chan struct{}, 4) // kinds at a time
	for _, kind := range []tokensKind{
		{name: "by the clock"},
		{name: "by disks", service: true},
		{name: "by disks, clock set back", service: true, setBack: true},
		{name: "by the group's disks", group: true},
	} {
		for _, way := range []string{planned, killed, oneAfterOther} {
			t.Run(kind.name+", "+way, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				kind.run(t, stops, way)
			})
		}
	}
}

// run stops all processes of a group, and starts them again.
func (kind tokensKind) run(t *testing.T, stops int, way string) {
	t.Helper()
	seeds, dir := testutil.FreeAddresses(t, 2), t.TempDir()
	var lastLease, lastShard uint64
	for stop := range stops {
		var commands []*exec.Cmd
		var outs []*bufio.Reader
		var ends []func()
		for i, address := range seeds {
			c := tokensMember{ID: fmt.Sprint("m", i), Listen: address, Seeds: seeds, NoClock: kind.service && !kind.setBack ||
				kind.group}
			if kind.setBack {
				c.SetBack = stop
			}
			if own := filepath.Join(dir, c.ID); kind.service {
				c.DataDir = own
			} else if kind.group {
				c.GroupDir = own
			}
			cmd, out, end := c.start(t)
			commands, outs, ends = append(commands, cmd), append(outs, out), append(ends, end)
		}
		var leaseToken, shardToken uint64
		for _, out := range outs {
			var l, s uint64
			line, err := out.ReadString('\n')
			if _, scanErr := fmt.Sscan(strings.TrimSpace(line), &l, &s); err != nil || scanErr != nil {
				t.Fatalf("%q, %v, %v", line, err, scanErr)
			}
			if !kind.group && l <= lastLease || s <= lastShard {
				t.Errorf("stop %d: tokens %d of a lease after %d, %d of a shard after %d", stop, l, lastLease, s, lastShard)
			}
			leaseToken, shardToken = max(leaseToken, l), max(shardToken, s)
		}
		lastLease, lastShard = leaseToken, shardToken
		for i, cmd := range commands {
			if way == killed {
				_ = cmd.Process.Signal(syscall.SIGKILL)
			}
			ends[i]()
			if way == oneAfterOther {
				waitFor(t, cmd, way)
			}
		}
		for _, cmd := range commands {
			if way != oneAfterOther {
				waitFor(t, cmd, way)
			}
		}
	}
	t.Logf("after %d stops: token %d of a lease, %d of a shard", stops, lastLease, lastShard)
}

// waitFor waits for a process that was stopped.
func waitFor(t *testing.T, cmd *exec.Cmd, way string) {
	t.Helper()
	if err := cmd.Wait(); err != nil && way != killed {
		t.Fatal(err)
	}
}
