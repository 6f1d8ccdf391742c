package fleet_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/fleet"
)

// Two zones of one member each. Usually all processes get the same seeds, and each zone
// begins by Group.Expect.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fra, err := fleet.Join(ctx, fleet.Config{Zone: "fra", Group: pleach.Config{ID: "fra-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fra.Close()
	iad, err := fleet.Join(ctx, fleet.Config{
		Zone:  "iad",
		Seeds: map[string][]string{"fra": {fra.Zone().Self().Address}},
		Group: pleach.Config{ID: "iad-1"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer iad.Close()

	// A zone begins with what is broadcast after it has met the others.
	go func() {
		for ctx.Err() == nil {
			_ = fra.Broadcast(ctx, []byte("hello from Frankfurt"))
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for m, err := range iad.Messages(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, %s: %s\n", m.Zone, m.ID, m.Data)
		return
	}
	// Output: fra, fra-1: hello from Frankfurt
}
