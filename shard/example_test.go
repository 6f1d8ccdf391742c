package shard_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/shard"
)

// A member serves the keys that it owns, and tells which member owns the others.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	group, err := pleach.Create(ctx, pleach.Config{Group: "carts", ID: "a"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer group.Close()
	shards, err := shard.New(group, shard.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shards.Leave(ctx) // before the group: the others take over at once

	for range shards.Changes(ctx) {
		err = shards.Serve(ctx, "cart 7", func(_ context.Context, token uint64) error {
			fmt.Println("this process owns cart 7, with a token:", token > 0)
			return nil
		})
		var not *shard.NotOwnerError
		switch {
		case err == nil:
			return
		case errors.As(err, &not) && not.Owner != nil:
			fmt.Println("ask", not.Owner.Member.Address)
		}
	}
	// Output: this process owns cart 7, with a token: true
}

// Members with more memory own more: a weight from their meta.
func ExampleConfig_weight() {
	weight := func(m pleach.Member) int {
		if m.Meta == "large" {
			return 3
		}
		return 1
	}
	c := shard.Config{Partitions: 4096, Weight: weight}
	fmt.Println(c.Weight(pleach.Member{Meta: "large"}), c.Weight(pleach.Member{}))
	// Output: 3 1
}
