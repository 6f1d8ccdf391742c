package pleach_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/collective"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/transport/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A group begins with one member. Another process joins, broadcasts and leaves;
// the first one receives the message and sees the views.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()

	// Usually in another process, which knows the first one's address.
	seed := first.View().Leader().Address
	second, err := pleach.Join(ctx, pleach.Config{Group: "web", ID: "cache-2"}, seed)
	if err != nil {
		log.Fatal(err)
	}
	if err := second.Broadcast(ctx, []byte("flush the cache")); err != nil {
		log.Fatal(err)
	}

	for m, err := range first.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("from rank %d: %s\n", m.From, m.Data)
		break
	}
	if err := second.Close(); err != nil {
		log.Fatal(err)
	}
	for v := range first.Views(ctx) {
		fmt.Printf("view %d has %d member\n", v.Number, v.Size())
		break
	}
	// Output:
	// from rank 1: flush the cache
	// view 3 has 1 member
}

// The instances of a service are all started alike, in any order, and the same way again
// after a crash. Here they share a process; usually each is on its own host.
func ExampleJoin() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	hosts := []string{"127.0.0.1:27596", "127.0.0.1:27597", "127.0.0.1:27598"}
	var members, joined sync.WaitGroup
	joined.Add(len(hosts))
	for _, host := range hosts {
		members.Go(func() {
			group, err := pleach.Join(ctx, pleach.Config{Group: "web", Expect: len(hosts), Listen: host}, hosts...)
			if err != nil {
				log.Fatal(err)
			}
			defer group.Close()
			v := group.View()
			fmt.Printf("%s is rank %d of %d in view %d\n", group.Self().ID, group.Rank(), v.Size(), v.Number)
			joined.Done()
			joined.Wait() // a member that leaves now would change the view of the others
		})
	}
	members.Wait()
	// Unordered output:
	// 127.0.0.1:27596 is rank 0 of 3 in view 1
	// 127.0.0.1:27597 is rank 1 of 3 in view 1
	// 127.0.0.1:27598 is rank 2 of 3 in view 1
}

// All members of a job start together. Here they share a process and a network in
// memory; under a launcher the zero Config is enough.
func ExampleStart() {
	ctx := context.Background()
	network := mem.NewNetwork(3, mem.Config{})
	groups := make([]*pleach.Group, 3)
	for r := range groups {
		var err error
		groups[r], err = pleach.Start(ctx,
			pleach.Config{Network: pleach.Network{Transport: network.Member(protocol.Rank(r)), Size: 3}, Rank: r})
		if err != nil {
			log.Fatal(err)
		}
		defer groups[r].Close()
	}

	if err := groups[1].Broadcast(ctx, []byte("flush the cache")); err != nil {
		log.Fatal(err)
	}
	for m, err := range groups[2].Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("from rank %d: %s\n", m.From, m.Data)
		break
	}
	// Output: from rank 1: flush the cache
}

// WaitStable proves that every member of the view has what was broadcast.
func ExampleGroup_WaitStable() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{}, first.View().Leader().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Abort()

	if err := first.Broadcast(ctx, []byte("schema 7")); err != nil {
		log.Fatal(err)
	}
	receipt, err := first.WaitStable(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(receipt.Members), "members of view", receipt.View, "have it")
	// Output: 2 members of view 2 have it
}

// Views tells what changed since the view before.
func ExampleGroup_Views() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{ID: "a"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	var second *pleach.Group
	for v := range first.Views(ctx) {
		for _, m := range v.Joined {
			fmt.Println(m.ID, "joined")
		}
		for _, m := range v.Left {
			fmt.Println(m.ID, "left")
		}
		switch v.Number {
		case 1: // usually in another process
			second, err = pleach.Join(ctx, pleach.Config{ID: "b"}, v.Leader().Address)
			if err != nil {
				log.Fatal(err)
			}
		case 2:
			_ = second.Close()
		case 3:
			return
		}
	}
	// Output:
	// b joined
	// b left
}

// Rejoin makes this process a member again. Its messages then begin with a notice of what it
// may have missed. Config.Recovery.Rejoin does that by itself after an eviction.
func ExampleGroup_Rejoin() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{ID: "a"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{ID: "b"}, first.Self().Address) // usually in another process
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	if err := second.Rejoin(ctx); err != nil {
		log.Fatal(err)
	}
	go func() { _ = first.Broadcast(ctx, []byte("hello")) }()
	for m, err := range second.Messages(ctx) {
		if gap := new(pleach.GapError); errors.As(err, &gap) {
			fmt.Println("missing from view", gap.From)
			continue
		}
		fmt.Println(string(m.Data))
		return
	}
	// Output:
	// missing from view 2
	// hello
}

// Inspect looks at a group without joining it.
func ExampleInspect() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, err := pleach.Create(ctx, pleach.Config{Group: "web", ID: "web-0"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	i, err := pleach.Inspect(ctx, pleach.Config{Group: "web"}, g.View().Leader().Address)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range i.View.Members() {
		fmt.Println("rank", m.Rank, "is", m.ID)
	}
	// Output: rank 0 is web-0
}

// RaiseVersion ends a rolling upgrade, in which processes of two builds are members.
func ExampleRaiseVersion() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	view, err := pleach.RaiseVersion(ctx, pleach.Config{Group: "web"}, g.Self().Address)
	var prevented *pleach.RaiseError
	switch {
	case errors.As(err, &prevented):
		fmt.Println("upgrade these first:", prevented.Members)
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("the group has protocol version", view.Version)
	}
	// Output: the group has protocol version 6
}

