package group_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// service is a group with views, in this process over TCP.
func service(t *testing.T, size int, config func(r int, c *pleach.Config)) []*pleach.Group {
	t.Helper()
	groups := make([]*pleach.Group, size)
	for r := range groups {
		c := pleach.Config{Group: "service"}
		if config != nil {
			config(r, &c)
		}
		if r == 0 {
			groups[r] = member(t)(pleach.Create(t.Context(), c))
		} else {
			groups[r] = member(t)(pleach.Join(t.Context(), c, groups[0].Self().Address))
		}
	}
	awaitSize(t, groups, size)
	return groups
}

// Every member sends to every member, itself included, short and long messages, and
// broadcasts meanwhile. Messages arrive once, in order, and with the right sender.
func TestSend(t *testing.T) {
	const size, messages = 3, 300
	groups := service(t, size, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, g := range groups {
		all.Go(func() {
			for i := range messages {
				for to := range groups {
					if err := g.Send(ctx, pleach.Member{Rank: to}, message(g.Rank(), i, i*i)); err != nil {
						t.Error(err)
						return
					}
				}
				if err := g.Broadcast(ctx, message(g.Rank(), i, 10)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		all.Go(func() {
			next := map[bool]map[int]int{true: {}, false: {}}
			missing := messages * (2*size - 1)
			for m := range g.Messages(ctx) {
				n := next[m.Direct][m.From]
				want := message(m.From, n, 10)
				if m.Direct {
					want = message(m.From, n, n*n)
				}
				if !bytes.Equal(m.Data, want) {
					t.Errorf("rank %d: %d bytes from %d, direct %t: want message %d", g.Rank(), len(m.Data), m.From, m.Direct, n)
					return
				}
				next[m.Direct][m.From]++
				missing--
				if missing == 0 {
					return
				}
			}
			t.Errorf("rank %d: %d missing", g.Rank(), missing)
		})
	}
	all.Wait()
}

// Send blocks while the receiver's program receives nothing, as long as its context
// allows, and nothing is lost. What others send and broadcast is not held up.
func TestSendWaitsForTheProgram(t *testing.T) {
	groups := service(t, 3, func(_ int, c *pleach.Config) { c.Limits.SendBytes = 100_000 })
	sent := 0
	for ; ; sent++ {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := groups[1].Send(ctx, pleach.Member{Rank: 0}, message(1, sent, 10_000))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil || sent > 20 {
			t.Fatalf("message %d: %v", sent, err)
		}
	}
	if err := groups[2].Send(t.Context(), pleach.Member{Rank: 0}, message(2, 0, 10)); err != nil {
		t.Error(err)
	}
	var rest sync.WaitGroup
	defer rest.Wait()
	rest.Go(func() { // goes on when the program does
		if err := groups[1].Send(t.Context(), pleach.Member{Rank: 0}, message(1, sent, 10)); err != nil {
			t.Error(err)
		}
	})
	next := [3]int{}
	for m := range groups[0].Messages(t.Context()) {
		if number := int(binary.BigEndian.Uint32(m.Data[4:])); number != next[m.From] {
			t.Errorf("message %d of rank %d, want %d", number, m.From, next[m.From])
		}
		next[m.From]++
		if next[1] == sent+1 && next[2] == 1 {
			break
		}
	}
}

// A handler gets what was sent, also by this process to itself.
func TestSendToAHandler(t *testing.T) {
	got := make(chan pleach.Message, 10)
	groups := service(t, 2, func(r int, c *pleach.Config) {
		if r == 0 {
			c.OnMessage = func(m pleach.Message, _ error) { got <- m }
		}
	})
	for _, g := range groups {
		if err := g.Send(t.Context(), pleach.Member{Rank: 0}, []byte("hello")); err != nil {
			t.Error(err)
		}
		if m := <-got; m.From != g.Rank() || !m.Direct || string(m.Data) != "hello" {
			t.Errorf("%+v", m)
		}
	}
}

// Leave lets what was sent arrive.
func TestSendThenLeave(t *testing.T) {
	groups := service(t, 2, nil)
	data := bytes.Repeat([]byte("pleach"), 500_000)
	if err := groups[1].Send(t.Context(), pleach.Member{Rank: 0}, data); err != nil {
		t.Fatal(err)
	}
	if err := groups[1].Leave(t.Context()); err != nil {
		t.Error(err)
	}
	for m := range groups[0].Messages(t.Context()) {
		if !bytes.Equal(m.Data, data) {
			t.Errorf("%d bytes", len(m.Data))
		}
		break
	}
	if err := groups[0].Send(t.Context(), pleach.Member{Rank: 1}, nil); !errors.Is(err, pleach.ErrGone) {
		t.Errorf("to a member that has left: %v", err)
	}
}

// What is for one process does not go to another one that has its rank.
func TestSendToAFormerProcess(t *testing.T) {
	groups := service(t, 2, nil)
	former := groups[1].Self()
	former.Incarnation += 100
	if err := groups[0].Send(t.Context(), former, nil); !errors.Is(err, pleach.ErrGone) {
		t.Errorf("sent: %v", err)
	}
	if _, err := groups[0].Request(t.Context(), former, "echo", nil); !errors.Is(err, pleach.ErrGone) {
		t.Errorf("asked: %v", err)
	}
}

// A member leaves at once although others never stop to ask it: it does not wait until all its replies
// are acknowledged at one moment.
func TestLeaveWhileOthersAsk(t *testing.T) {
	groups := service(t, 6, nil)
	reply := make([]byte, 256<<10) // several frames: the queue of a reply is seldom empty
	groups[0].Handle("echo", func(context.Context, pleach.Request) ([]byte, error) { return reply, nil })
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var replies atomic.Int64
	for _, g := range groups[1:] {
		for range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := g.Request(ctx, pleach.Member{Rank: 0}, "echo", []byte("x")); err != nil {
						return // it has left
					}
					replies.Add(1)
				}
			})
		}
	}
	testutil.Eventually(t, "100 replies", func() bool { return replies.Load() >= 100 })
	timed, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := groups[0].Leave(timed); err != nil {
		t.Error(err)
	}
	stop()
	all.Wait()
}

func TestRequest(t *testing.T) {
	groups := service(t, 3, nil)
	broken := errors.New("broken")
	for _, g := range groups {
		g.Handle("echo", func(_ context.Context, r pleach.Request) ([]byte, error) {
			return fmt.Appendf(nil, "%d %d %s", g.Rank(), r.From, r.Data), nil
		})
		g.Handle("fail", func(context.Context, pleach.Request) ([]byte, error) { return nil, broken })
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			from, to := i%3, i/3%3
			reply, err := groups[from].Request(t.Context(), pleach.Member{Rank: to}, "echo", fmt.Append(nil, i))
			if want := fmt.Sprintf("%d %d %d", to, from, i); err != nil || string(reply) != want {
				t.Errorf("%q, %v, want %q", reply, err, want)
			}
		})
	}
	all.Wait()
	var failed *pleach.RequestError
	if _, err := groups[0].Request(t.Context(), pleach.Member{Rank: 1}, "fail", nil); !errors.As(err, &failed) ||
		failed.Rank != 1 || failed.Err.Error() != "broken" {
		t.Errorf("%v", err)
	}
	if _, err := groups[0].Request(t.Context(), pleach.Member{Rank: 1}, "none", nil); !errors.Is(err,
		pleach.ErrNoHandler) {
		t.Errorf("%v", err)
	}
	groups[1].Handle("echo", nil)
	if _, err := groups[0].Request(t.Context(), pleach.Member{Rank: 1}, "echo", nil); !errors.Is(err,
		pleach.ErrNoHandler) {
		t.Errorf("%v", err)
	}
}

