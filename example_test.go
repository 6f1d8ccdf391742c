package pleach_test

import (
	"context"
	"fmt"
	"log"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/protocol"
	"github.com/pleach-go/pleach/stream"
	"github.com/pleach-go/pleach/transport/mem"
)

// Three members in one process, over memory. Programs that run as several
// processes leave Transport and Stream out: who they are comes from the launcher.
func ExampleGroup_Broadcast() {
	ctx := context.Background()
	network := mem.NewNetwork(3, mem.Config{})
	groups := make([]*pleach.Group, 3)
	for r := range groups {
		var err error
		groups[r], err = pleach.Join(ctx, pleach.Config{
			Transport: network.Member(protocol.Rank(r)),
			Stream:    stream.Config{Rank: protocol.Rank(r), Size: 3},
		})
		if err != nil {
			log.Fatal(err)
		}
		defer groups[r].Close()
	}
	network.Kill(1) // nobody has been told

	if err := groups[0].Broadcast(ctx, []byte("flush the cache")); err != nil {
		log.Fatal(err)
	}
	for message := range groups[2].Messages(ctx) {
		fmt.Printf("rank 2 got %q from rank %d\n", message.Data, message.Root)
		break
	}
	// Output: rank 2 got "flush the cache" from rank 0
}
