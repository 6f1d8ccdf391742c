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
	for m := range alice.Messages(ctx) {
		fmt.Println(m.Number, m.Topic, string(m.Data))
		if m.Number == 2 {
			break
		}
	}
	// Output:
	// 1 account +5
	// 2 account *2
}