// A request ends without a timeout when its receiver dies or leaves, and the handler's
// context when the caller dies, leaves or gives up.
func TestRequestEnds(t *testing.T) {
	for name, end := range map[string]func(*pleach.Group){
		"crash": func(g *pleach.Group) { _ = g.Abort() },
		"leave": func(g *pleach.Group) { _ = g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			groups := service(t, 4, nil)
			serving, ended := make(chan int, 2), make(chan int, 2)
			for _, g := range groups[2:] {
				g.Handle("wait", func(ctx context.Context, _ pleach.Request) ([]byte, error) {
					serving <- g.Rank()
					<-ctx.Done()
					ended <- g.Rank()
					return nil, nil
				})
			}
			failed := make(chan error, 1)
			go func() {
				_, err := groups[0].Request(t.Context(), pleach.Member{Rank: 2}, "wait", nil)
				failed <- err
			}()
			<-serving
			go func() { _, _ = groups[1].Request(t.Context(), pleach.Member{Rank: 3}, "wait", nil) }()
			<-serving
			end(groups[2])
			var gone *pleach.GoneError
			if err := <-failed; !errors.As(err, &gone) || gone.Rank != 2 || gone.View < 5 {
				t.Errorf("%v", err)
			}
			if r := <-ended; r != 2 {
				t.Errorf("the handler of rank %d ended", r)
			}
			end(groups[1])
			if r := <-ended; r != 3 {
				t.Errorf("the handler of rank %d ended", r)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-serving
				cancel()
			}()
			if _, err := groups[0].Request(ctx, pleach.Member{Rank: 3}, "wait", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			<-ended
		})
	}
}

