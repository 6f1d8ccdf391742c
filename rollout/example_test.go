package rollout_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/replicated"
	"github.com/pleach-go/pleach/rollout"
)

// Two processes get a setting in two waves. The first one is not well with it, so the second one
// does not get it, and the first one takes it back.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var rollouts *rollout.Rollouts
	seeds := []string{}
	for _, id := range []string{"a", "b"} {
		table := rollout.NewTable()
		replica, err := replicated.Join(ctx, replicated.Config{
			Group:    pleach.Config{ID: id},
			Machines: map[string]replicated.Machine{"rollouts": table},
		}, seeds...)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer replica.Close()
		seeds = append(seeds, replica.Group().Self().Address)
		setting := func(_ context.Context, r rollout.Release) error {
			fmt.Printf("%s: %s\n", id, r.Data)
			return nil
		}
		rollouts, err = rollout.New(rollout.Config{
			Replica: replica, Machine: "rollouts", Table: table, Apply: setting, Revert: setting,
			Gate: func(context.Context, rollout.Release) error { return fmt.Errorf("not ready") },
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer rollouts.Close()
	}
	id, err := rollouts.Start(ctx, rollout.Spec{
		Payload: []byte("timeout=1s"), Revert: []byte("timeout=9s"), Waves: "1,100%",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	status, err := rollouts.Wait(ctx, id)
	fmt.Println(status.Phase, status.Reason, err)
	// Output:
	// a: timeout=1s
	// a: timeout=9s
	// reverted wave 1 of 2: a: not ready <nil>
}
