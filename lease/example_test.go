package lease_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach/lease"
	"github.com/pleach-go/pleach/replicated"
)

// A job that only one process of a group does at a time.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	table := lease.NewTable()
	replica, err := replicated.Join(ctx, replicated.Config{Machines: map[string]replicated.Machine{"leases": table}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer replica.Close()
	leases, err := lease.New(lease.Config{Replica: replica, Machine: "leases", Table: table})
	if err != nil {
		fmt.Println(err)
		return
	}
	held, err := leases.Acquire(ctx, "nightly report")
	if err != nil {
		fmt.Println(err)
		return
	}
	if held.Valid() {
		fmt.Println("writes the report with a token:", held.Token() > 0)
	}
	fmt.Println(held.Release(ctx))
	// Output:
	// writes the report with a token: true
	// <nil>
}