// Too many requests wait at their sender. Those that the receiver has no room for fail.
func TestRequestsAreLimited(t *testing.T) {
	groups := service(t, 3, func(r int, c *pleach.Config) { c.Limits.Requests = []int{1, 4, 4}[r] })
	release := make(chan struct{})
	var most, now atomic.Int32
	groups[0].Handle("slow", func(context.Context, pleach.Request) ([]byte, error) {
		most.Store(max(most.Load(), now.Add(1)))
		<-release
		now.Add(-1)
		return nil, nil
	})
	results := make(chan error, 8)
	for i := range 8 {
		go func() {
			_, err := groups[1+i%2].Request(t.Context(), pleach.Member{Rank: 0}, "slow", nil)
			results <- err
		}()
	}
	for range 6 { // one is served, and one waits
		if err := <-results; !errors.Is(err, pleach.ErrOverloaded) {
			t.Errorf("%v", err)
		}
	}
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d served at a time", most.Load())
	}
}

// Without a quorum, requests to members that cannot be reached fail instead of waiting for
// a view that does not come.
func TestRequestWithoutQuorum(t *testing.T) {
	groups := service(t, 3, nil)
	serving := make(chan struct{}, 1)
	groups[2].Handle("wait", func(ctx context.Context, _ pleach.Request) ([]byte, error) {
		serving <- struct{}{}
		<-ctx.Done()
		return nil, nil
	})
	failed := make(chan error, 1)
	go func() {
		_, err := groups[0].Request(t.Context(), pleach.Member{Rank: 2}, "wait", nil)
		failed <- err
	}()
	<-serving
	var end sync.WaitGroup
	for _, g := range groups[1:] {
		end.Go(func() { _ = g.Abort() })
	}
	end.Wait()
	if err := <-failed; !errors.Is(err, pleach.ErrNoQuorum) && !errors.Is(err, pleach.ErrGone) {
		t.Errorf("%v", err)
	}
}

// In a static group nothing would end a request to a dead process.
func TestSendNeedsViews(t *testing.T) {
	groups, _ := joinMem(t, 2)
	if err := groups[0].Send(t.Context(), pleach.Member{Rank: 1}, nil); !errors.Is(err, pleach.ErrStatic) {
		t.Errorf("%v", err)
	}
	if _, err := groups[0].Request(t.Context(), pleach.Member{Rank: 1}, "", nil); !errors.Is(err, pleach.ErrStatic) {
		t.Errorf("%v", err)
	}
}
