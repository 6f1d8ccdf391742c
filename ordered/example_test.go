package ordered_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/ordered"
)

// A group of one member. Each further process joins by the address of another one, and receives
// the same messages with the same numbers.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	alice, err := ordered.Join(ctx, ordered.Config{Safe: true, Group: pleach.Config{ID: "alice"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer alice.Close()
	for _, change := range []string{"+5", "*2"} {
		if err := alice.Broadcast(ctx, "account", []byte(change)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for m, err := range alice.Messages(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m.Number, m.Topic, string(m.Data))
		if m.Number == 2 {
			break
		}
	}
	// Output:
	// 1 account +5
	// 2 account *2
}

// A group that has other messages beside the order: those of the topic accounts.order are the order's.
func ExampleNewShared() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan struct{})
	shared := ordered.NewShared(ordered.SharedConfig{
		Topic: "accounts.order", Safe: true, State: new(member), Begin: func(uint64) {},
		Deliver: func(m ordered.Message) {
			fmt.Println(m.Number, m.Topic, string(m.Data))
			close(done)
		},
	})
	group, err := pleach.Create(ctx, pleach.Config{
		ID: "alice", Delivery: pleach.Delivery{Echo: true, Handlers: shared.Handlers()},
		OnMessage: func(m pleach.Message, err error) {
			if !shared.Receive(m, err) && err == nil {
				fmt.Println("beside the order:", string(m.Data))
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer group.Close()
	order := shared.Start(group)
	defer order.Close()
	if err := group.Broadcast(ctx, []byte("hello")); err != nil {
		fmt.Println(err)
		return
	}
	if err := order.Broadcast(ctx, "account", []byte("+5")); err != nil {
		fmt.Println(err)
		return
	}
	<-done
	// Output:
	// beside the order: hello
	// 1 account +5
}