// Status is a snapshot for a health check.
func ExampleGroup_Status() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()

	s := g.Status()
	fmt.Printf("view %d: %d of %d members reachable, %d needed\n", s.View, s.Quorum.Reachable, s.Members, s.Quorum.Needed)
	for _, m := range s.Suspects {
		fmt.Printf("%s cannot be reached since %v: %v\n", m.ID, m.Since, m.Cause)
	}
	// Output: view 1: 1 of 1 members reachable, 1 needed
}

// Trace a message: the members report when and how it has reached them.
func ExampleGroup_BroadcastTraced() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()

	trace, err := first.BroadcastTraced(ctx, "", []byte("hello"))
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range trace.Arrivals {
		fmt.Printf("rank %d got it from rank %d\n", a.Rank, a.From)
	}
	// Output: rank 1 got it from rank 0
}

// A job: every process computes a part, and all get the sum. Under a launcher the zero
// Config is enough; this one is a job of a single process.
func ExampleNewWorld() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	world, err := pleach.NewWorld(ctx, pleach.Config{Addresses: []string{"127.0.0.1:27599"}})
	if err != nil {
		log.Fatal(err)
	}
	input := func(task int) []float64 { return []float64{float64(task + 1)} }
	sum, err := collective.Allreduce(ctx, world, input(world.Rank()), collective.Sum[float64](),
		collective.Restore(func(_ context.Context, task int) ([]float64, error) { return input(task), nil }))
	if err != nil {
		log.Fatal(err) // it has no result on this process
	}
	if world.Rank() == world.Owner(0) { // rank 0, or the process that has taken its task over
		fmt.Println(sum, "by", world.Size(), "task")
	}
	if err := world.Finalize(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: [1] by 1 task
}

// A member asks the leader. If the leader died meanwhile, Request would return a GoneError
// with the first view without it.
func ExampleGroup_Request() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	first.Handle("greet", func(_ context.Context, r pleach.Request) ([]byte, error) {
		return fmt.Appendf(nil, "hello, %s of rank %d", r.Data, r.From), nil
	})

	second, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	reply, err := second.Request(ctx, second.View().Leader(), "greet", []byte("process"))
	fmt.Printf("%s, %v\n", reply, err)
	// Output: hello, process of rank 1, <nil>
}

// A member sends to one other member.
func ExampleGroup_Send() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	if err := second.Send(ctx, first.Self(), []byte("your shard has moved")); err != nil {
		log.Fatal(err)
	}
	for m, err := range first.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("from rank %d, direct %t: %s\n", m.From, m.Direct, m.Data)
		break
	}
	// Output: from rank 1, direct true: your shard has moved
}

// A message carries pairs besides its data.
func ExampleWithHeader() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	with := pleach.WithHeader(ctx, pleach.Header{"user": "ada"})
	if err := first.Broadcast(with, []byte("flush the cache")); err != nil {
		log.Fatal(err)
	}
	for m, err := range second.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s, for %s\n", m.Data, m.Header["user"])
		break
	}
	// Output: flush the cache, for ada
}

// A member receives what others broadcast to one topic.
func ExampleGroup_Subscribe() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	flags, err := first.Subscribe("flags")
	if err != nil {
		log.Fatal(err)
	}
	defer flags.Close()

	for _, topic := range []string{"metrics", "flags"} { // no member subscribes to the first one
		if err := second.BroadcastTopic(ctx, topic, []byte("about "+topic)); err != nil {
			log.Fatal(err)
		}
	}
	for m, err := range flags.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("from rank %d to %s: %s\n", m.From, m.Topic, m.Data)
		break
	}
	// Output: from rank 1 to flags: about flags
}

// A program that writes long messages to a file gives their memory back, for the next ones.
func ExampleGroup_Release() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := pleach.Create(ctx, pleach.Config{Group: "web"})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	second, err := pleach.Join(ctx, pleach.Config{Group: "web"}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	if err := first.Broadcast(ctx, make([]byte, 1<<20)); err != nil {
		log.Fatal(err)
	}
	for m, err := range second.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		n, err := io.Discard.Write(m.Data)
		second.Release(m) // m.Data is not used any more
		fmt.Println(n, err)
		break
	}
	// Output: 1048576 <nil>
}

// A process tells the others about itself in the view.
func ExampleGroup_SetMeta() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	group, err := pleach.Create(ctx, pleach.Config{Group: "web", Meta: "version=2"})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	fmt.Println(group.View().Leader().Meta)
	if err := group.SetMeta(ctx, "version=2 drains"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(group.View().Leader().Meta)
	// Output:
	// version=2
	// version=2 drains
}

// count is a state: how many messages there were.
type count int

func (c *count) Snapshot(w io.Writer) error {
	_, err := fmt.Fprint(w, int(*c))
	return err
}

func (c *count) Restore(r io.Reader) error {
	_, err := fmt.Fscan(r, (*int)(c))
	return err
}

// A joiner has what the messages before have come to.
func ExampleConfig_state() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var counted, joined count
	first, err := pleach.Create(ctx, pleach.Config{Group: "web", State: &counted})
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	go func() {
		for _, err := range first.Messages(ctx) { // its own are among them
			if err == nil {
				counted++
			}
		}
	}()
	for range 3 {
		if err := first.Broadcast(ctx, []byte("one more")); err != nil {
			log.Fatal(err)
		}
	}

	second, err := pleach.Join(ctx, pleach.Config{Group: "web", State: &joined}, first.Self().Address)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	if err := first.Broadcast(ctx, []byte("one more")); err != nil {
		log.Fatal(err)
	}
	for range second.Messages(ctx) {
		fmt.Println("before this message:", joined)
		break
	}
	// Output: before this message: 3
}
